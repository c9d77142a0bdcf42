//! Hosts with their clocks and processes, joined by the network, in virtual time.
//!
//! Both worlds (whole clusters, bare rings) stand on this; it knows a process only as a machine
//! that takes datagrams and time.

mod keyfile;
mod sealing;

use std::collections::VecDeque;

use bytes::Bytes;
use wire::{Duration, Incarnation, Member, NodeId, NodeSet, Time};

use crate::clock::Clock;
use crate::network::{Network, Place};
use crate::process::Process;
use crate::queue::Queue;
use crate::trace::{Trace, digest};
use sealing::{Sealing, Veil};

pub use crate::network::{node_id, place_of};
pub use keyfile::next_key;

/// An input of a process.
pub enum Input<X> {
    /// A datagram and the place that sent it.
    Datagram(Place, Bytes),
    /// A datagram to this node was refused by its host.
    Refused(NodeId),
    /// An event that only the world understands.
    Extra(X),
}

enum What<X> {
    Arrive(Place, Input<X>),
    /// A slow reader has come to this one.
    Read(Place, Input<X>),
    Wake(Place),
    /// Somebody without the key sent it, as if from this place.
    Outsider(Place, Place, Bytes),
    World(X),
}

/// A step that the world must handle.
pub enum Step<X> {
    /// The process at this node ran: take its outputs.
    Ran(usize),
    /// This is for the process at this node.
    Node(usize, X),
    /// This is for the world itself.
    World(X),
}

/// Datagrams that wait in the socket of a stopped process; more are lost, as in a kernel.
const SOCKET_BUFFER: usize = 256;

/// Timers that fire one after the other without time passing: more is a machine that spins.
const MAX_SPINS: u32 = 1_000;

/// Bytes at the head of a datagram that go into the hash of a run.
const HEAD: usize = 72;

/// The invariants of a machine are looked at after so many of its steps: what they find is seldom
/// gone by then, and looking costs as much as the steps themselves. A run that is told aloud looks
/// after every one.
const CHECK_EVERY: u64 = 8;

/// Happenings of one run: a healthy one has some 10,000.
const MAX_TURNS: u64 = 1_500_000;

/// One host.
pub struct Host<P, X> {
    /// Its clocks.
    pub clock: Clock,
    /// The process that runs there.
    pub process: Option<P>,
    /// The machine has power: a datagram to a dead process is refused, not lost.
    pub powered: bool,
    /// The process is stopped: its inputs wait.
    pub paused: bool,
    /// The life that runs, or ran last.
    pub incarnation: Incarnation,
    inbox: VecDeque<Input<X>>,
    /// When the process is looked at next for its timer, in true time.
    wake: Option<Time>,
    /// When its timer is due, by its own clock.
    due: Option<Time>,
    /// Its timer has just fired, so many times in a row without time passing.
    fired: bool,
    spins: u32,
    /// It reads its socket slowly: a datagram takes it so long.
    lag: Option<Duration>,
    /// When it has read what waits, and how much does.
    read_at: Time,
    unread: usize,
    /// The seal of its datagrams.
    veil: Option<Veil>,
}

impl<P, X> Host<P, X> {
    /// Runs and is not stopped.
    pub fn runs(&self) -> bool {
        self.process.is_some() && !self.paused
    }
}

/// Hosts, network and time.
pub struct Fabric<P, X> {
    /// The nodes' hosts.
    pub hosts: Vec<Host<P, X>>,
    /// Between nodes and clients.
    pub network: Network,
    /// The record of the run.
    pub trace: Trace,
    /// Datagrams sent so far.
    pub datagrams: u64,
    queue: Queue<What<X>>,
    turns: u64,
    settled: u64,
    /// The latest reading of wall clocks before they were set.
    latest: Time,
    /// Datagrams are sealed, and there is an outsider.
    sealing: Option<Box<Sealing>>,
}

