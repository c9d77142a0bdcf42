//! The world of two networks: rings whose nodes have two links. One at a time is faulty.
//!
//! Below each ring stands the machine that a real node has there ([`ring::Links`]). The promise is
//! narrow, and so is this world: as long as one network is sound nobody is excluded, everything is
//! delivered everywhere in one order, and a loss is reported and left within its bound.

use bytes::Bytes;
use ring::{Event, Level, LinkOutput, LinkTiming, Links, LinksConfig, Output, Ring, Route};
use wire::report::Report;
use wire::{Duration, Incarnation, Member, NodeId, NodeSet, Time};

use crate::check::{Verdict, demand};
use crate::draw::Draw;
use crate::fabric::node_id;
use crate::network::{Network, Weather};
use crate::options::CLUSTER_ID;
use crate::queue::Queue;
use crate::run::{Outcome, Plant, Summary};
use crate::trace::{Trace, digest};

const PROPERTY: &str = "two networks";

/// How many there are.
const NETWORKS: usize = 2;

/// After the start all nodes are in one ring, and know their links, by then.
const FORMED: Duration = Duration::from_millis(1_500);

/// A link that comes back proves itself within this, at the longest after some losses in a row.
const BACK: Duration = Duration::from_secs(6);

/// Faults of one run.
const FAULTS: usize = 3;

enum What {
    Arrive { from: usize, to: usize, link: usize, bytes: Bytes },
    Wake(usize),
    Multicast(usize),
    Strike,
    Mend,
    Look,
}

struct Node {
    ring: Ring,
    links: Links,
    delivered: Vec<Bytes>,
    /// When its timers are looked at next.
    wake: Option<Time>,
}

/// The present fault of one network.
struct Fault {
    link: usize,
    since: Time,
    /// From these to those nothing arrives.
    cuts: Vec<(usize, usize)>,
}

struct World {
    now: Time,
    nodes: Vec<Node>,
    networks: [Network; NETWORKS],
    queue: Queue<What>,
    draw: Draw,
    trace: Trace,
    weather: Weather,
    fault: Option<Fault>,
    struck: usize,
    sent: u64,
    datagrams: u64,
    formed: bool,
    done: bool,
}

/// When a link that nothing passes any more is left for certain.
fn bound() -> Duration {
    let LinkTiming { probe, timeout } = LinkTiming::default();
    // A clock does not stand between a timer and its handling here.
    2 * (probe + probe / 8) + 2 * timeout + Duration::from_millis(20)
}

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let count = draw.count(2, 6);
    let weather = Weather {
        loss: draw.pick(&[0, 0, 1, 10]),
        latency: Duration::from_micros(draw.pick(&[20, 50, 200])),
        jitter: Duration::from_micros(draw.pick(&[5, 30, 200])),
        ..Weather::default()
    };
    let mut world = World {
        now: Time(1_000_000_000),
        nodes: Vec::new(),
        networks: [(); NETWORKS].map(|()| Network::new(count, weather, draw.fork())),
        queue: Queue::default(),
        draw: draw.fork(),
        trace: Trace::new(aloud),
        weather,
        fault: None,
        struck: 0,
        sent: 0,
        datagrams: 0,
        formed: false,
        done: false,
    };
    world.nodes = (0..count).map(|place| node(place, count, world.now, plant)).collect();
    let verdict = crate::run::guarded(|| world.run());
    let (hash, steps) = (world.trace.hash(), world.trace.steps());
    let summary = Summary {
        virtual_time: world.now,
        steps,
        datagrams: world.datagrams,
        ..Summary::default()
    };
    Outcome { verdict, hash, summary }
}

fn node(place: usize, count: usize, now: Time, plant: Plant) -> Node {
    let me = Member { node: node_id(place), incarnation: Incarnation(place as u64 + 1) };
    let nodes: Vec<NodeId> = (0..count).map(node_id).collect();
    let mut config = ring::Config::new(CLUSTER_ID, me, nodes.clone());
    config.planted = plant.ring;
    let links = LinksConfig {
        cluster: CLUSTER_ID,
        me,
        nodes,
        count: NETWORKS,
        timing: LinkTiming::default(),
        planted: config.planted,
    };
    Node {
        ring: Ring::new(config, now).expect("defaults are in range"),
        links: Links::new(links, now),
        delivered: Vec::new(),
        wake: None,
    }
}

