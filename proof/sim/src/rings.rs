//! The world of bare rings: the checkers see the ring's deliveries and their configurations.
//!
//! Whole clusters hide this inside their stacks. Here every node multicasts messages of its own,
//! any number of nodes may die at any time (a ring promises nothing about the dead), and what the
//! living are told must be extended virtual synchrony all along.

mod fate;
mod stamp;
mod trial;
mod watch;

use std::collections::BTreeMap;

use ring::{Level, Output, Ring};
use wire::{Duration, Member, Time};

use crate::check::{Verdict, bounded, demand};
use crate::draw::Draw;
use crate::fabric::{Fabric, Step, node_id};
use crate::network::Network;
use crate::options::{CLUSTER_ID, Options};
use crate::process::Listener;
use crate::run::{Outcome, Plant, Summary};
use crate::strike::Relief;
use stamp::{Brief, stamp};
use watch::Watch;

enum Extra {
    Multicast(usize),
    Fault,
    Relief(Relief),
    Calm,
    Look,
    Trial(trial::Stage),
}

/// A node multicasts no more while so many of its messages wait.
const BACKLOG: usize = 24;

/// Messages of one life, at most.
const MESSAGES: u64 = 300;

struct Rings {
    options: Options,
    plant: Plant,
    fabric: Fabric<Listener, Extra>,
    faults: Draw,
    load: Draw,
    watch: Watch,
    counts: BTreeMap<Member, u64>,
    /// All faults are over since then.
    calm: Option<Time>,
    /// All has been well for so long.
    well: Option<bounded::Silence>,
    /// The trial that is under way, or over.
    course: Option<trial::Course>,
    done: bool,
}

/// Runs the rings of these options.
pub fn run(options: Options, draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let network = Network::new(options.nodes, options.weather, draw.fork());
    let clocks = options.clocks[..options.nodes].to_vec();
    let mut world = Rings {
        fabric: Fabric::new(clocks, network, aloud),
        plant,
        faults: draw.fork(),
        load: draw.fork(),
        watch: Watch::new(options.turn, options.parking),
        counts: BTreeMap::new(),
        calm: None,
        well: None,
        course: None,
        done: false,
        options,
    };
    if let Some(rate) = world.options.outsider {
        world.fabric.seal(rate, plant, &mut draw.fork());
    }
    let verdict = crate::run::guarded(|| world.run());
    Outcome {
        verdict,
        hash: world.fabric.trace.hash(),
        summary: Summary {
            virtual_time: world.fabric.now(),
            steps: world.fabric.trace.steps(),
            datagrams: world.fabric.datagrams,
            ..Summary::default()
        },
    }
}

impl Rings {
    fn run(&mut self) -> Verdict {
        for node in 0..self.options.nodes {
            let span = self.faults.span(Duration::ZERO, Duration::from_millis(60));
            self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
            self.fabric.later(span, Extra::Multicast(node));
        }
        let first = self.options.faults.wait(&mut self.faults);
        self.fabric.later(first, Extra::Fault);
        self.fabric.later(self.options.faults.phase, Extra::Calm);
        while !self.done {
            let Some(step) = self.fabric.step(Time(u64::MAX)) else {
                return demand(false, "liveness", || "nothing is left to happen".into());
            };
            if self.calm.is_none() && self.fabric.turns() > self.options.budget {
                self.heal()?;
            }
            self.fabric.sealed()?;
            match step {
                Step::Ran(node) => self.drain(node)?,
                Step::Node(..) => unreachable!("rings are given datagrams only"),
                Step::World(extra) => self.extra(extra)?,
            }
        }
        self.finish()
    }

    fn extra(&mut self, extra: Extra) -> Verdict {
        match extra {
            Extra::Multicast(node) => self.multicast(node),
            Extra::Fault => self.fault(),
            Extra::Relief(relief) => self.relieve(relief),
            Extra::Calm => self.heal(),
            Extra::Look => self.look(),
            Extra::Trial(stage) => self.trial(stage),
        }
    }

    fn boot(&mut self, node: usize) -> Verdict {
        if self.fabric.hosts[node].process.is_some() {
            return Ok(());
        }
        let step = self.faults.between(1, 1_000_000);
        self.fabric.hosts[node].incarnation.0 += step;
        let me = self.fabric.member(node);
        let config = ring_config(&self.options, me, self.plant);
        let now = self.fabric.local(node);
        let ring = Ring::new(config, now).expect("drawn knobs are in range");
        self.fabric.start(node, Listener { ring, heard: Vec::new() });
        self.fabric.trace.say(self.fabric.now(), || format!("{me} starts"));
        self.drain(node)
    }