impl<P: Process, X> Fabric<P, X> {
    /// Hosts without processes.
    pub fn new(clocks: Vec<Clock>, network: Network, aloud: bool) -> Self {
        let host = |clock| Host {
            clock,
            process: None,
            powered: true,
            paused: false,
            incarnation: Incarnation(0),
            inbox: VecDeque::new(),
            wake: None,
            due: None,
            fired: false,
            spins: 0,
            lag: None,
            read_at: Time::ZERO,
            unread: 0,
            veil: None,
        };
        Fabric {
            hosts: clocks.into_iter().map(host).collect(),
            network,
            trace: Trace::new(aloud),
            datagrams: 0,
            queue: Queue::default(),
            turns: 0,
            settled: 0,
            latest: Time::ZERO,
            sealing: None,
        }
    }

    /// Whether it is time to look at a machine's invariants.
    pub fn looks(&self) -> bool {
        self.trace.aloud() || self.settled.is_multiple_of(CHECK_EVERY)
    }

    /// Happenings so far.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// A node's process, if it runs.
    pub fn running(&mut self, node: usize) -> Option<&mut P> {
        let host = &mut self.hosts[node];
        if host.runs() { host.process.as_mut() } else { None }
    }

    /// Something happens now that belongs to the run.
    pub fn note(&mut self, what: u8, place: usize, words: [u64; 2]) {
        self.trace.note(self.now(), what, place, words);
    }

    /// The same in words, if somebody listens.
    pub fn say(&self, words: impl FnOnce() -> String) {
        self.trace.say(self.now(), words);
    }

    /// True time.
    pub fn now(&self) -> Time {
        self.queue.now()
    }

    /// The monotonic clock of this node.
    pub fn local(&self, node: usize) -> Time {
        self.hosts[node].clock.local(self.now())
    }

    /// The wall clock of this node.
    pub fn wall(&self, node: usize) -> Time {
        self.hosts[node].clock.wall(self.now())
    }

    /// The life that runs at this node, or ran last.
    pub fn member(&self, node: usize) -> Member {
        Member { node: node_id(node), incarnation: self.hosts[node].incarnation }
    }

    /// Something for the world, later.
    pub fn later(&mut self, span: Duration, what: X) {
        let at = self.now() + span;
        self.queue.push(at, What::World(what));
    }

    /// Something for the world, at this true time.
    pub fn at(&mut self, at: Time, what: X) {
        self.queue.push(at, What::World(what));
    }

    /// Something for a node's process, at this true time; a stopped process gets it when it goes
    /// on.
    pub fn deliver(&mut self, at: Time, node: usize, what: X) {
        self.queue.push(at, What::Arrive(node, Input::Extra(what)));
    }

    /// From now on this node takes so long to read a datagram from its socket, or no time.
    pub fn lag(&mut self, node: usize, gap: Option<Duration>) {
        self.hosts[node].lag = gap;
    }

    /// A node that has not read yet what has come to its socket.
    pub fn behind(&self) -> Option<usize> {
        self.hosts.iter().position(|host| host.runs() && host.unread > 0)
    }

    /// The wall clock of this node is set by so many milliseconds.
    pub fn jump(&mut self, node: usize, by: i64) {
        self.latest = self.latest_wall();
        self.hosts[node].clock.jump(by);
    }

    /// The latest that any wall clock has said so far.
    pub fn latest_wall(&self) -> Time {
        let now = self.now();
        let walls = self.hosts.iter().map(|host| host.clock.wall(now));
        walls.max().unwrap_or_default().max(self.latest)
    }

    /// A process starts in a new life.
    pub fn start(&mut self, node: usize, process: P) {
        let host = &mut self.hosts[node];
        host.powered = true;
        host.paused = false;
        host.process = Some(process);
        (host.wake, host.due, host.fired) = (None, None, false);
        self.put_on(node);
        self.settle(node);
    }

    /// The process is gone at once, with all that it had in memory; `power` with its host.
    pub fn kill(&mut self, node: usize, power: bool) -> Option<P> {
        let host = &mut self.hosts[node];
        host.powered = !power;
        host.paused = false;
        host.wake = None;
        host.inbox.clear();
        host.process.take()
    }

    /// The process is stopped (SIGSTOP).
    pub fn pause(&mut self, node: usize) {
        self.hosts[node].paused = true;
    }

