//! A cluster of rings in virtual time, and what each life of a node saw.
#![allow(dead_code)] // Each test binary uses its part.
#![allow(missing_docs)]

pub mod check;
pub mod detection;
pub mod fairness;
mod happen;
mod life;
pub mod promise;
pub mod slow;
pub mod swarming;
mod words;

use std::collections::BTreeMap;

use bytes::Bytes;
pub use life::{Life, Seen, Tune};
use steadfast_ring::{Config, Level, Ring};
use testkit::{Draw, Machine, Network, Simulation, Trace, Weather, World};
use wire::ring::{Datagram, Message};
use wire::roster::Roster;
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, Random, Time};

pub const CLUSTER: ClusterId = ClusterId(7);

pub fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A ring, and the number of the life that it is.
pub struct Host {
    pub ring: Ring,
    life: usize,
}

impl Machine for Host {
    type Packet = Bytes;

    fn next_timeout(&self) -> Option<Time> {
        self.ring.next_timeout()
    }

    fn handle_timeout(&mut self, now: Time) {
        self.ring.handle_timeout(now);
    }

    fn handle_packet(&mut self, now: Time, _: usize, datagram: Bytes) {
        let datagram = Datagram::decode(CLUSTER, wire::versions::RING, &datagram)
            .expect("rings send what can be read");
        self.ring.handle_message(now, datagram);
    }

    fn handle_refused(&mut self, now: Time, place: usize) {
        self.ring.handle_unreachable(now, NodeId(place as u32));
    }
}

pub struct Cluster {
    pub world: World<Host>,
    pub random: Random,
    pub lives: Vec<Life>,
    pub configure: fn(&mut Config),
    pub tune: Tune,
    /// Text of everything that happens, for golden traces.
    pub trace: Option<Trace>,
    /// Datagrams sent, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// One in this many installations of a ring is a node's last deed: nothing of what it
    /// would have sent then leaves. Zero for never.
    pub fragile: u64,
    /// All datagrams sent, with their receivers, for tests that send some of them again.
    pub keep: Option<Vec<(usize, Bytes)>>,
    /// Called with each datagram that is sent, before the network gets it.
    pub drop_next: Option<fn(&Message) -> bool>,
    /// The datagrams that the network never carries: from, to, message.
    pub filter: fn(usize, usize, &Message) -> bool,
}

impl Cluster {
    /// `n` hosts, none of which runs yet.
    pub fn new(n: usize, seed: u64, tune: Tune) -> Self {
        let weather = Weather { latency: micros(50), ..Weather::default() };
        let network = Network::new(n, weather, Draw::new(seed).fork());
        Cluster {
            world: World::new(Time(1_000_000), network),
            random: Random::new(seed),
            lives: Vec::new(),
            configure: |_| {},
            tune,
            trace: None,
            counts: BTreeMap::new(),
            fragile: 0,
            keep: None,
            drop_next: None,
            filter: |_, _, _| false,
        }
    }

    /// `n` hosts that have come together without faults.
    pub fn started(n: usize, tune: Tune) -> Self {
        let mut cluster = Cluster::new(n, 1, tune);
        for node in 0..n {
            cluster.start(node);
        }
        cluster.run_until(5_000, |cluster| cluster.is_one_ring());
        cluster.run(millis(3));
        cluster
    }

    /// The same, whose token rests at this node after a message; from now on all is noted.
    pub fn traced(n: usize, holder: usize, tune: Tune) -> Self {
        let mut cluster = Cluster::started(n, tune);
        cluster.multicast_at(Level::Held, holder, 0);
        cluster.run(millis(1));
        cluster.start_trace();
        cluster
    }

    pub fn size(&self) -> usize {
        self.world.network.places()
    }

    pub fn now(&self) -> Time {
        self.world.now
    }

    /// One way through the network.
    pub fn delay(&self) -> Duration {
        self.world.network.weather().latency
    }

    pub fn weather(&mut self) -> &mut Weather {
        self.world.network.weather_mut()
    }

    /// One way from the first to the second nothing passes.
    pub fn cut(&mut self, from: usize, to: usize) {
        self.world.network.cut(from, to);
    }

    pub fn heal(&mut self) {
        self.world.network.heal();
    }

    pub fn runs(&self, node: usize) -> bool {
        self.world.runs(node)
    }

    pub fn start(&mut self, node: usize) {
        let nodes: Vec<_> = (0..self.size()).map(|n| NodeId(n as u32)).collect();
        // As the driver does: the time of the start, which grows with every life.
        let me = Member {
            node: nodes[node],
            incarnation: Incarnation(1_000 * (1 + self.lives.len() as u64)),
        };
        let mut config = Config::new(CLUSTER, me, nodes);
        config.timing = self.tune.timing;
        config.window = self.tune.window;
        config.turn = self.tune.turn;
        config.accelerated = self.tune.accelerated;
        config.parking = self.tune.parking;
        config.slow_share = self.tune.slow_share;
        config.planted = self.tune.planted;
        (self.configure)(&mut config);
        let ring = Ring::new(config, self.now()).expect("the test's configuration is right");
        self.lives.push(Life {
            member: me,
            seen: vec![],
            events: vec![],
            sent: vec![],
            levels: vec![],
            alive: true,
        });
        let life = self.lives.len() - 1;
        self.world.start(node, Host { ring, life });
        self.drain(node);
    }

