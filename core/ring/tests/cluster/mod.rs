//! A cluster of rings in virtual time: a network that loses, doubles, delays and splits, hosts
//! that crash, come back and are held up; and what each life of a node saw.
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

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;

use bytes::Bytes;
pub use life::{Life, Seen, Tune};
use steadfast_ring::{Config, Level, Ring};
use wire::ring::{Datagram, Message};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, Random, Time};

pub const CLUSTER: ClusterId = ClusterId(7);

pub fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

struct Host {
    ring: Ring,
    life: usize,
    held_until: Time,
    waiting: Vec<Bytes>,
    /// Until when its network card is busy with what was sent.
    busy_until: Time,
    /// How long it takes to read a datagram from its socket, when it has read what waits there, and how
    /// much does.
    reading: Duration,
    read_at: Time,
    unread: usize,
}

enum Happening {
    Arrive { from: usize, to: usize, datagram: Bytes },
    Read { at: usize, life: usize, datagram: Bytes },
    Refuse { at: usize, life: usize, node: NodeId },
    Wake { at: usize },
}

/// Datagrams that a socket keeps for a slow reader, as the porch asks the kernel for: two windows of each peer.
const SOCKET: usize = 4_096;

pub struct Cluster {
    pub now: Time,
    pub random: Random,
    pub lives: Vec<Life>,
    hosts: Vec<Option<Host>>,
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    ticket: u64,
    /// Things that may still happen: a run that never ends is an error too.
    pub patience: u64,
    /// Datagrams of 1,000 that are lost, and that arrive twice.
    pub loss: u64,
    pub doubled: u64,
    /// Shortest delay, and how much longer one may take.
    pub delay: Duration,
    pub jitter: Duration,
    /// How long a datagram takes to leave a host; the next one waits for it.
    pub pace: Duration,
    /// One way from the first to the second nothing passes.
    pub cut: BTreeSet<(usize, usize)>,
    /// Hosts tell senders that nobody listens.
    pub refusals: bool,
    pub configure: fn(&mut Config),
    pub tune: Tune,
    /// Text of everything that happens, for golden traces.
    pub trace: Option<String>,
    trace_from: Time,
    /// Datagrams sent, by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// One in this many installations of a ring is a node's last deed: nothing of what it
    /// would have sent then leaves. Zero for never.
    pub fragile: u64,
    /// All datagrams sent, with their receivers, for tests that send some of them again.
    pub keep: Option<Vec<(usize, Bytes)>>,
    /// Called with each datagram that is sent, before the network gets it.
    pub drop_next: Option<fn(&Message) -> bool>,
    /// What the network never carries: from, to, what.
    pub filter: fn(usize, usize, &Message) -> bool,
}

