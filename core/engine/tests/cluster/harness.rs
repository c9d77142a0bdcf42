//! A cluster of [`Stack`]s in virtual time: 30 µs from node to node, nothing lost, unless a test
//! says so. Services are logs of strings that answer `length:entry`; before that `group>text` calls another group.
//!
//! The nodes stand on rings that talk by datagrams, or, where the ring's timing is beside the point,
//! on the sequencer of one process.

mod asking;
mod backing;
mod calling;
mod dying;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use bytes::Bytes;
use steadfast_engine::ordering::{InProcess, Ring};
use steadfast_engine::{
    BenchError, BenchRequest, BenchResult, Changes, Command, Config, Event, Kept, MoveError,
    Output, RestoreError, RestyleError, SaveError, Saved, Stack, Ticket,
};
use wire::client::{Frame, Reply};
use wire::keys::KeyName;
use wire::ordered::{GroupOptions, Style};
use wire::{Caller, ClientId, Duration, GroupId, Incarnation, Member, NodeId, Time, ViewNumber};

use crate::base::Base;
use crate::shelf::{Shelf, Told};
use crate::tampered::{Tampered, Wrong};
use crate::vault::Vault;
use crate::voting::Fault;

pub mod service;

pub const DELAY: Duration = Duration::from_micros(30);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

struct Node<O> {
    stack: Stack<O>,
    logs: BTreeMap<GroupId, Vec<String>>,
    changes: BTreeMap<GroupId, Changes>,
    /// Requests that services here have executed.
    executions: usize,
    /// How often services here were told to run.
    starts: usize,
    /// Handlers that wait for a call of theirs, with what is given to them meanwhile.
    blocked: BTreeMap<GroupId, (Ticket, String, VecDeque<Command>)>,
    events: Vec<Event>,
    benches: Vec<Result<BenchResult, BenchError>>,
    owns: Vec<(u64, wire::client::Outcome)>,
    moves: Vec<Result<ViewNumber, MoveError>>,
    restyles: Vec<Result<ViewNumber, RestyleError>>,
    saves: Vec<Result<Saved, SaveError>>,
    restores: Vec<Result<ViewNumber, RestoreError>>,
    alive: bool,
    paused: bool,
    inbox: Vec<Sealed>,
    fault: Option<Fault>,
}

/// Ordered by time, then by number: what was sent first arrives first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flight(std::cmp::Reverse<(Time, u64, u32, u32, Sealed)>);

/// A datagram with the key that sealed it.
type Sealed = (KeyName, Bytes);

/// A client's connection to a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    node: u32,
    caller: Caller,
    client: ClientId,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    caller: Caller,
    number: u64,
    at: Time,
}

pub struct Cluster<O: Base = Ring> {
    now: Time,
    base: O::Shared,
    nodes: BTreeMap<u32, Node<O>>,
    flights: BinaryHeap<Flight>,
    sent: u64,
    /// What each byte adds to a datagram's delay: with more than nothing the short overtake the long.
    pub per_byte: Duration,
    /// How critical the next calls are.
    pub criticality: u8,
    island: BTreeSet<u32>,
    views: BTreeMap<Caller, ViewNumber>,
    replies: BTreeMap<(Caller, u64), (Time, Reply)>,
    clients: BTreeMap<Caller, ClientId>,
    /// Calls that have not been answered.
    under_way: BTreeSet<(GroupId, ClientId, u64)>,
    /// Nodes that are about to die of what they execute.
    doomed: Vec<(Time, u32)>,
    callers: u64,
    life: u64,
    size: u32,
    /// The nodes' key files: they outlive the nodes.
    pub vaults: BTreeMap<u32, Vault>,
    /// Datagrams that a living node could not open.
    pub unopened: usize,
    /// The nodes' disks, if they have any.
    shelves: BTreeMap<u32, Shelf>,
    pub snapshot_after: u64,
}

fn member(node: u32, life: u64) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(life) }
}

impl Cluster<Ring> {
    /// Nodes in one ring that has the quorum.
    pub fn new(size: u32) -> Cluster {
        Cluster::formed(size, false)
    }

    /// The same, with a disk each.
    pub fn new_on_disk(size: u32) -> Cluster {
        Cluster::formed(size, true)
    }
}