    pub fn crash(&mut self, node: usize) {
        if self.runs(node) {
            self.lives[self.world.machine(node).life].alive = false;
            self.world.crash(node);
            self.note(|| format!("n{node} crashes"));
        }
    }

    /// The host's process is stopped for a while; what arrives waits in its socket.
    pub fn hold_up(&mut self, node: usize, span: Duration) {
        if self.runs(node) {
            self.world.hold_up(node, span);
        }
    }

    pub fn leave(&mut self, node: usize) {
        self.ask(node, |host, now| host.ring.leave(now));
    }

    pub fn ring(&self, node: usize) -> &Ring {
        assert!(self.runs(node));
        &self.world.machine(node).ring
    }

    pub fn life(&self, node: usize) -> &Life {
        &self.lives[self.world.machine(node).life]
    }

    pub fn multicast(&mut self, node: usize, size: usize) {
        self.multicast_at(Level::Agreed, node, size);
    }

    pub fn multicast_safe(&mut self, node: usize) {
        self.multicast_at(Level::Safe, node, 0);
    }

    pub fn multicast_at(&mut self, level: Level, node: usize, size: usize) {
        if !self.runs(node) {
            return;
        }
        let now = self.now();
        let host = self.world.machine_mut(node);
        let life = &mut self.lives[host.life];
        let mut payload = format!("{}#{}:", life.member, life.sent.len()).into_bytes();
        let fill = life.sent.len() as u8;
        payload.resize(payload.len().max(size), fill);
        let payload = Bytes::from(payload);
        if host.ring.multicast(now, payload.clone(), level).is_ok() {
            life.seen.push(Seen::Multicast(life.sent.len()));
            life.sent.push(payload);
            life.levels.push(level.seen());
        }
        self.drain(node);
    }

    /// A node knows these nodes from now on.
    pub fn set_nodes(&mut self, node: usize, roster: &Roster) {
        let nodes: Vec<NodeId> = roster.nodes().collect();
        self.ask(node, |Host { ring, .. }, now| {
            ring.set_nodes(now, roster.stamp, (&nodes, &[]), roster.encode());
        });
    }

    /// This node says to another how far it is.
    pub fn acknowledge(&mut self, node: usize, to: Member) {
        self.ask(node, |host, _| host.ring.acknowledge(to));
    }

    /// The disk of `node` has all that was ordered up to here.
    pub fn tell_stored(&mut self, node: usize, upto: u64) {
        self.ask(node, |Host { ring, .. }, now| ring.tell_stored(now, ring.id(), upto));
    }

    pub fn ask_stored(&mut self, node: usize) {
        self.ask(node, |host, now| host.ring.ask_stored(now));
    }

    pub fn confirm(&mut self, node: usize) -> Option<u64> {
        self.ask(node, |host, now| host.ring.confirm(now))
    }

    pub fn inject(&mut self, node: usize, datagram: Datagram) {
        self.ask(node, |host, now| host.ring.handle_message(now, datagram));
    }

    pub fn split(&mut self, sides: &[usize]) {
        self.heal();
        for a in 0..self.size() {
            for b in (0..self.size()).filter(|b| sides[a] != sides[*b]) {
                self.cut(a, b);
            }
        }
    }

    fn rings(&self) -> impl Iterator<Item = &Ring> + Clone {
        self.world.running().map(|(_, host)| &host.ring)
    }

    /// Everybody who runs is in one ring, and nothing waits.
    pub fn is_one_ring(&self) -> bool {
        let members: Vec<_> =
            self.world.running().map(|(_, host)| self.lives[host.life].member).collect();
        let id = self.rings().next().map(Ring::id);
        self.rings().all(|ring| {
            ring.state_name() == "operational" && Some(ring.id()) == id && ring.members() == members
        })
    }

    pub fn is_quiet(&self) -> bool {
        let most = self.rings().map(Ring::delivered).max();
        let quiet = |ring: &Ring| ring.queued() == 0 && Some(ring.delivered()) == most;
        self.is_one_ring() && self.rings().all(quiet)
    }

    pub fn run(&mut self, span: Duration) {
        Simulation::run(self, span);
    }

    /// Runs until `done`, for at most this many milliseconds.
    pub fn run_until(&mut self, at_most: u64, done: impl Fn(&Cluster) -> bool) {
        if !Simulation::run_until(self, millis(at_most), done) {
            panic!("not done after {at_most} ms: {:#?}", self.rings().collect::<Vec<_>>());
        }
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.note(self.world.now, &line());
        }
    }

    /// Starts a trace whose clock starts at zero.
    pub fn start_trace(&mut self) {
        self.trace = Some(Trace::new(self.now()));
    }

    /// The trace since [`Cluster::start_trace`].
    pub fn trace(&self) -> &Trace {
        self.trace.as_ref().expect("traced")
    }
}