    /// A stopped process goes on: first with what waits in its sockets, then with its timers.
    pub fn resume(&mut self, node: usize) {
        let now = self.now();
        let host = &mut self.hosts[node];
        if !std::mem::take(&mut host.paused) {
            return;
        }
        for input in std::mem::take(&mut host.inbox) {
            self.queue.push(now, What::Arrive(node, input));
        }
        host.wake = Some(now);
        self.queue.push(now, What::Wake(node));
    }

    /// A datagram leaves.
    pub fn send(&mut self, from: usize, to: NodeSet, bytes: &Bytes) {
        match self.sealing {
            Some(_) => self.send_sealed(from, to, bytes),
            None => self.put(from, to, bytes),
        }
    }

    /// These bytes are given to the network.
    fn put(&mut self, from: usize, to: NodeSet, bytes: &Bytes) {
        let now = self.now();
        // The head of a datagram distinguishes it from others.
        let words = digest(&bytes[..bytes.len().min(HEAD)]) ^ bytes.len() as u64;
        for to in to.iter() {
            self.datagrams += 1;
            self.trace.note(now, 1, from, [to as u64, words]);
            for at in self.network.arrivals(now, from, to).into_iter().flatten() {
                self.queue.push(at, What::Arrive(to, Input::Datagram(from, bytes.clone())));
            }
        }
    }

    /// A datagram without words: a living process ignores it, a dead process's host refuses it.
    pub fn probe(&mut self, from: usize, to: NodeId) {
        let place = place_of(to);
        let host = &self.hosts[place];
        if host.process.is_none() && host.powered && self.network.joined(from, place) {
            self.refuse(from, place);
        }
    }

    /// After a process ran: its invariants hold, and its next timer is set.
    pub fn settle(&mut self, node: usize) {
        let now = self.now();
        self.settled += 1;
        let check = self.looks();
        let host = &mut self.hosts[node];
        let Some(process) = &host.process else { return };
        if check {
            process.check();
        }
        host.due = process.next_timeout();
        if std::mem::take(&mut host.fired) {
            let stands = host.due.is_some_and(|due| due <= host.clock.local(now));
            host.spins = if stands { host.spins + 1 } else { 0 };
            let id = node_id(node);
            assert!(
                host.spins < MAX_SPINS,
                "node {id}: its timer is due at once, {MAX_SPINS} times in a row"
            );
        }
        let Some(due) = host.due else { return };
        // A timer that is due at once fires a little later: a turn of a real loop takes time too.
        let at = host.clock.truth(due).max(now + Duration::from_micros(1));
        if host.wake.is_none_or(|wake| at < wake) {
            host.wake = Some(at);
            self.queue.push(at, What::Wake(node));
        }
    }

    /// When something happens next.
    pub fn due(&self) -> Option<Time> {
        self.queue.due()
    }

    /// Runs the next happening. `None`: nothing will happen by then.
    pub fn step(&mut self, by: Time) -> Option<Step<X>> {
        while self.queue.due().is_some_and(|due| due <= by) {
            self.turns += 1;
            let storm = self.turns >= MAX_TURNS;
            assert!(!storm, "more than {MAX_TURNS} happenings: the machines talk for talk's sake");
            match self.queue.pop()? {
                What::World(what) => return Some(Step::World(what)),
                What::Wake(node) => {
                    if self.wake(node) {
                        return Some(Step::Ran(node));
                    }
                }
                What::Read(node, input) => {
                    self.hosts[node].unread -= 1;
                    if let Some(step) = self.arrive(node, input) {
                        return Some(step);
                    }
                }
                // He takes the ways that there are: one that is cut is cut for what he repeats too.
                What::Outsider(from, to, bytes) => {
                    if self.network.reaches(from, to) {
                        let now = self.now();
                        self.queue.push(now, What::Arrive(to, Input::Datagram(from, bytes)));
                    }
                }
                What::Arrive(node, input) => {
                    let Some(input) = self.put_off(node, input) else { continue };
                    if let Some(step) = self.arrive(node, input) {
                        return Some(step);
                    }
                }
            }
        }
        None
    }