impl Cluster<InProcess> {
    /// Nodes in one component, without a ring below.
    pub fn in_process(size: u32) -> Cluster<InProcess> {
        Cluster::formed(size, false)
    }

    /// The same, with a disk each.
    pub fn in_process_on_disk(size: u32) -> Cluster<InProcess> {
        Cluster::formed(size, true)
    }
}

impl Cluster<Tampered> {
    /// Nodes in one component, above a sequencer that can err.
    pub fn tampered(size: u32) -> Cluster<Tampered> {
        Cluster::formed(size, false)
    }

    /// One mistake is to be made at this node.
    pub fn plant(&mut self, node: u32, wrong: Wrong) {
        self.base.1.set(Some((NodeId(node), wrong)));
    }

    /// The mistake has been made.
    pub fn is_struck(&self) -> bool {
        self.base.1.get().is_none()
    }
}

impl<O: Base> Cluster<O> {
    fn formed(size: u32, disks: bool) -> Cluster<O> {
        let mut cluster = Cluster::begin(size, disks);
        cluster.run_until("one quorate ring", |cluster| {
            cluster.nodes.values().all(|node| {
                let ring = node.stack.status().ring;
                ring.members.len() == size as usize && ring.quorate == Some(true)
            })
        });
        cluster
    }

    /// Nodes that have just been started.
    pub fn starting(size: u32) -> Cluster<O> {
        Cluster::begin(size, false)
    }

    /// The same, with a disk each, on which nothing is yet.
    pub fn starting_on_disk(size: u32) -> Cluster<O> {
        Cluster::begin(size, true)
    }

    fn begin(size: u32, disks: bool) -> Cluster<O> {
        let shelves = (1..=size).filter(|_| disks).map(|node| (node, Shelf::default()));
        let mut cluster = Cluster {
            now: Time(1_000_000_000),
            base: O::shared(),
            nodes: BTreeMap::new(),
            flights: BinaryHeap::new(),
            sent: 0,
            per_byte: Duration::ZERO,
            criticality: 0,
            island: BTreeSet::new(),
            views: BTreeMap::new(),
            replies: BTreeMap::new(),
            clients: BTreeMap::new(),
            under_way: BTreeSet::new(),
            doomed: Vec::new(),
            callers: 0,
            life: 1,
            size,
            vaults: (1..=size).map(|node| (node, Vault::default())).collect(),
            unopened: 0,
            shelves: shelves.collect(),
            snapshot_after: 10_000,
        };
        for node in 1..=size {
            cluster.start(node, true);
        }
        cluster.rearrange();
        cluster
    }

    fn start(&mut self, node: u32, first_life: bool) {
        let nodes: Vec<NodeId> = (1..=self.size).map(NodeId).collect();
        let me = member(node, self.life);
        let mut config = Config::new(me, nodes.clone(), "test".into());
        config.first_life = first_life;
        config.sealing = Some(self.vaults[&node].sealing());
        config.address = Some(([127, 0, 0, 1], 7000 + node as u16).into());
        config.storage = self.shelves.get_mut(&node).map(Shelf::open);
        config.snapshot_after = self.snapshot_after;
        let ordering = O::start(&self.base, self.now, me, nodes);
        let stack = Stack::new(config, ordering, self.now);
        let state = Node {
            stack,
            logs: BTreeMap::new(),
            changes: BTreeMap::new(),
            blocked: BTreeMap::new(),
            executions: 0,
            starts: 0,
            events: Vec::new(),
            benches: Vec::new(),
            owns: Vec::new(),
            moves: Vec::new(),
            restyles: Vec::new(),
            saves: Vec::new(),
            restores: Vec::new(),
            alive: true,
            paused: false,
            inbox: Vec::new(),
            fault: None,
        };
        self.nodes.insert(node, state);
        self.drain(node);
    }

    /// Tells what the nodes stand on who is there and reaches whom.
    fn rearrange(&mut self) {
        let living = self.nodes.iter().filter(|(_, node)| node.alive).map(|(id, _)| *id);
        let (inside, outside): (Vec<u32>, Vec<u32>) =
            living.partition(|id| self.island.contains(id));
        let components = [inside, outside].map(|ids| ids.into_iter().map(NodeId).collect());
        O::components(&self.base, self.now, &components);
    }