impl Cluster {
    /// `n` hosts, none of which runs yet.
    pub fn new(n: usize, seed: u64, tune: Tune) -> Self {
        Cluster {
            now: Time(1_000_000),
            random: Random::new(seed),
            lives: Vec::new(),
            hosts: (0..n).map(|_| None).collect(),
            heap: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            ticket: 0,
            patience: 2_000_000,
            loss: 0,
            doubled: 0,
            delay: micros(50),
            jitter: Duration::ZERO,
            pace: Duration::ZERO,
            cut: BTreeSet::new(),
            refusals: true,
            configure: |_| {},
            tune,
            trace: None,
            trace_from: Time::ZERO,
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

    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    pub fn runs(&self, node: usize) -> bool {
        self.hosts[node].is_some()
    }

    pub fn start(&mut self, node: usize) {
        assert!(!self.runs(node));
        let nodes: Vec<_> = (0..self.size()).map(|n| NodeId(n as u32)).collect();
        // As the porch does: the time of the start, which grows with every life.
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
        let ring = Ring::new(config, self.now).expect("the test's configuration is right");
        self.lives.push(Life {
            member: me,
            seen: vec![],
            events: vec![],
            sent: vec![],
            levels: vec![],
            alive: true,
        });
        let life = self.lives.len() - 1;
        self.hosts[node] = Some(Host {
            ring,
            life,
            held_until: Time::ZERO,
            waiting: vec![],
            busy_until: Time::ZERO,
            reading: Duration::ZERO,
            read_at: Time::ZERO,
            unread: 0,
        });
        self.collect(node);
    }

    pub fn crash(&mut self, node: usize) {
        if let Some(host) = self.hosts[node].take() {
            self.lives[host.life].alive = false;
            self.note(|| format!("n{node} crashes"));
        }
    }

    /// The host's process is stopped for a while; what arrives waits in its socket.
    pub fn hold_up(&mut self, node: usize, span: Duration) {
        let until = self.now + span;
        if let Some(host) = &mut self.hosts[node] {
            host.held_until = until;
            self.schedule(until, Happening::Wake { at: node });
        }
    }

    /// From now on this node takes so long to read a datagram. What does not fit into its socket is lost.
    pub fn read_slowly(&mut self, node: usize, each: Duration) {
        self.hosts[node].as_mut().expect("runs").reading = each;
    }

    pub fn leave(&mut self, node: usize) {
        let now = self.now;
        self.ring_mut(node).leave(now);
        self.collect(node);
    }

    pub fn ring(&self, node: usize) -> &Ring {
        &self.hosts[node].as_ref().expect("runs").ring
    }

    pub fn ring_mut(&mut self, node: usize) -> &mut Ring {
        &mut self.hosts[node].as_mut().expect("runs").ring
    }

    pub fn life(&self, node: usize) -> &Life {
        &self.lives[self.hosts[node].as_ref().expect("runs").life]
    }

    pub fn multicast(&mut self, node: usize, size: usize) {
        self.multicast_at(Level::Agreed, node, size);
    }

    pub fn multicast_safe(&mut self, node: usize) {
        self.multicast_at(Level::Safe, node, 0);
    }

    pub fn multicast_at(&mut self, level: Level, node: usize, size: usize) {
        let now = self.now;
        let Some(host) = &mut self.hosts[node] else { return };
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
        self.collect(node);
    }

    /// This node says to another how far it is.
    pub fn acknowledge(&mut self, node: usize, to: Member) {
        self.ring_mut(node).acknowledge(to);
        self.collect(node);
    }

    /// The disk of `node` has all that was ordered up to here.
    pub fn tell_stored(&mut self, node: usize, upto: u64) {
        let (now, ring) = (self.now, self.ring(node).id());
        self.ring_mut(node).tell_stored(now, ring, upto);
        self.collect(node);
    }

    pub fn ask_stored(&mut self, node: usize) {
        let now = self.now;
        self.ring_mut(node).ask_stored(now);
        self.collect(node);
    }

    pub fn confirm(&mut self, node: usize) -> Option<u64> {
        let now = self.now;
        let round = self.ring_mut(node).confirm(now);
        self.collect(node);
        round
    }

    pub fn inject(&mut self, node: usize, datagram: Datagram) {
        let now = self.now;
        self.ring_mut(node).handle_message(now, datagram);
        self.collect(node);
    }

    pub fn split(&mut self, sides: &[usize]) {
        self.cut.clear();
        for a in 0..self.size() {
            for b in 0..self.size() {
                if sides[a] != sides[b] {
                    self.cut.insert((a, b));
                }
            }
        }
    }

    /// Everybody who runs is in one ring, and nothing waits.
    pub fn is_one_ring(&self) -> bool {
        let running: Vec<_> = self.hosts.iter().flatten().map(|host| &host.ring).collect();
        let members: Vec<_> =
            self.hosts.iter().flatten().map(|host| self.lives[host.life].member).collect();
        running.iter().all(|ring| {
            ring.state_name() == "operational"
                && ring.id() == running[0].id()
                && ring.members() == members
        })
    }

    pub fn is_quiet(&self) -> bool {
        self.is_one_ring()
            && self.hosts.iter().flatten().all(|host| {
                host.ring.queued() == 0
                    && host.ring.delivered()
                        == self.hosts.iter().flatten().map(|h| h.ring.delivered()).max().unwrap()
            })
    }

    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    pub fn note(&mut self, line: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(trace) = &mut self.trace {
            // Left-aligned: a golden trace is compared without its indentation.
            let micros = now.since(self.trace_from).as_micros();
            let _ = writeln!(trace, "{micros:<4} us  {}", line());
        }
    }

    /// Starts a trace whose clock starts at zero.
    pub fn start_trace(&mut self) {
        self.trace_from = self.now;
        self.trace = Some(String::new());
    }
}