    fn wake(&mut self, node: usize) -> bool {
        let now = self.now();
        let host = &mut self.hosts[node];
        if host.wake != Some(now) || host.paused {
            return false;
        }
        host.wake = None;
        let Some(process) = &mut host.process else { return false };
        let local = host.clock.local(now);
        if host.due.is_none_or(|due| due > local) {
            self.settle(node);
            return false;
        }
        process.timeout(local);
        host.fired = true;
        self.trace.note(now, 2, node, [0, 0]);
        self.trace.say(now, || format!("{} timer", node_id(node)));
        true
    }

    /// A slow reader comes to a datagram later, or never: its socket is full.
    fn put_off(&mut self, node: usize, input: Input<X>) -> Option<Input<X>> {
        let now = self.now();
        let host = &mut self.hosts[node];
        let slow = host.lag.is_some() || host.unread > 0;
        if !slow || !host.runs() || !matches!(input, Input::Datagram(..)) {
            return Some(input);
        }
        if host.unread < SOCKET_BUFFER {
            host.unread += 1;
            host.read_at = host.read_at.max(now) + host.lag.unwrap_or(Duration::from_micros(1));
            self.queue.push(host.read_at, What::Read(node, input));
        }
        None
    }

    fn arrive(&mut self, node: usize, input: Input<X>) -> Option<Step<X>> {
        let now = self.now();
        let host = &mut self.hosts[node];
        let Some(process) = &mut host.process else {
            if let (Input::Datagram(from, _), true) = (&input, host.powered) {
                self.refuse(*from, node);
            }
            return None;
        };
        if host.paused {
            let full = host.inbox.len() >= SOCKET_BUFFER && matches!(input, Input::Datagram(..));
            if !full {
                host.inbox.push_back(input);
            }
            return None;
        }
        let local = host.clock.local(now);
        match input {
            Input::Datagram(from, bytes) => {
                let bytes = match self.sealing {
                    Some(_) => self.unseal(node, &bytes)?,
                    None => bytes,
                };
                let process = self.hosts[node].process.as_mut().expect("it runs");
                process.datagram(local, &bytes);
                self.trace.note(now, 3, node, [from as u64, bytes.len() as u64]);
                self.trace.say(now, || {
                    format!("{} <- {} {}", node_id(node), node_id(from), Shown(&bytes))
                });
            }
            Input::Refused(by) => {
                process.unreachable(local, by);
                self.trace.note(now, 4, node, [u64::from(by.0), 0]);
                self.trace.say(now, || format!("{} told: {by} is unreachable", node_id(node)));
            }
            Input::Extra(what) => return Some(Step::Node(node, what)),
        }
        Some(Step::Ran(node))
    }

    /// The host at `by` has no such process, and reports this to the datagram's sender.
    fn refuse(&mut self, to: Place, by: usize) {
        let at = self.now() + self.network.passage();
        if to < self.hosts.len() && self.network.reaches(by, to) {
            self.queue.push(at, What::Arrive(to, Input::Refused(node_id(by))));
        }
    }
}

/// A datagram in words, for traces.
struct Shown<'a>(&'a Bytes);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match wire::ring::Datagram::decode(crate::options::CLUSTER_ID, wire::versions::RING, self.0)
        {
            Ok(datagram) => write!(f, "{:?} from {}", Brief(&datagram.message), datagram.sender),
            Err(error) => write!(f, "malformed: {error}"),
        }
    }
}

struct Brief<'a>(&'a wire::ring::Message);

impl std::fmt::Debug for Brief<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            wire::ring::Message::Data(data) => {
                let wire::ring::Data { ring, hop, sequence, stable, origin, .. } = data;
                write!(f, "Data {ring} #{sequence} hop {hop} stable {stable}")?;
                write!(f, " {} bytes", data.body.len())?;
                match origin {
                    Some(origin) => write!(f, " recovered {origin:?}"),
                    None => Ok(()),
                }
            }
            message => write!(f, "{message:?}"),
        }
    }
}