    pub fn node(&self, node: u32) -> &Stack<O> {
        &self.nodes[&node].stack
    }

    pub fn state(&self, node: u32, group: &str) -> &[String] {
        self.nodes[&node].logs.get(&GroupId::of(group)).map_or(&[], Vec::as_slice)
    }

    /// How many requests the services at this node have executed.
    pub fn executions(&self, node: u32) -> usize {
        self.nodes[&node].executions
    }

    /// How often the services at this node were told to run.
    pub fn starts(&self, node: u32) -> usize {
        self.nodes[&node].starts
    }

    pub fn kill(&mut self, node: u32) {
        self.nodes.get_mut(&node).unwrap().alive = false;
        self.rearrange();
    }

    pub fn restart(&mut self, node: u32) {
        self.life += 1;
        self.start(node, false);
        self.rearrange();
    }

    /// The disk of a node.
    pub fn shelf(&mut self, node: u32) -> &mut Shelf {
        self.shelves.get_mut(&node).unwrap()
    }

    pub fn pause(&mut self, node: u32) {
        self.nodes.get_mut(&node).unwrap().paused = true;
    }

    pub fn resume(&mut self, node: u32) {
        let now = self.now;
        let state = self.nodes.get_mut(&node).unwrap();
        state.paused = false;
        for (_, datagram) in std::mem::take(&mut state.inbox) {
            state.stack.handle_datagram(now, &datagram);
        }
        self.drain(node);
    }

    pub fn partition(&mut self, island: &[u32]) {
        self.island = island.iter().copied().collect();
        self.rearrange();
    }

    pub fn heal(&mut self) {
        self.island.clear();
        self.rearrange();
    }

    pub fn leave(&mut self, node: u32) {
        let now = self.now;
        self.nodes.get_mut(&node).unwrap().stack.leave(now);
        self.drain(node);
    }

    pub fn has_left(&self, node: u32) -> bool {
        self.told(node, |event| *event == Event::Left)
    }

    /// The node has told such an event.
    pub fn told(&self, node: u32, is: impl Fn(&Event) -> bool) -> bool {
        self.nodes[&node].events.iter().any(is)
    }

    pub fn bench(&mut self, node: u32, request: BenchRequest) -> Result<(), BenchError> {
        let now = self.now;
        let result = self.nodes.get_mut(&node).unwrap().stack.bench(now, request);
        self.drain(node);
        result
    }

    pub fn stop_bench(&mut self, node: u32) {
        let now = self.now;
        self.nodes.get_mut(&node).unwrap().stack.stop_bench(now);
        self.drain(node);
    }

    /// What came of the benchmark that the node was asked for.
    pub fn bench_outcome(&mut self, node: u32) -> Result<BenchResult, BenchError> {
        self.run_until("the end of a benchmark", |cluster| {
            !cluster.nodes[&node].benches.is_empty()
        });
        self.nodes.get_mut(&node).unwrap().benches.remove(0)
    }

    /// Calls that came to the node again and were not executed again.
    /// What came of a call of a node's own.
    pub fn own_outcome(&self, node: u32, number: u64) -> Option<wire::client::Outcome> {
        let mut owns = self.nodes[&node].owns.iter();
        owns.find(|(own, _)| *own == number).map(|(_, outcome)| outcome.clone())
    }

    pub fn copies(&self, node: u32) -> usize {
        self.times(node, |event| matches!(event, Event::Copy { .. }))
    }

    /// A node is asked to move the primary of a group to another.
    pub fn move_primary(&mut self, node: u32, group: &str, to: u32) -> Result<(), MoveError> {
        let group = GroupId::of(group);
        self.ask(node, |stack, now| stack.move_primary(now, group, NodeId(to)))
    }

    /// What came of the moves that the node was asked for.
    pub fn moved(&mut self, node: u32) -> Result<ViewNumber, MoveError> {
        self.run_until("the end of a move", |cluster| !cluster.nodes[&node].moves.is_empty());
        self.nodes.get_mut(&node).unwrap().moves.remove(0)
    }

    /// A node is asked to give a group another style.
    pub fn restyle(&mut self, node: u32, group: &str, style: Style) -> Result<(), RestyleError> {
        let group = GroupId::of(group);
        self.ask(node, |stack, now| stack.restyle(now, group, style))
    }