impl World {
    fn push(&mut self, after: Duration, what: What) {
        self.queue.push(self.now + after, what);
    }

    fn run(&mut self) -> Verdict {
        for place in 0..self.nodes.len() {
            self.drain(place)?;
            self.push(FORMED, What::Multicast(place));
        }
        self.push(FORMED, What::Strike);
        while !self.done {
            let Some(what) = self.queue.pop() else { break };
            self.now = self.queue.now();
            self.step(what)?;
        }
        self.finish()
    }

    fn step(&mut self, what: What) -> Verdict {
        match what {
            What::Arrive { from, to, link, bytes } => self.arrive(from, to, link, &bytes)?,
            What::Wake(place) => {
                let Node { ring, links, wake, .. } = &mut self.nodes[place];
                if *wake != Some(self.now) {
                    return Ok(()); // An earlier one has been set since.
                }
                *wake = None;
                if ring.next_timeout().is_some_and(|due| due <= self.now) {
                    ring.handle_timeout(self.now);
                }
                links.handle_timeout(self.now);
                self.drain(place)?;
            }
            What::Multicast(place) => self.multicast(place)?,
            What::Strike => self.strike()?,
            What::Mend => self.mend()?,
            What::Look => self.done = true,
        }
        Ok(())
    }

    fn arrive(&mut self, from: usize, to: usize, link: usize, bytes: &Bytes) -> Verdict {
        self.trace.note(self.now, 1, to, [from as u64, digest(bytes)]);
        let Node { ring, links, .. } = &mut self.nodes[to];
        links.handle_received(self.now, from, link);
        if Report::is_in(bytes) {
            let (sender, report) = Report::decode(CLUSTER_ID, bytes).expect("we wrote it");
            links.handle_report(self.now, sender, link, &report);
        } else {
            ring.handle_datagram(self.now, bytes).expect("we wrote it");
        }
        self.drain(to)
    }

    fn multicast(&mut self, place: usize) -> Verdict {
        if self.struck > FAULTS {
            return Ok(());
        }
        let pause = self.draw.span(Duration::from_millis(2), Duration::from_millis(60));
        self.push(pause, What::Multicast(place));
        self.sent += 1;
        let text = Bytes::from(self.sent.to_le_bytes().to_vec());
        let taken = self.nodes[place].ring.multicast(self.now, text, Level::Agreed);
        demand(taken.is_ok(), PROPERTY, || format!("node {place} is blocked: {taken:?}"))?;
        self.drain(place)
    }

    /// All that a node puts out.
    fn drain(&mut self, place: usize) -> Verdict {
        while let Some(output) = self.nodes[place].ring.poll_output() {
            match output {
                Output::Send { to, datagram, route } => self.send(place, to, &datagram, route)?,
                Output::Deliver(delivery) => self.nodes[place].delivered.push(delivery.payload),
                Output::Event(event @ Event::Installed { .. }) if self.formed => {
                    return demand(false, PROPERTY, || {
                        format!("node {place} at {}: {event:?}, though a network works", self.now)
                    });
                }
                Output::Event(event) => {
                    self.trace.say(self.now, || format!("node {place}: {event:?}"));
                }
                Output::Configuration(_)
                | Output::Held { .. }
                | Output::Stored { .. }
                | Output::Nodes(_)
                | Output::Roster { .. }
                | Output::Current { .. }
                | Output::Confirmed { .. } => {}
            }
        }
        while let Some(output) = self.nodes[place].links.poll_output() {
            match output {
                LinkOutput::Report { to, link, datagram } => {
                    self.carry(place, to, link, &datagram);
                }
                LinkOutput::Probe { .. } => {}
                LinkOutput::Unreachable(node) => {
                    return demand(false, PROPERTY, || format!("{node} is accused, and lives"));
                }
                LinkOutput::Event(event) => {
                    self.trace.say(self.now, || format!("node {place}: {event:?}"));
                }
            }
        }
        let Node { ring, links, wake, .. } = &mut self.nodes[place];
        ring.check_invariants();
        links.check_invariants();
        if let Some(due) = ring.next_timeout().into_iter().chain(links.next_timeout()).min() {
            // A turn of a real loop takes time, too.
            let at = due.max(self.now + Duration::from_micros(1));
            if wake.is_none_or(|wake| at < wake) {
                *wake = Some(at);
                self.push(at.since(self.now), What::Wake(place));
            }
        }
        Ok(())
    }

