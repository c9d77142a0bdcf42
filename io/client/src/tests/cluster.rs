//! Nodes that do as they are told, and a network of 100 µs one way, without clock and sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use testkit::Queue;
use wire::client::{
    Bound, Farewell, Frame, Outcome, Reply, Request, Target, Targets, Watch, Welcome,
};
use wire::ordered::Style;
use wire::versions::CLIENT;
use wire::{ClientId, Extension, GroupId, MethodId, NodeId, Time, VersionRange, ViewNumber};

use crate::{
    Balancing, CallError, CallId, Config, Event, Invocation, Link, Output, Reading, Session,
};

pub(super) const LATENCY: Duration = Duration::from_micros(100);
pub(super) const GROUP: &str = "counter";

pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(super) fn address(node: u32) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8], 7100))
}

fn node_at(address: SocketAddr) -> NodeId {
    let SocketAddr::V4(address) = address else { panic!("nodes have addresses of version 4") };
    NodeId(address.ip().octets()[3].into())
}

/// The targets of this view: these nodes, the first the primary.
pub(super) fn targets(view: u64, nodes: &[u32]) -> Targets {
    let target = |node: &u32| Target { node: NodeId(*node), address: address(*node) };
    Targets {
        view: ViewNumber(view),
        style: Style::SemiActive,
        nodes: nodes.iter().map(target).collect(),
    }
}

/// A node's treatment of a request.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// Answers so.
    Answer(Outcome, Option<Targets>),
    /// Answers so, after this time.
    Later(Duration, Outcome),
    /// Answers nothing, but lives.
    AckLevel,
}

impl Manner {
    pub(super) fn ok() -> Manner {
        Manner::Answer(Outcome::Ok(Bytes::from_static(b"done")), None)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its process runs.
    pub(super) up: bool,
    /// It is stopped, or its cable is cut: what is sent to it is lost.
    pub(super) mute: bool,
    /// The versions that it speaks.
    pub(super) speaks: VersionRange,
    /// It takes no clients, and says why.
    pub(super) farewell: Option<String>,
    pub(super) bound: Option<Targets>,
    pub(super) manner: Manner,
    /// The treatment of the next requests, before `manner`.
    pub(super) script: VecDeque<Manner>,
}

enum Arrival {
    Connected(Link),
    Disconnected(Link),
    Frame(Link, Frame),
    ToNode(Link, Frame),
}

/// The session under test and all that surrounds it.
pub(super) struct Cluster {
    pub(super) session: Session,
    pub(super) now: Time,
    pub(super) nodes: BTreeMap<SocketAddr, Node>,
    links: BTreeMap<Link, SocketAddr>,
    on_the_way: Queue<Arrival>,
    pub(super) dials: Vec<(Time, SocketAddr)>,
    /// All requests, with the moment at which the session sent each.
    pub(super) requests: Vec<(Time, SocketAddr, Request)>,
    pub(super) binds: Vec<(Time, SocketAddr)>,
    pub(super) watches: Vec<(SocketAddr, Watch)>,
    pub(super) done: BTreeMap<CallId, (Time, Result<Bytes, CallError>)>,
    /// Each replica's reply, of calls that went to all.
    pub(super) answers: BTreeMap<CallId, Vec<crate::Answer>>,
    pub(super) events: Vec<Event>,
}

impl Cluster {
    /// Nodes 1 to `count`, all replicas of one group with node 1 as its primary; the client is
    /// given the address of the last.
    pub(super) fn new(count: u32) -> Cluster {
        Cluster::given(count, &[count])
    }

    /// A client of a session whose calls have keys.
    pub(super) fn keyed(count: u32) -> Cluster {
        let mut cluster = Cluster::new(count);
        let addresses = vec![address(count)];
        let config = Config { keyed: true, ..Config::new(ClientId(77), addresses, 1) };
        cluster.session = Session::new(config, Time::ZERO);
        cluster
    }