    /// What came of the changes of style that the node was asked for.
    pub fn restyled(&mut self, node: u32) -> Result<ViewNumber, RestyleError> {
        self.run_until("the end of a change of style", |cluster| {
            !cluster.nodes[&node].restyles.is_empty()
        });
        self.nodes.get_mut(&node).unwrap().restyles.remove(0)
    }

    /// The primary, as a node has it.
    pub fn primary(&self, node: u32, group: &str) -> Option<u32> {
        let status = self.nodes[&node].stack.status();
        let group = status.groups.iter().find(|g| g.name == group).expect("the group");
        group.primary.map(|member| member.node.0)
    }

    pub fn was_refused(&self, node: u32, group: &str) -> bool {
        let refused =
            |event: &Event| matches!(event, Event::JoinRefused { name, .. } if name == group);
        self.nodes[&node].events.iter().any(refused)
    }

    pub fn host_on(&mut self, group: &str, nodes: &[u32]) {
        self.host_on_with(group, nodes, GroupOptions::default());
    }

    pub fn host_on_with(&mut self, group: &str, nodes: &[u32], options: GroupOptions) {
        for (i, node) in nodes.iter().enumerate() {
            self.host_with(group, *node, options);
            self.run_until_synced(group, i + 1);
        }
    }

    pub fn host_on_later(&mut self, group: &str, node: u32) {
        self.host_with(group, node, GroupOptions::default());
    }

    pub fn host_with(&mut self, group: &str, node: u32, options: GroupOptions) {
        let now = self.now;
        self.nodes.get_mut(&node).unwrap().stack.host(now, group, options).expect("hosted");
        self.drain(node);
    }

    pub fn unhost(&mut self, group: &str, node: u32) {
        let now = self.now;
        self.nodes.get_mut(&node).unwrap().stack.unhost(now, GroupId::of(group));
        self.drain(node);
    }

    /// The nodes that have replicas, in order of rank.
    pub fn replicas(&self, group: &str) -> Vec<u32> {
        self.replicas_at(1, group)
    }

    /// The same, as this node has it.
    pub fn replicas_at(&self, node: u32, group: &str) -> Vec<u32> {
        let status = self.nodes[&node].stack.status();
        let group = status.groups.iter().find(|g| g.name == group).expect("the group");
        group.replicas.iter().map(|replica| replica.member.node.0).collect()
    }