    fn send(&mut self, from: usize, to: NodeSet, bytes: &Bytes, route: Route) -> Verdict {
        let chosen = self.nodes[from].links.choose(self.now, to, route);
        for place in to.iter() {
            let cut = |link: usize| {
                let fault = self.fault.as_ref().filter(|fault| fault.link == link);
                let old = |fault: &&Fault| self.now.since(fault.since) > bound();
                fault.filter(old).is_some_and(|fault| fault.cuts.contains(&(from, place)))
            };
            let good = (0..NETWORKS).any(|link| chosen[link].contains(place) && !cut(link));
            demand(good, PROPERTY, || {
                format!("node {from} goes on sending to {place} by a dead link alone")
            })?;
        }
        for (link, to) in chosen.into_iter().enumerate().take(NETWORKS) {
            for place in to.iter() {
                self.carry(from, place, link, bytes);
            }
        }
        Ok(())
    }

    fn carry(&mut self, from: usize, to: usize, link: usize, bytes: &Bytes) {
        self.datagrams += 1;
        for at in self.networks[link].arrivals(self.now, from, to).into_iter().flatten() {
            let what = What::Arrive { from, to, link, bytes: bytes.clone() };
            self.push(at.since(self.now), what);
        }
    }

    /// One network becomes faulty; before the first one, all must be well.
    fn strike(&mut self) -> Verdict {
        let count = self.nodes.len();
        if !self.formed {
            let whole = self.nodes.iter().all(|node| node.ring.members().len() == count);
            demand(whole, PROPERTY, || "the nodes did not find each other".into())?;
            self.formed = true;
        }
        self.struck += 1;
        if self.struck > FAULTS {
            self.push(Duration::from_secs(1), What::Look);
            return Ok(());
        }
        let link = self.draw.count(0, NETWORKS - 1);
        let all = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
        let all = all.filter(|(a, b)| a != b);
        let one = self.draw.count(0, count - 1);
        let cuts: Vec<(usize, usize)> = match self.draw.between(0, 4) {
            0 => all.collect(),
            1 => all.filter(|(a, b)| *a == one || *b == one).collect(),
            2 => all.filter(|(a, _)| *a == one).collect(),
            3 => all.filter(|(_, b)| *b == one).collect(),
            _ => {
                let loss = self.draw.pick(&[100, 300, 700]);
                self.networks[link].set_weather(Weather { loss, ..self.weather });
                Vec::new()
            }
        };
        for &(from, to) in &cuts {
            self.networks[link].cut(from, to);
        }
        self.trace.say(self.now, || format!("network {link} cuts {cuts:?}"));
        self.fault = Some(Fault { link, since: self.now, cuts });
        let span = self.draw.scale(Duration::from_millis(5), Duration::from_millis(1_500));
        self.push(span, What::Mend);
        Ok(())
    }

    /// A fault is mended; the struck nodes must have reported cuts that were long enough.
    fn mend(&mut self) -> Verdict {
        let Some(Fault { link, since, cuts }) = self.fault.take() else { return Ok(()) };
        if self.now.since(since) > bound() {
            for (from, to) in cuts {
                let state = self.nodes[from].links.state(to).nth(link);
                demand(state.is_some_and(|state| !state.up), PROPERTY, || {
                    format!("node {from} takes network {link} to {to} for sound")
                })?;
            }
        }
        self.networks[link].heal();
        self.networks[link].set_weather(self.weather);
        self.push(BACK, What::Strike);
        Ok(())
    }

    /// Everybody has delivered everything, in one order, and all links are taken for sound again.
    fn finish(&self) -> Verdict {
        for (place, node) in self.nodes.iter().enumerate() {
            let count = node.delivered.len() as u64;
            demand(count == self.sent, PROPERTY, || {
                format!("node {place} delivered {count} of {}", self.sent)
            })?;
            demand(node.delivered == self.nodes[0].delivered, PROPERTY, || {
                format!("node {place} delivered in another order than node 0")
            })?;
            for other in (0..self.nodes.len()).filter(|other| *other != place) {
                let up = node.links.state(other).all(|state| state.up);
                let clean = self.weather.loss == 0;
                demand(up || !clean, PROPERTY, || {
                    format!(
                        "node {place} still misses a link to {other}, {BACK:?} after it is back"
                    )
                })?;
            }
        }
        Ok(())
    }
}
