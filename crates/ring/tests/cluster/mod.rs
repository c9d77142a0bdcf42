//! A cluster of rings in virtual time: a network that loses, doubles, delays and splits, hosts
//! that crash, come back and are held up; and what each life of a node saw.
#![allow(dead_code)] // Each test binary uses its part.
#![allow(missing_docs)]

pub mod check;
pub mod detection;
pub mod fairness;
pub mod promise;
pub mod slow;
pub mod swarming;
mod words;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;

use bytes::Bytes;
use steadfast_ring::{
    Config, Configuration, ConfigurationKind, Delivery, Event, Level, Output, Ring, Timing,
};
use wire::ring::{Datagram, Message};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId, Random, RingId, Time};
use words::{describe, kind};

pub const CLUSTER: ClusterId = ClusterId(7);

pub fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

pub fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Timers five times as quick as by default: a seed covers more in less virtual time.
pub fn quick() -> Timing {
    Timing {
        token_timeout: millis(20),
        token_timeout_max: millis(80),
        heartbeat: millis(5),
        heartbeat_max: millis(25),
        token_retransmit: millis(2),
        ack_wait: micros(1_000),
        want_retry: micros(1_000),
        join_interval: millis(2),
        suspect_wait: millis(4),
        consensus_timeout: millis(10),
        beacon_interval: millis(20),
        hold_off_max: millis(400),
        slow_limit: millis(100),
    }
}

/// What one life of a node was told, in order.
#[derive(Clone, Debug)]
pub enum Seen {
    Configuration(Configuration),
    Delivery(Delivery),
    Held {
        ring: RingId,
        majority: u64,
        all: u64,
    },
    /// It handed in its message of this number.
    Multicast(usize),
}