    pub fn run_until_synced(&mut self, group: &str, replicas: usize) {
        self.run_until("replicas with the state", |cluster| {
            cluster.nodes.values().filter(|node| node.alive && !node.paused).all(|node| {
                let status = node.stack.status();
                let group = status.groups.iter().find(|g| g.name == group);
                group.is_some_and(|group| {
                    group.replicas.iter().filter(|replica| replica.synced).count() == replicas
                })
            })
        });
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Cluster<O>) -> bool) {
        let end = self.now + ms(10_000);
        while !done(self) {
            assert!(self.step(end), "{what}: not within ten seconds of virtual time");
        }
    }

    /// Goes on to the next thing that happens before `end`.
    fn step(&mut self, end: Time) -> bool {
        let running = self.nodes.iter().filter(|(_, node)| node.alive && !node.paused);
        let timer = running.filter_map(|(id, node)| Some((node.stack.next_timeout()?, *id))).min();
        let flight = self.flights.peek().map(|flight| flight.0.0.0);
        let disks = self.shelves.iter().filter(|(id, _)| self.nodes[id].alive);
        let disk = disks.filter_map(|(id, shelf)| Some((shelf.due()?, *id))).min();
        let doom = self.doomed.iter().map(|(due, _)| *due).min();
        let dues = [timer.map(|(due, _)| due), flight, disk.map(|(due, _)| due), doom];
        let Some(next) = dues.into_iter().flatten().min().filter(|next| *next <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        if doom == Some(next) {
            let dies = |(due, _): &mut (Time, u32)| *due == next;
            let dead: Vec<u32> = self.doomed.extract_if(.., dies).map(|(_, id)| id).collect();
            dead.into_iter().for_each(|id| self.kill(id));
            return true;
        }
        if let Some((_, id)) = disk.filter(|(due, _)| *due == next) {
            self.sync(id);
            return true;
        }
        if flight == Some(next) {
            let Flight(std::cmp::Reverse((_, _, from, to, datagram))) = self.flights.pop().unwrap();
            self.arrive(from, to, datagram);
        } else if let Some((_, id)) = timer {
            let now = self.now;
            self.nodes.get_mut(&id).unwrap().stack.handle_timeout(now);
            self.drain(id);
        }
        true
    }

    fn arrive(&mut self, from: u32, to: u32, (key, datagram): Sealed) {
        if self.island.contains(&from) != self.island.contains(&to) {
            return;
        }
        let now = self.now;
        let node = self.nodes.get_mut(&to).unwrap();
        let opens = self.vaults[&to].keys.contains(&key);
        if node.paused {
            node.inbox.push((key, datagram));
        } else if node.alive && !opens {
            self.unopened += 1;
        } else if node.alive {
            node.stack.handle_datagram(now, &datagram);
            self.drain(to);
        } else if self.nodes[&from].alive {
            self.nodes.get_mut(&from).unwrap().stack.handle_unreachable(now, NodeId(to));
            self.drain(from);
        }
    }

    fn drain(&mut self, id: u32) {
        while let Some(output) = self.next_output(id) {
            let now = self.now;
            match output {
                Output::Send { to, datagram, .. } => {
                    for place in to.iter() {
                        self.send(id, place as u32 + 1, datagram.clone());
                    }
                }
                Output::Probe(node) => self.send(id, node.0, Bytes::from_static(b"?")),
                Output::Frame { caller, frame } => {
                    if let Frame::Reply(reply) = frame {
                        let client = self.clients[&caller];
                        self.under_way.remove(&(reply.group, client, reply.number));
                        self.replies.insert((caller, reply.number), (now, reply));
                    }
                }
                Output::Close { .. } => {}
                Output::Run { group, command } => self.run(id, group, command),
                Output::Persist(kept) => self.shelf(id).append(now, kept),
                Output::Snapshot { strand, covers, place, state } => {
                    let kept = Kept { strand, kind: None, place, bytes: state };
                    self.shelf(id).snapshot(now, covers, kept);
                }
                Output::Forget(_) => {}
                // Another program comes at once.
                Output::Revive(_) => {}
                Output::Replace(group) => {
                    let node = self.nodes.get_mut(&id).unwrap();
                    node.fault = None;
                    node.logs.remove(&group);
                    node.changes.remove(&group);
                }
                Output::Resume { group, ticket, outcome } => {
                    self.resume_handler(id, group, ticket, outcome)
                }
                Output::Key(command) => self.keep(id, command),
                Output::Moved { outcome, .. } => {
                    self.nodes.get_mut(&id).unwrap().moves.push(outcome);
                }
                Output::Restyled { outcome, .. } => {
                    self.nodes.get_mut(&id).unwrap().restyles.push(outcome);
                }
                Output::Saved { outcome, .. } => {
                    self.nodes.get_mut(&id).unwrap().saves.push(outcome);
                }
                Output::Restored { outcome, .. } => {
                    self.nodes.get_mut(&id).unwrap().restores.push(outcome);
                }
                Output::Own { number, outcome } => {
                    self.nodes.get_mut(&id).unwrap().owns.push((number, outcome));
                }
                Output::Bench(outcome) => self.nodes.get_mut(&id).unwrap().benches.push(outcome),
                Output::Event(event) => self.nodes.get_mut(&id).unwrap().events.push(event),
            }
        }
        self.nodes[&id].stack.check_invariants();
    }

    /// Something is on a node's disk.
    fn sync(&mut self, id: u32) {
        let (now, told) = (self.now, self.shelf(id).sync());
        let stack = &mut self.nodes.get_mut(&id).unwrap().stack;
        match told {
            Told::Persisted(upto) => stack.handle_persisted(now, upto),
            Told::Snapshot(Some(group), covers) => {
                stack.handle_snapshot_stored(now, group, covers);
            }
            Told::Snapshot(None, _) => {}
        }
        self.drain(id);
    }

    fn send(&mut self, from: u32, to: u32, datagram: Bytes) {
        self.sent += 1;
        let arrival = self.now + DELAY + self.per_byte * datagram.len() as u32;
        let datagram = (self.vaults[&from].sealing(), datagram);
        self.flights.push(Flight(std::cmp::Reverse((arrival, self.sent, from, to, datagram))));
    }
}
