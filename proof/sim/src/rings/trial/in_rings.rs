//! How bare rings go through a trial.

use wire::limits::MAX_WINDOW;
use wire::{Duration, Member};

use super::{Course, FLAPS, FULL, SETTLED, SETTLING, Stage};
use crate::check::settling::most;
use crate::check::{Verdict, Violation};
use crate::rings::{BACKLOG, Extra, Rings, ring_config};
use crate::run::Plant;
use crate::trial::{Silence, Trial, Work};

impl Rings {
    /// The trial of this seed begins. False: it has none.
    pub(in crate::rings) fn begin_trial(&mut self) -> Result<bool, Violation> {
        let Some(trial) = self.options.trial.take() else { return Ok(false) };
        let now = self.fabric.now();
        self.fabric.trace.say(now, || format!("TRIAL {trial:?}"));
        let nodes = self.options.nodes;
        let victim = self.load.count(0, nodes - 1);
        let greedy = self.load.count(1, nodes - 1);
        let wait = self.load.span(Duration::ZERO, Duration::from_millis(40));
        if !matches!(trial, Trial::Silence(Silence::Stopped, _)) {
            self.watch.detection.undisturbed();
        }
        match &trial {
            Trial::Wait => {
                let bound = self.longest_wait();
                self.watch.wait.timed(bound);
                for node in 0..greedy {
                    for _ in 0..300 {
                        self.say(node, FULL)?;
                    }
                    self.drain(node)?;
                }
                self.fabric.later(Duration::from_millis(20), Extra::Trial(Stage::Judge));
            }
            Trial::Silence(..) | Trial::Slow | Trial::Shape { .. } | Trial::Flap { .. } => {
                self.fabric.later(wait, Extra::Trial(Stage::Strike));
            }
        }
        self.fabric.later(Duration::ZERO, Extra::Trial(Stage::Say));
        self.course = Some(Course { trial, since: None, victim, greedy, said: 0, over: false });
        Ok(true)
    }

    pub(in crate::rings) fn trial(&mut self, stage: Stage) -> Verdict {
        let Some(course) = &self.course else { return Ok(()) };
        match stage {
            Stage::Say | Stage::Judge if course.over => Ok(()),
            Stage::Say => self.work(),
            Stage::Strike => self.strike(),
            Stage::Turn(left) => self.turn(left),
            Stage::Boot(node) => self.boot(node),
            Stage::Judge => self.judge(),
        }
    }

    /// One of the others has always something to send, until the slow one is out: it comes back
    /// later.
    fn fill(&mut self) -> Verdict {
        let Some(course) = &self.course else { return Ok(()) };
        if course.since.is_some()
            && self.watch.detection.due(&self.others(), Duration::ZERO).is_ok()
        {
            return self.judge();
        }
        let sender = (course.victim + 1) % self.options.nodes;
        let queued = |world: &Rings| {
            world.fabric.hosts[sender]
                .process
                .as_ref()
                .map_or(BACKLOG, |process| process.ring.queued())
        };
        // A holder sends at once what its window has room for; a ring that takes nothing more is
        // looked at by others.
        for _ in 0..BACKLOG + MAX_WINDOW {
            if queued(self) >= BACKLOG {
                break;
            }
            self.say(sender, FULL)?;
        }
        self.drain(sender)?;
        self.fabric.later(Duration::from_millis(1), Extra::Trial(Stage::Say));
        Ok(())
    }

    /// Somebody says something, as the trial has it.
    fn work(&mut self) -> Verdict {
        let nodes = self.options.nodes;
        let Some(course) = &mut self.course else { return Ok(()) };
        course.said += 1;
        let (said, victim, greedy) = (course.said, course.victim, course.greedy);
        let other = |i: usize| (victim + 1 + i % (nodes - 1)) % nodes;
        let (who, longest) = match &course.trial {
            Trial::Wait => (vec![self.load.count(greedy, nodes - 1)], 2_000),
            Trial::Silence(_, Work::None) => (Vec::new(), 2_000),
            Trial::Silence(_, Work::One) => (vec![other(0)], 2_000),
            Trial::Silence(_, Work::Two) => (vec![other(said % 2)], 1_500),
            Trial::Silence(_, Work::All) => ((0..nodes - 1).map(other).collect(), 4_000),
            Trial::Slow => return self.fill(),
            Trial::Shape { .. } | Trial::Flap { .. } => {
                (vec![self.load.count(0, nodes - 1)], 60_000)
            }
        };
        for node in who {
            if self.fabric.hosts[node].runs() {
                self.say(node, 50)?;
                self.drain(node)?;
            }
        }
        let pause = self.load.span(Duration::from_micros(100), Duration::from_micros(longest));
        self.fabric.later(pause, Extra::Trial(Stage::Say));
        Ok(())
    }