    pub(super) fn given(count: u32, given: &[u32]) -> Cluster {
        let all: Vec<u32> = (1..=count).collect();
        let node = |number: &u32| {
            let node = Node {
                up: true,
                mute: false,
                speaks: CLIENT,
                farewell: None,
                bound: Some(targets(1, &all)),
                manner: Manner::ok(),
                script: VecDeque::new(),
            };
            (address(*number), node)
        };
        let addresses = given.iter().map(|node| address(*node)).collect();
        let config = Config::new(ClientId(77), addresses, 1);
        Cluster {
            session: Session::new(config, Time::ZERO),
            now: Time(1_000_000_000),
            nodes: all.iter().map(node).collect(),
            links: BTreeMap::new(),
            on_the_way: Queue::default(),
            dials: Vec::new(),
            requests: Vec::new(),
            binds: Vec::new(),
            watches: Vec::new(),
            done: BTreeMap::new(),
            answers: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    pub(super) fn node(&mut self, number: u32) -> &mut Node {
        self.nodes.get_mut(&address(number)).expect("the node is in the cluster")
    }

    pub(super) fn all_say(&mut self, bound: Targets) {
        self.nodes.values_mut().for_each(|node| node.bound = Some(bound.clone()));
    }

    pub(super) fn call(&mut self, deadline: Duration) -> CallId {
        self.call_group(GROUP, deadline)
    }

    pub(super) fn call_group(&mut self, group: &str, deadline: Duration) -> CallId {
        self.begin(Invocation::new(group, MethodId(5)).body("args").within(deadline))
    }

    pub(super) fn begin(&mut self, invocation: Invocation<'_>) -> CallId {
        let id = self.session.call(self.now, invocation);
        self.collect();
        id
    }

    /// Asks all replicas.
    pub(super) fn gather(&mut self, deadline: Duration, balancing: Balancing) -> CallId {
        let invocation = Invocation::new(GROUP, MethodId(5)).body("args").within(deadline);
        let id = self.session.gather(self.now, invocation.balancing(balancing));
        self.collect();
        id
    }

    pub(super) fn read(&mut self, deadline: Duration, reading: Reading) -> CallId {
        self.begin(Invocation::new(GROUP, MethodId(5)).within(deadline).reading(reading))
    }

    /// Calls, and runs until the call has ended.
    pub(super) fn finish(&mut self, deadline: Duration) -> Result<Bytes, CallError> {
        let id = self.call(deadline);
        self.result(id)
    }

    /// Runs until this call has ended.
    pub(super) fn result(&mut self, id: CallId) -> Result<Bytes, CallError> {
        while !self.done.contains_key(&id) {
            assert!(self.step(Time::FAR), "the call hangs: nothing is to come");
        }
        self.done[&id].1.clone()
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    /// Kills a node's process: its host tells all peers.
    pub(super) fn kill(&mut self, number: u32) {
        self.node(number).up = false;
        let lost: Vec<Link> = self.links_to(address(number));
        for link in lost {
            self.send_later(LATENCY, Arrival::Disconnected(link));
        }
    }

    pub(super) fn is_connected(&self, number: u32) -> bool {
        !self.links_to(address(number)).is_empty()
    }

    pub(super) fn link_to(&self, number: u32) -> Link {
        self.links_to(address(number))[0]
    }

    fn links_to(&self, to: SocketAddr) -> Vec<Link> {
        self.links.iter().filter(|(_, at)| **at == to).map(|(link, _)| *link).collect()
    }

    /// Where requests of this number went, in order.
    pub(super) fn path(&self, number: u64) -> Vec<SocketAddr> {
        let of = self.requests.iter().filter(|(_, _, request)| request.number == number);
        of.map(|(_, to, _)| *to).collect()
    }

    /// Gives the session a frame as if this node had sent it.
    pub(super) fn inject(&mut self, link: Link, frame: Frame) {
        self.session.handle_frame(self.now, link, frame);
        self.collect();
    }

    pub(super) fn reply(number: u64, view: u64, outcome: Outcome) -> Frame {
        let group = GroupId::of(GROUP);
        Frame::Reply(Reply { number, group, view: ViewNumber(view), targets: None, outcome })
    }

    fn send_later(&mut self, after: Duration, arrival: Arrival) {
        self.on_the_way.push(self.now + after, arrival);
    }

    /// The next thing that happens until `end`. False if nothing does.
    fn step(&mut self, end: Time) -> bool {
        let arrival = self.on_the_way.due().unwrap_or(Time::FAR);
        let timeout = self.session.next_timeout().unwrap_or(Time::FAR);
        let next = arrival.min(timeout);
        if next > end || next == Time::FAR {
            return false;
        }
        self.now = self.now.max(next);
        if arrival <= timeout {
            let arrival = self.on_the_way.pop().expect("an arrival is next");
            self.arrive(arrival);
        } else {
            self.session.handle_timeout(self.now);
        }
        self.collect();
        true
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Connected(link) => self.session.handle_connected(self.now, link),
            Arrival::Disconnected(link) => {
                self.links.remove(&link);
                self.session.handle_disconnected(self.now, link);
            }
            Arrival::Frame(link, frame) if self.links.contains_key(&link) => {
                self.session.handle_frame(self.now, link, frame);
            }
            Arrival::ToNode(link, frame) if self.links.contains_key(&link) => {
                self.node_takes(link, frame);
            }
            Arrival::Frame(..) | Arrival::ToNode(..) => {}
        }
    }

    fn node_takes(&mut self, link: Link, frame: Frame) {
        let at = self.links[&link];
        let Some(node) = self.nodes.get_mut(&at).filter(|node| node.up && !node.mute) else {
            return;
        };
        let (after, frame) = match frame {
            Frame::Hello(hello)
                if node.speaks.common(hello.speaks).is_none() || node.farewell.is_some() =>
            {
                let reason = node.farewell.clone().unwrap_or("another version".into());
                let farewell = Farewell { speaks: node.speaks, ..Farewell::new(reason) };
                self.send_later(LATENCY, Arrival::Frame(link, Frame::Farewell(farewell)));
                return self.send_later(LATENCY * 2, Arrival::Disconnected(link));
            }
            Frame::Hello(_) => {
                let cluster = "steadfast".into();
                let (version, node) = (node.speaks.greatest, node_at(at));
                let extension = Extension::default();
                (LATENCY, Frame::Welcome(Welcome { version, node, cluster, extension }))
            }
            Frame::Watch(watch) => return self.watches.push((at, watch)),
            Frame::Bind(bind) => {
                let targets = node.bound.clone().filter(|_| bind.name == GROUP);
                (LATENCY, Frame::Bound(Bound { group: GroupId::of(&bind.name), targets }))
            }
            Frame::Request(request) => {
                let (after, outcome, targets) =
                    match node.script.pop_front().unwrap_or(node.manner.clone()) {
                        Manner::Answer(outcome, targets) => (LATENCY, outcome, targets),
                        Manner::Later(after, outcome) => (after, outcome, None),
                        Manner::AckLevel => return,
                    };
                let view = targets.as_ref().map_or(request.view, |targets| targets.view);
                let (number, group) = (request.number, request.group);
                (after, Frame::Reply(Reply { number, group, view, targets, outcome }))
            }
            other => panic!("a client never sends {other:?}"),
        };
        self.send_later(after, Arrival::Frame(link, frame));
    }

    /// Does what the session says.
    pub(super) fn collect(&mut self) {
        self.session.check_invariants();
        while let Some(output) = self.session.poll_output() {
            match output {
                Output::Connect { link, address } => self.dial(link, address),
                Output::Send { link, frame } => {
                    let to = self.links[&link];
                    match &frame {
                        Frame::Request(request) => {
                            self.requests.push((self.now, to, request.clone()));
                        }
                        Frame::Bind(_) => self.binds.push((self.now, to)),
                        _ => {}
                    }
                    self.send_later(LATENCY, Arrival::ToNode(link, frame));
                }
                Output::Disconnect { link } => drop(self.links.remove(&link)),
                Output::Done { call, result, answers } => {
                    self.answers.insert(call, answers);
                    let before = self.done.insert(call, (self.now, result));
                    assert!(before.is_none(), "{call:?} ends twice");
                }
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    fn dial(&mut self, link: Link, to: SocketAddr) {
        self.dials.push((self.now, to));
        self.links.insert(link, to);
        match self.nodes.get(&to) {
            Some(node) if node.mute => {}
            Some(node) if node.up => self.send_later(LATENCY * 2, Arrival::Connected(link)),
            _ => self.send_later(LATENCY * 2, Arrival::Disconnected(link)),
        }
    }
}
