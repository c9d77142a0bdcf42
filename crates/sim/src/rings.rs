//! The world of bare rings: what the ring delivers, in which configurations, is seen by the checkers.
//!
//! Whole clusters hide this inside their stacks. Here every node multicasts messages of its own, any
//! number of nodes may die at any time (a ring promises nothing about the dead), and what the living are told must
//! be extended virtual synchrony all along.

mod stamp;

use std::collections::BTreeMap;

use bytes::Bytes;
use ring::{ConfigurationKind, Level, Output, Ring};
use wire::ring::Datagram;
use wire::{Duration, Member, NodeId, RingId, Time};

use crate::check::configurations::Configurations;
use crate::check::stability::Stability;
use crate::check::total_order::TotalOrder;
use crate::check::{Verdict, bounded, demand, liveness};
use crate::draw::Draw;
use crate::fabric::{Fabric, Process, Step, node_id};
use crate::faults::partition;
use crate::network::Network;
use crate::options::{CLUSTER_ID, Options};
use crate::run::{Outcome, Plant, Summary};
use crate::strike::{Relief, Strike, choose, strike};
use stamp::{Brief, stamp, stamped};

impl Process for Ring {
    fn datagram(&mut self, now: Time, bytes: &Bytes) {
        if let Ok(datagram) = Datagram::decode(CLUSTER_ID, bytes) {
            self.handle_message(now, datagram);
        }
    }

    fn unreachable(&mut self, now: Time, node: NodeId) {
        self.handle_unreachable(now, node);
    }