    /// The trial's fault strikes.
    fn strike(&mut self) -> Verdict {
        let now = self.fabric.now();
        self.watch.detection.steady(false);
        self.watch.settling.shaped();
        let Some(course) = &mut self.course else { return Ok(()) };
        course.since = Some(now);
        let (victim, trial) = (course.victim, course.trial.clone());
        self.fabric.trace.say(now, || format!("FAULT of the trial at node {}", victim + 1));
        match trial {
            Trial::Silence(silence, work) => {
                let others = (0..self.options.nodes).filter(|other| *other != victim);
                match silence {
                    Silence::Power => self.end(victim, true),
                    Silence::Killed => self.end(victim, false),
                    Silence::Stopped => self.fabric.pause(victim),
                    Silence::Cut => {
                        let cuts: Vec<_> =
                            others.flat_map(|other| [(victim, other), (other, victim)]).collect();
                        self.fabric.network.cut_all(&cuts);
                    }
                }
                let bound = self.silent_host(work == Work::None);
                self.fabric.later(bound, Extra::Trial(Stage::Judge));
            }
            Trial::Slow => {
                let bound = self.lag(victim);
                self.fabric.later(bound, Extra::Trial(Stage::Judge));
            }
            Trial::Shape { cuts, cold, .. } => {
                self.fabric.network.cut_all(&cuts);
                for node in (0..self.options.nodes).filter(|_| cold) {
                    self.end(node, false);
                    let soon = self.faults.span(Duration::ZERO, Duration::from_millis(5));
                    self.fabric.later(soon, Extra::Trial(Stage::Boot(node)));
                }
                self.fabric.later(SETTLING + SETTLED, Extra::Trial(Stage::Judge));
            }
            Trial::Flap { .. } => return self.turn(FLAPS),
            Trial::Wait => {}
        }
        Ok(())
    }

    /// A link that flaps changes its mind.
    fn turn(&mut self, left: u64) -> Verdict {
        let Some(Course { trial: Trial::Flap { cuts, each }, .. }) = &self.course else {
            return Ok(());
        };
        let stage = if left == 0 { Stage::Judge } else { Stage::Turn(left - 1) };
        if left.is_multiple_of(2) {
            self.fabric.network.cut_all(cuts);
        } else {
            self.fabric.network.mend(cuts);
        }
        self.fabric.later(*each, Extra::Trial(stage));
        Ok(())
    }

    /// The bound is over: has it held? Then all is mended, and all must be well again.
    fn judge(&mut self) -> Verdict {
        let Some(course) = &mut self.course else { return Ok(()) };
        course.over = true;
        let victim = course.victim;
        self.fabric.lag(victim, None);
        let now = self.fabric.now();
        let since = course.since.unwrap_or(now);
        let timing = self.timing();
        match &self.course.as_ref().expect("it is under way").trial {
            Trial::Wait => {
                self.watch.wait.finish(now)?;
                self.watch.wait.timed(None);
            }
            Trial::Silence(..) | Trial::Slow => {
                self.watch.detection.due(&self.others(), now.since(since))?;
            }
            Trial::Shape { rests: false, .. } => {
                // Each of the others may be lost and found as often as one that flaps.
                let others = self.options.nodes - 1;
                self.watch.settling.few(others * timing.flapping(now.since(since)))?;
            }
            Trial::Shape { .. } => {
                self.watch.settling.few(most(self.options.nodes))?;
                self.watch.settling.quiet_since(since + SETTLING)?;
            }
            Trial::Flap { .. } => {
                self.watch.settling.few(timing.flapping(now.since(since)))?;
            }
        }
        self.calm = None;
        self.well = None;
        self.heal()
    }

    /// All but the victim.
    fn others(&self) -> Vec<Member> {
        let victim = self.course.as_ref().map(|course| course.victim);
        let others = (0..self.options.nodes).filter(|node| Some(*node) != victim);
        others.map(|node| self.fabric.member(node)).collect()
    }

    /// This one takes in a window of datagrams in seven times the others' round trip or more, or,
    /// without parking, a turn in eight times their part of the token's round; and in less time
    /// than makes it seem dead. Tells after which time it must be out: docs/protocol/ring.md, "Slow
    /// receivers", with three quarters of the time stopped, and the new ring.
    fn lag(&mut self, victim: usize) -> Duration {
        let config = ring_config(&self.options, self.fabric.member(victim), Plant::default());
        let (timing, delay) = (config.timing, self.delay());
        let part = |span: Duration, datagrams: usize| {
            span / u32::try_from(datagrams).expect("a window is small")
        };
        let gap = if config.parking {
            part((timing.token_timeout / 3).max(delay * 14), config.window)
        } else {
            // Beyond `heartbeat / 2` the token is slow in every ring.
            let round = delay * (self.options.nodes as u32 + 1);
            part((timing.heartbeat * 3 / 4).max(round * 8), config.turn)
        };
        self.fabric.lag(victim, Some(gap));
        self.watch.detection.slow(self.fabric.member(victim));
        timing.longest_stall() * 100 / (75 - config.slow_share) + self.silent_host(false)
    }

    fn timing(&self) -> ring::Timing {
        ring_config(&self.options, self.fabric.member(0), Plant::default()).timing
    }

    /// The longest that a datagram takes.
    fn delay(&self) -> Duration {
        let weather = self.fabric.network.weather();
        weather.latency + weather.jitter
    }

    /// The formula's bound for who wants the token; none where it makes no promise: with a window
    /// of fewer than two datagrams a member somebody may have to wait for another round.
    fn longest_wait(&self) -> Option<Duration> {
        let nodes = self.options.nodes;
        let config = ring_config(&self.options, self.fabric.member(0), Plant::default());
        let bound = config.longest_wait(nodes, self.delay(), Duration::ZERO);
        // A Want that older datagrams overtake is lost.
        (self.options.parking && config.window >= 2 * nodes)
            .then_some(bound + config.timing.want_retry)
    }

    /// The formula's bound for a silent node: a node that has seen long waits is more patient.
    fn silent_host(&self, idle: bool) -> Duration {
        let timing = self.timing();
        let time_out = if self.options.faults.kinds.is_empty() {
            timing.token_timeout
        } else {
            timing.token_timeout_max
        };
        if idle {
            timing.silent_host_when_idle(self.options.nodes, self.delay(), time_out)
        } else {
            timing.silent_host(self.options.nodes, self.delay(), time_out)
        }
    }
}