#[derive(Debug)]
pub struct Life {
    pub member: Member,
    pub seen: Vec<Seen>,
    pub events: Vec<(Time, Event)>,
    pub sent: Vec<Bytes>,
    pub levels: Vec<Level>,
    pub alive: bool,
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

#[derive(Clone)]
pub struct Tune {
    pub timing: Timing,
    pub window: usize,
    pub turn: usize,
    pub accelerated: usize,
    pub parking: bool,
    pub slow_share: u32,
    #[cfg(feature = "planted-bugs")]
    pub bug: Option<steadfast_ring::Bug>,
}

impl Default for Tune {
    fn default() -> Self {
        Tune {
            timing: quick(),
            window: 64,
            turn: 16,
            accelerated: 8,
            parking: true,
            slow_share: 50,
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }
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
        #[cfg(feature = "planted-bugs")]
        {
            config.bug = self.tune.bug;
        }
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

    /// Runs until `done`, for at most this many milliseconds.
    pub fn run_until(&mut self, at_most: u64, done: impl Fn(&Cluster) -> bool) {
        let end = self.now + millis(at_most);
        while !done(self) {
            if !self.step(end) {
                let states: Vec<_> =
                    self.hosts.iter().flatten().map(|h| format!("{:?}", h.ring)).collect();
                panic!("not done after {at_most} ms: {states:#?}");
            }
        }
    }

    /// The next thing that happens, unless it is after `end`.
    pub fn step(&mut self, end: Time) -> bool {
        self.patience = self.patience.checked_sub(1).expect("the run comes to an end");
        let timer = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(i, host)| {
                let host = host.as_ref()?;
                Some((host.ring.next_timeout()?.max(host.held_until).max(self.now), i))
            })
            .min();
        let arrival = self.heap.peek().map(|Reverse((at, _))| *at);
        match (timer, arrival) {
            // What has arrived is read before timers fire, as the porch does.
            (timer, Some(at)) if at <= end && timer.is_none_or(|(due, _)| at <= due) => {
                let Reverse((at, ticket)) = self.heap.pop().expect("peeked");
                self.now = self.now.max(at);
                let happening = self.happenings.remove(&ticket).expect("scheduled");
                self.happen(happening);
                true
            }
            (Some((due, node)), _) if due <= end => {
                self.now = due;
                self.ring_mut(node).handle_timeout(due);
                self.collect(node);
                true
            }
            _ => false,
        }
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Arrive { from, to, datagram } => match &mut self.hosts[to] {
                Some(host) if host.held_until > now => host.waiting.push(datagram),
                Some(host) if host.unread > 0 || !host.reading.is_zero() => {
                    if host.unread < SOCKET {
                        host.unread += 1;
                        host.read_at = host.read_at.max(now) + host.reading;
                        let (at, life) = (host.read_at, host.life);
                        self.schedule(at, Happening::Read { at: to, life, datagram });
                    }
                }
                Some(_) => self.arrive(to, datagram),
                None => {
                    if self.refusals
                        && let Some(host) = &self.hosts[from]
                    {
                        let life = host.life;
                        let node = NodeId(to as u32);
                        let at = now + self.delay;
                        self.schedule(at, Happening::Refuse { at: from, life, node });
                    }
                }
            },
            Happening::Read { at, life, datagram } => {
                if let Some(host) = self.hosts[at].as_mut().filter(|host| host.life == life) {
                    host.unread -= 1;
                    self.arrive(at, datagram);
                }
            }
            Happening::Refuse { at, life, node } => {
                if let Some(host) = self.hosts[at].as_mut().filter(|host| host.life == life) {
                    host.ring.handle_unreachable(now, node);
                    self.collect(at);
                }
            }
            Happening::Wake { at } => {
                if let Some(host) = &mut self.hosts[at] {
                    for datagram in std::mem::take(&mut host.waiting) {
                        self.arrive(at, datagram);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, to: usize, datagram: Bytes) {
        if !self.runs(to) {
            return;
        }
        let now = self.now;
        let datagram = Datagram::decode(CLUSTER, &datagram).expect("rings send what can be read");
        self.ring_mut(to).handle_message(now, datagram);
        self.collect(to);
    }

    fn schedule(&mut self, at: Time, happening: Happening) {
        self.ticket += 1;
        self.heap.push(Reverse((at, self.ticket)));
        self.happenings.insert(self.ticket, happening);
    }

    /// Carries out what a ring asks for.
    fn collect(&mut self, node: usize) {
        let host = self.hosts[node].as_mut().expect("runs");
        host.ring.check_invariants();
        let life = host.life;
        let mut outputs = Vec::new();
        while let Some(output) = host.ring.poll_output() {
            outputs.push(output);
        }
        let mut dies = false;
        for output in outputs {
            match output {
                Output::Send { .. } if dies => {}
                Output::Send { to, datagram, .. } => {
                    for place in to.iter() {
                        self.send(node, place, datagram.clone());
                    }
                }
                Output::Deliver(delivery) => {
                    self.note(|| {
                        let text = String::from_utf8_lossy(&delivery.payload);
                        let text = text.split(':').next().unwrap_or_default().to_owned();
                        let level = if delivery.level == Level::Safe { " safe" } else { "" };
                        let kind = if delivery.contiguous { "" } else { " after a gap" };
                        format!(
                            "n{node} delivers{level} {}/{} {text}{kind}",
                            delivery.ring, delivery.sequence
                        )
                    });
                    self.lives[life].seen.push(Seen::Delivery(delivery));
                }
                Output::Configuration(configuration) => {
                    let regular = configuration.kind == ConfigurationKind::Regular;
                    dies |= regular && self.fragile > 0 && self.random.one_in(self.fragile);
                    self.note(|| {
                        let Configuration { kind, ring, members } = &configuration;
                        let nodes: Vec<_> = members.iter().map(|m| m.node).collect();
                        format!("n{node} {kind:?} {ring} {nodes:?}")
                    });
                    self.lives[life].seen.push(Seen::Configuration(configuration));
                }
                Output::Stored { .. } => {}
                Output::Held { ring, majority, all } => {
                    self.note(|| format!("n{node} held {ring} majority={majority} all={all}"));
                    self.lives[life].seen.push(Seen::Held { ring, majority, all });
                }
                Output::Event(event) => {
                    if !matches!(event, Event::Installed { .. }) {
                        self.note(|| format!("n{node} {event:?}"));
                    }
                    let now = self.now;
                    self.lives[life].events.push((now, event));
                }
            }
        }
        if dies {
            self.crash(node);
        }
    }

    fn send(&mut self, from: usize, to: usize, datagram: Bytes) {
        assert!(from != to && to < self.size());
        assert!(datagram.len() <= 1_400, "larger than a datagram");
        let message =
            Datagram::decode(CLUSTER, &datagram).expect("a ring writes what it reads").message;
        *self.counts.entry(kind(&message)).or_default() += 1;
        if let Some(keep) = &mut self.keep {
            keep.push((to, datagram.clone()));
        }
        let mut copies = 1;
        let mut lost = self.cut.contains(&(from, to)) || self.random.below(1_000) < self.loss;
        lost |= (self.filter)(from, to, &message);
        if let Some(drop_next) = self.drop_next
            && drop_next(&message)
        {
            lost = true;
            self.drop_next = None;
        }
        if lost {
            copies = 0;
        } else if self.random.below(1_000) < self.doubled {
            copies = 2;
        }
        self.note(|| {
            let lost = if lost { "  LOST" } else { "" };
            format!("n{from} -> n{to} {}{lost}", describe(&message))
        });
        for _ in 0..copies {
            let jitter = self.random.below(self.jitter.as_nanos() as u64 + 1);
            let host = self.hosts[from].as_mut().expect("runs");
            host.busy_until = host.busy_until.max(self.now) + self.pace;
            let at = host.busy_until + self.delay + Duration::from_nanos(jitter);
            self.schedule(at, Happening::Arrive { from, to, datagram: datagram.clone() });
        }
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