    fn multicast(&mut self, node: usize) -> Verdict {
        // A message sent after all has healed could be cut short by the end of the run.
        if self.calm.is_some() {
            return Ok(());
        }
        let span = self.load.scale(Duration::from_micros(100), self.options.load.think);
        self.fabric.later(span, Extra::Multicast(node));
        if !self.fabric.hosts[node].runs() {
            return Ok(());
        }
        let burst = if self.load.one_in(8) { self.load.between(2, 20) } else { 1 };
        for _ in 0..burst {
            self.one_message(node)?;
        }
        self.drain(node)
    }

    fn one_message(&mut self, node: usize) -> Verdict {
        let count = self.counts.get(&self.fabric.member(node)).copied().unwrap_or(0);
        let Some(Listener { ring, .. }) = &self.fabric.hosts[node].process else { return Ok(()) };
        if ring.queued() >= BACKLOG || count >= MESSAGES {
            return Ok(());
        }
        let body = if self.load.one_in(10) { self.options.load.body } else { 100 };
        let size = self.load.between(0, body as u64) as usize;
        self.say(node, size)
    }

    /// A node multicasts its next message.
    fn say(&mut self, node: usize, size: usize) -> Verdict {
        let me = self.fabric.member(node);
        let now = self.fabric.local(node);
        let count = self.counts.get(&me).map_or(1, |count| count + 1);
        let Some(Listener { ring, .. }) = &mut self.fabric.hosts[node].process else {
            return Ok(());
        };
        let safe = self.load.permille(self.options.safe);
        // Somebody waits for every other of the agreed ones' holders.
        let agreed = if count.is_multiple_of(2) { Level::Held } else { Level::Agreed };
        let level = if safe { Level::Safe } else { agreed };
        if ring.multicast(now, stamp((me, count), size), level).is_ok() {
            self.counts.insert(me, count);
            self.watch.multicast((me, count), level.seen());
        }
        Ok(())
    }

    fn drain(&mut self, node: usize) -> Verdict {
        let me = self.fabric.member(node);
        if let Some(process) = &mut self.fabric.hosts[node].process {
            for (ring, sequence) in process.heard.drain(..) {
                self.watch.heard(me, ring, sequence);
            }
        }
        let mut count = 0;
        while let Some(output) =
            self.fabric.hosts[node].process.as_mut().and_then(|process| process.ring.poll_output())
        {
            count += 1;
            bounded::outputs(me, count, self.options.nodes)?;
            let now = self.fabric.now();
            match output {
                Output::Send { to, datagram, .. } => {
                    bounded::datagram(me, datagram.len(), wire::limits::DEFAULT_DATAGRAM)?;
                    if let Some(to) = to.iter().next() {
                        let now = self.fabric.now();
                        self.watch.wait.sent(now, node_id(to), &datagram)?;
                    }
                    self.fabric.send(node, to, &datagram);
                    continue;
                }
                output => {
                    let trace = &mut self.fabric.trace;
                    trace.note(now, 5, node, [count as u64, 0]);
                    trace.say(now, || format!("{me} -> {}", Brief(&output)));
                    self.observe(node, me, output)?;
                }
            }
        }
        self.fabric.settle(node);
        Ok(())
    }

    fn observe(&mut self, node: usize, me: Member, output: Output) -> Verdict {
        match output {
            Output::Deliver(delivery) => {
                let message = self.watch.delivered(me, &delivery)?;
                let now = self.fabric.now();
                self.fabric.trace.note(now, 6, node, [delivery.sequence, message.1]);
                Ok(())
            }
            Output::Configuration(configuration) => {
                let now = self.fabric.now();
                self.watch.configured(now, me, &configuration)
            }
            // No roster is ever set here.
            Output::Stored { .. } | Output::Nodes(_) | Output::Roster { .. } => Ok(()),
            Output::Held { ring, majority, all } => self.watch.held(me, ring, majority, all),
            Output::Confirmed { .. } | Output::Current { .. } => Ok(()), // nobody asks here
            Output::Event(ring::Event::Left) => {
                self.end(node, false);
                let span = self.options.faults.span(&mut self.faults);
                self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
                Ok(())
            }
            Output::Event(ring::Event::HeldUp(span)) => self.watch.detection.held_up(me, span),
            Output::Event(ring::Event::TooSlow { member, .. }) => {
                self.watch.detection.too_slow(me, member)
            }
            Output::Send { .. } | Output::Event(_) => Ok(()),
        }
    }

    fn finish(&mut self) -> Verdict {
        self.watch.finish(&self.alive())
    }
}

/// Shorter than by default: faults come thick here, and all must be together soon after the last.
const HOLD_OFF_MAX: Duration = Duration::from_secs(1);

/// The ring's configuration at a node.
pub fn ring_config(options: &Options, me: Member, plant: Plant) -> ring::Config {
    let nodes = (0..options.nodes).map(node_id).collect();
    let mut config = ring::Config::new(CLUSTER_ID, me, nodes);
    config.window = options.window;
    config.turn = options.turn;
    config.accelerated = options.accelerated;
    config.parking = options.parking;
    config.timing.hold_off_max = HOLD_OFF_MAX;
    config.planted = plant.ring;
    config
}