    fn timeout(&mut self, now: Time) {
        self.handle_timeout(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        Ring::next_timeout(self)
    }

    fn check(&self) {
        self.check_invariants();
    }
}

enum Extra {
    Multicast(usize),
    Fault,
    Relief(Relief),
    Calm,
    Look,
}

/// A node multicasts no more while so many of its messages wait.
const BACKLOG: usize = 24;

/// Messages of one life, at most.
const MESSAGES: u64 = 300;

/// How often it is looked whether all is well again.
const LOOK: Duration = Duration::from_millis(10);

struct Rings {
    options: Options,
    plant: Plant,
    fabric: Fabric<Ring, Extra>,
    faults: Draw,
    load: Draw,
    order: TotalOrder,
    configurations: Configurations,
    stability: Stability,
    counts: BTreeMap<Member, u64>,
    /// The ring that each life is in.
    rings: BTreeMap<Member, RingId>,
    /// All faults are over since then.
    calm: Option<Time>,
    /// All has been well since then, at so many datagrams.
    well: Option<(Time, u64)>,
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
        order: TotalOrder::default(),
        configurations: Configurations::default(),
        stability: Stability::default(),
        counts: BTreeMap::new(),
        rings: BTreeMap::new(),
        calm: None,
        well: None,
        done: false,
        options,
    };
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
            let Some(step) = self.fabric.step() else {
                return demand(false, "liveness", || "nothing is left to happen".into());
            };
            if self.calm.is_none() && self.fabric.turns() > self.options.budget {
                self.calm()?;
            }
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
            Extra::Calm => self.calm(),
            Extra::Look => self.look(),
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
        self.fabric.start(node, ring);
        self.fabric.trace.say(self.fabric.now(), || format!("{me} starts"));
        self.drain(node)
    }

    fn multicast(&mut self, node: usize) -> Verdict {
        if self.calm.is_none() {
            let span = self.load.scale(Duration::from_micros(100), self.options.load.think);
            self.fabric.later(span, Extra::Multicast(node));
        }
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
        let me = self.fabric.member(node);
        let now = self.fabric.local(node);
        let Some(ring) = &mut self.fabric.hosts[node].process else { return Ok(()) };
        let count = self.counts.get(&me).map_or(1, |count| count + 1);
        if ring.queued() >= BACKLOG || count > MESSAGES {
            return Ok(());
        }
        let body = if self.load.one_in(10) { self.options.load.body } else { 100 };
        let size = self.load.between(0, body as u64) as usize;
        if ring.multicast(now, stamp((me, count), size), Level::Agreed).is_ok() {
            self.counts.insert(me, count);
            let ring = self.rings.get(&me).copied().unwrap_or_default();
            let after = (ring, self.order.reached(me, ring));
            self.configurations.multicast((me, count), after);
        }
        Ok(())
    }

    fn drain(&mut self, node: usize) -> Verdict {
        let me = self.fabric.member(node);
        let mut count = 0;
        while let Some(output) =
            self.fabric.hosts[node].process.as_mut().and_then(Ring::poll_output)
        {
            count += 1;
            bounded::outputs(me, count, self.options.nodes)?;
            let now = self.fabric.now();
            match output {
                Output::Send { to, datagram, .. } => {
                    bounded::datagram(me, datagram.len(), wire::limits::DEFAULT_DATAGRAM)?;
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
                let message = stamped(&delivery.payload)?;
                let place = (delivery.ring, delivery.sequence);
                let sender = delivery.sender;
                demand(sender == message.0, "total order", || {
                    format!("{me} delivers {message:?} as one of {sender}")
                })?;
                let contiguous = delivery.contiguous;
                self.fabric.trace.note(self.fabric.now(), 6, node, [place.1, message.1]);
                if let (false, Some(cause)) = (contiguous, self.configurations.cause(message))
                    && cause.0 == place.0
                {
                    self.order.over_gap(me, message, cause)?;
                }
                self.stability.delivered(me, place.0, message);
                self.order.delivered(me, message, place, contiguous)?;
                self.configurations.delivered(me, message, place.0, contiguous)
            }
            Output::Configuration(configuration) => {
                if configuration.kind == ConfigurationKind::Regular {
                    self.rings.insert(me, configuration.ring);
                    self.stability.ring(configuration.ring, &configuration.members);
                } else {
                    self.stability.recovered(me, configuration.ring, &configuration.members);
                }
                self.configurations.configured(me, &configuration)
            }
            Output::Held { ring, majority, all } => self.stability.held(me, ring, majority, all),
            Output::Event(ring::Event::Left) => {
                self.end(node, false);
                let span = self.options.faults.span(&mut self.faults);
                self.fabric.later(span, Extra::Relief(Relief::Boot(node)));
                Ok(())
            }
            Output::Send { .. } | Output::Event(_) => Ok(()),
        }
    }

    fn end(&mut self, node: usize, power: bool) {
        self.stability.died(self.fabric.member(node));
        self.fabric.kill(node, power);
    }

    fn fault(&mut self) -> Verdict {
        if self.calm.is_some() {
            return Ok(());
        }
        let wait = self.options.faults.wait(&mut self.faults);
        self.fabric.later(wait, Extra::Fault);
        let Some(kind) = self.options.faults.kind(&mut self.faults) else { return Ok(()) };
        let places = self.options.nodes;
        let chosen = choose(kind, &self.fabric, places, &mut self.faults, |_, _| true);
        let Some(fault) = chosen else { return Ok(()) };
        self.fabric.trace.say(self.fabric.now(), || format!("FAULT {fault:?}"));
        let plan = &self.options.faults;
        let (span, relief) = strike(&fault, &mut self.fabric, plan, &mut self.faults);
        match fault {
            Strike::End { node, power } => self.end(node, power),
            Strike::Leave(node) => {
                let now = self.fabric.local(node);
                self.fabric.hosts[node].process.as_mut().expect("chosen to run").leave(now);
                self.drain(node)?;
            }
            _ => {}
        }
        if let Some(relief) = relief {
            self.fabric.later(span, Extra::Relief(relief));
        }
        Ok(())
    }

    fn relieve(&mut self, relief: Relief) -> Verdict {
        self.fabric.trace.say(self.fabric.now(), || format!("RELIEF {relief:?}"));
        match relief {
            Relief::Boot(node) => return self.boot(node),
            Relief::Split if self.calm.is_none() => {
                self.fabric.network.set_weather(self.options.weather);
                let (nodes, places) = (self.options.nodes, self.options.nodes);
                for (from, to) in partition(&mut self.faults, nodes, places) {
                    self.fabric.network.cut(from, to);
                }
                // Half of the time once more, when the parts are about to form rings.
                if self.faults.one_in(2) {
                    let soon =
                        self.faults.span(Duration::from_millis(50), Duration::from_millis(180));
                    self.fabric.later(soon, Extra::Relief(Relief::Split));
                }
                let span = self.options.faults.span(&mut self.faults);
                self.fabric.later(span, Extra::Relief(Relief::Mend));
            }
            Relief::Split => {}
            Relief::Resume(node) => self.fabric.resume(node),
            Relief::Mend => self.fabric.network.heal(),
            Relief::Clear if self.calm.is_none() => {
                self.fabric.network.set_weather(self.options.weather);
            }
            Relief::Clear | Relief::Quick(_) => {}
        }
        Ok(())
    }

    fn calm(&mut self) -> Verdict {
        if self.calm.is_some() {
            return Ok(());
        }
        self.calm = Some(self.fabric.now());
        self.fabric.network.heal();
        self.fabric.network.set_weather(self.options.weather.calm());
        for node in 0..self.options.nodes {
            self.fabric.resume(node);
            self.boot(node)?;
        }
        self.fabric.trace.say(self.fabric.now(), || "ALL HEALS".into());
        self.fabric.later(LOOK, Extra::Look);
        Ok(())
    }

    /// All is well when all nodes are in one ring and nothing waits; then the ring shall be quiet.
    fn look(&mut self) -> Verdict {
        let now = self.fabric.now();
        let missing = self.missing();
        if let Some(missing) = &missing {
            self.well = None;
            self.fabric.trace.say(now, || format!("not yet: {missing}"));
        } else {
            let (since, datagrams) = *self.well.get_or_insert((now, self.fabric.datagrams));
            let span = now.since(since);
            if span >= bounded::silence(self.options.parking) {
                let sent = self.fabric.datagrams - datagrams;
                bounded::idle(sent, span, self.options.nodes, self.options.parking)?;
                self.done = true;
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
        let state = |ring: &Ring| liveness::NodeState {
            operational: ring.state_name() == "operational",
            members: ring.members().len(),
            quorate: true,
            ring: ring.id().sequence,
        };
        let hosts = &self.fabric.hosts;
        let nodes: Vec<_> = hosts.iter().map(|host| host.process.as_ref().map(state)).collect();
        liveness::rings(&nodes).or_else(|| {
            let alive: Vec<Member> =
                (0..nodes.len()).map(|node| self.fabric.member(node)).collect();
            self.configurations.finish(&alive).err().map(|violation| violation.text)
        })
    }

    fn finish(&mut self) -> Verdict {
        self.order.finish()?;
        self.stability.finish(&self.order)
    }
}

/// The ring's configuration at a node.
pub fn ring_config(options: &Options, me: Member, plant: Plant) -> ring::Config {
    let nodes = (0..options.nodes).map(node_id).collect();
    let mut config = ring::Config::new(CLUSTER_ID, me, nodes);
    config.window = options.window;
    config.turn = options.turn;
    config.parking = options.parking;
    plant.into_ring(&mut config);
    config
}
