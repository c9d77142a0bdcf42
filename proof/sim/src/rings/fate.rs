//! The faults of the bare rings, and the final demands on them.

use wire::{Duration, Member};

use super::{Extra, Rings};
use crate::check::bounded::Silence;
use crate::check::{Verdict, liveness};
use crate::process::Listener;
use crate::strike::{Relief, Strike, choose, relieve, strike};

/// How often it is looked whether all is well again.
const LOOK: Duration = Duration::from_millis(10);

impl Rings {
    pub(super) fn end(&mut self, node: usize, power: bool) {
        self.watch.died(self.fabric.member(node));
        self.fabric.kill(node, power);
    }

    /// Any number of nodes may die: a ring promises nothing about the dead.
    pub(super) fn fault(&mut self) -> Verdict {
        if self.calm.is_some() {
            return Ok(());
        }
        let wait = self.options.faults.wait(&mut self.faults);
        self.fabric.later(wait, Extra::Fault);
        let Some(kind) = self.options.faults.kind(&mut self.faults) else { return Ok(()) };
        let places = self.options.nodes;
        let covered = |_: Member| true;
        let chosen = choose(kind, &self.fabric, places, &mut self.faults, covered);
        let Some(fault) = chosen else { return Ok(()) };
        self.fabric.trace.say(self.fabric.now(), || format!("FAULT {fault:?}"));
        let plan = &self.options.faults;
        let (span, relief) = strike(&fault, &mut self.fabric, plan, &mut self.faults);
        if let Some(relief) = relief {
            self.fabric.later(span, Extra::Relief(relief));
        }
        match fault {
            Strike::End { node, power } => self.end(node, power),
            Strike::Burst(nodes) => {
                for node in nodes {
                    self.end(node, false);
                    let soon = self.faults.span(Duration::ZERO, Duration::from_millis(20));
                    self.fabric.later(soon, Extra::Relief(Relief::Boot(node)));
                }
            }
            Strike::Leave(node) => {
                let now = self.fabric.local(node);
                let process = self.fabric.hosts[node].process.as_mut().expect("chosen to run");
                process.ring.leave(now);
                self.drain(node)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn relieve(&mut self, relief: Relief) -> Verdict {
        if self.course.is_some() {
            return Ok(()); // All that was wrong before the trial has ended; what is wrong now is the trial's.
        }
        self.fabric.trace.say(self.fabric.now(), || format!("RELIEF {relief:?}"));
        if let Relief::Boot(node) = relief {
            return self.boot(node);
        }
        let calm = self.calm.is_some();
        let next = relieve(&relief, &mut self.fabric, &self.options, calm, &mut self.faults);
        for (span, relief) in next {
            self.fabric.later(span, Extra::Relief(relief));
        }
        Ok(())
    }

    /// The faults are over.
    pub(super) fn heal(&mut self) -> Verdict {
        if self.calm.is_some() {
            return Ok(());
        }
        self.calm = Some(self.fabric.now());
        self.fabric.network.heal();
        self.fabric.network.set_weather(self.options.weather.calm());
        for node in 0..self.options.nodes {
            self.fabric.lag(node, None);
            self.fabric.resume(node);
            self.boot(node)?;
        }
        self.fabric.trace.say(self.fabric.now(), || "ALL HEALS".into());
        self.fabric.later(LOOK, Extra::Look);
        Ok(())
    }

    /// All is well when all nodes are in one ring and nothing waits; then the ring shall be quiet.
    pub(super) fn look(&mut self) -> Verdict {
        let now = self.fabric.now();
        let missing = self.missing();
        if let Some(missing) = &missing {
            self.well = None;
            self.fabric.trace.say(now, || format!("not yet: {missing}"));
        } else {
            self.watch.detection.steady(true);
            let silence = self.well.get_or_insert_with(|| Silence::new(now));
            if silence.listen(now, self.fabric.datagrams, self.options.idle())? {
                self.done = !self.begin_trial()?;
                return Ok(());
            }
        }
        if now.since(self.calm.expect("looks come after the calm")) > liveness::WITHIN {
            self.done = true;
            return liveness::finish(missing.or(Some("it was not quiet".into())));
        }
        self.fabric.later(LOOK, Extra::Look);
        Ok(())
    }

    fn missing(&self) -> Option<String> {
        let state = |Listener { ring, .. }: &Listener| liveness::NodeState {
            operational: ring.state_name() == "operational",
            members: ring.members().len(),
            quorate: true,
            ring: ring.id().sequence,
        };
        let hosts = &self.fabric.hosts;
        let nodes: Vec<_> = hosts.iter().map(|host| host.process.as_ref().map(state)).collect();
        let behind = || {
            // It was slow, and knows nothing yet of what the others have agreed on since.
            let node = self.fabric.behind()?;
            Some(format!("{} has not read all that came", self.fabric.member(node)))
        };
        let undelivered = || self.watch.undelivered(&self.alive());
        liveness::rings(&nodes).or_else(behind).or_else(undelivered)
    }

    pub(super) fn alive(&self) -> Vec<Member> {
        (0..self.options.nodes).map(|node| self.fabric.member(node)).collect()
    }
}
