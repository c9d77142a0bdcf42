//! A cluster of [`Stack`]s in virtual time: 30 µs from node to node, nothing lost, unless a test
//! says so. Services are logs of strings that answer `length:entry`; before that `group>text` calls
//! another group.
//!
//! The nodes stand on rings that talk by datagrams, or, where the ring's timing is beside the
//! point, on the sequencer of one process.

mod asking;
mod backing;
mod calling;
mod dying;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use steadfast_engine::ordering::{InProcess, Ring};
use steadfast_engine::{
    AwayCall, BenchError, BenchResult, Changes, Command, Config, Event, Kept, MoveError, Output,
    Quorum, RestoreError, RestyleError, SaveError, Saved, Stack, Ticket, Transfer,
};
use testkit::{Draw, Machine, Network, Simulation, Weather, World};
use wire::attach::View;
use wire::client::{Frame, Reply};
use wire::keys::KeyName;
use wire::ordered::{GroupOptions, Style};
use wire::{Caller, ClientId, Duration, GroupId, Incarnation, Member, NodeId, Time, ViewNumber};

use crate::base::Base;
use crate::fake_disk::{FakeDisk, Told};
use crate::tampered::{Tampered, Wrong};
use crate::vault::Vault;
use crate::voting::Fault;

pub mod service;

pub const DELAY: Duration = Duration::from_micros(30);

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub struct Node<O> {
    stack: Stack<O>,
    /// Its key file.
    vault: Vault,
    /// Its disk, if it has one.
    fake_disk: Option<FakeDisk>,
    /// Datagrams that it could not open.
    unopened: usize,
    logs: BTreeMap<GroupId, Vec<String>>,
    changes: BTreeMap<GroupId, Changes>,
    views: BTreeMap<GroupId, Vec<(usize, View)>>,
    /// Requests that services here have executed.
    executions: usize,
    /// How often services here were told to run.
    starts: usize,
    /// Handlers that wait for a call of theirs, with what is given to them meanwhile.
    blocked: BTreeMap<GroupId, (Ticket, String, VecDeque<Command>)>,
    events: Vec<Event>,
    benches: Vec<Result<BenchResult, BenchError>>,
    owns: Vec<(u64, wire::client::Outcome)>,
    /// Calls of groups of other cells.
    away: Vec<AwayCall>,
    moves: Vec<Result<ViewNumber, MoveError>>,
    restyles: Vec<Result<ViewNumber, RestyleError>>,
    saves: Vec<Result<Saved, SaveError>>,
    restores: Vec<Result<ViewNumber, RestoreError>>,
    fault: Option<Fault>,
}

impl<O: Base> Machine for Node<O> {
    /// A datagram with the key that sealed it.
    type Packet = (KeyName, Bytes);

    fn next_timeout(&self) -> Option<Time> {
        let disk = self.fake_disk.as_ref().and_then(FakeDisk::due);
        self.stack.next_timeout().into_iter().chain(disk).min()
    }

    fn handle_timeout(&mut self, now: Time) {
        let written = self
            .fake_disk
            .as_mut()
            .filter(|fake_disk| fake_disk.due().is_some_and(|due| due <= now));
        match written.map(FakeDisk::sync) {
            Some(Told::Persisted(upto)) => self.stack.handle_persisted(now, upto),
            Some(Told::Snapshot(Some(group), covers)) => {
                self.stack.handle_snapshot_stored(now, group, covers);
            }
            Some(Told::Snapshot(None, _)) => {}
            None => self.stack.handle_timeout(now),
        }
    }

    fn handle_packet(&mut self, now: Time, _: usize, (key, datagram): (KeyName, Bytes)) {
        if self.vault.keys.contains(&key) {
            self.stack.handle_datagram(now, &datagram);
        } else {
            self.unopened += 1;
        }
    }

    fn handle_refused(&mut self, now: Time, place: usize) {
        self.stack.handle_unreachable(now, NodeId(place as u32 + 1));
    }
}

/// A client's connection to a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    node: u32,
    caller: Caller,
    pub client: ClientId,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    caller: Caller,
    number: u64,
    at: Time,
}

pub struct Cluster<O: Base = Ring> {
    /// Nodes are numbered from one. Scheduled events are deaths of nodes from the calls that they
    /// execute.
    world: World<Node<O>, u32>,
    base: O::Shared,
    /// The delay that each byte adds to a datagram's. If it is not zero, short datagrams overtake
    /// long ones.
    pub per_byte: Duration,
    /// How critical the next calls are.
    pub priority: u8,
    island: BTreeSet<u32>,
    views: BTreeMap<Caller, ViewNumber>,
    replies: BTreeMap<(Caller, u64), (Time, Reply)>,
    clients: BTreeMap<Caller, ClientId>,
    /// Calls that have not been answered.
    under_way: BTreeSet<(GroupId, ClientId, u64)>,
    callers: u64,
    life: u64,
    size: u32,
    pub snapshot_after: u64,
    /// Bytes from which on states of nodes that start are fetched.
    streamed: usize,
    quorum: Quorum,
    /// Streams that were opened and have not ended.
    pub streams: Vec<(u32, Transfer, NodeId)>,
}

fn place(node: u32) -> usize {
    node as usize - 1
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
        Cluster::begin(size, disks, usize::MAX).form()
    }

    /// Nodes in one component, whose larger states are fetched by streams.
    pub fn streaming(size: u32) -> Cluster<O> {
        Cluster::begin(size, false, 500).form()
    }

    fn form(mut self) -> Cluster<O> {
        let size = self.size as usize;
        self.run_until("one quorate ring", |cluster| {
            cluster.world.running().all(|(_, node)| {
                let ring = node.stack.status().ring;
                ring.members.len() == size && ring.quorate == Some(true)
            })
        });
        self
    }

    /// Nodes that have just been started.
    pub fn starting(size: u32) -> Cluster<O> {
        Cluster::begin(size, false, usize::MAX)
    }

    /// The same, with a disk each, on which nothing is yet.
    pub fn starting_on_disk(size: u32) -> Cluster<O> {
        Cluster::begin(size, true, usize::MAX)
    }

    fn begin(size: u32, disks: bool, streamed: usize) -> Cluster<O> {
        Cluster::begin_by(Quorum::Majority, size, disks, streamed)
    }

    fn begin_by(quorum: Quorum, size: u32, disks: bool, streamed: usize) -> Cluster<O> {
        let weather = Weather { latency: DELAY, ..Weather::default() };
        let network = Network::new(size as usize, weather, Draw::new(1));
        let mut cluster = Cluster {
            world: World::new(Time(1_000_000_000), network),
            base: O::shared(),
            per_byte: Duration::ZERO,
            priority: 0,
            island: BTreeSet::new(),
            views: BTreeMap::new(),
            replies: BTreeMap::new(),
            clients: BTreeMap::new(),
            under_way: BTreeSet::new(),
            callers: 0,
            life: 1,
            size,
            snapshot_after: 10_000,
            streamed,
            quorum,
            streams: Vec::new(),
        };
        for node in 1..=size {
            cluster.start(node, true, Vault::default(), disks.then(FakeDisk::default));
        }
        cluster.rearrange();
        cluster
    }

    /// A node begins a life. Its key file and its disk outlive it.
    fn start(
        &mut self,
        node: u32,
        first_life: bool,
        vault: Vault,
        mut fake_disk: Option<FakeDisk>,
    ) {
        let nodes: Vec<NodeId> = (1..=self.size).map(NodeId).collect();
        let me = member(node, self.life);
        let mut config = Config::new(me, nodes.clone(), "test".into());
        config.first_life = first_life;
        config.sealing = Some(vault.sealing());
        config.address = Some(([127, 0, 0, 1], 7000 + node as u16).into());
        config.storage = fake_disk.as_mut().map(FakeDisk::open);
        config.snapshot_after = self.snapshot_after;
        config.streamed = self.streamed;
        config.quorum = self.quorum;
        let ordering = O::start(&self.base, self.world.now, me, nodes);
        let stack = Stack::new(config, ordering, self.world.now);
        let state = Node {
            stack,
            vault,
            fake_disk,
            unopened: 0,
            logs: BTreeMap::new(),
            changes: BTreeMap::new(),
            views: BTreeMap::new(),
            blocked: BTreeMap::new(),
            executions: 0,
            starts: 0,
            events: Vec::new(),
            benches: Vec::new(),
            owns: Vec::new(),
            away: Vec::new(),
            moves: Vec::new(),
            restyles: Vec::new(),
            saves: Vec::new(),
            restores: Vec::new(),
            fault: None,
        };
        self.world.start(place(node), state);
        self.drain(place(node));
    }

    /// Tells what the nodes stand on who is there and reaches whom.
    fn rearrange(&mut self) {
        let living = self.world.running().map(|(place, _)| place as u32 + 1);
        let (inside, outside): (Vec<u32>, Vec<u32>) =
            living.partition(|id| self.island.contains(id));
        let components = [inside, outside].map(|ids| ids.into_iter().map(NodeId).collect());
        O::components(&self.base, self.world.now, &components);
    }

    fn at(&self, node: u32) -> &Node<O> {
        self.world.machine(place(node))
    }

    fn at_mut(&mut self, node: u32) -> &mut Node<O> {
        self.world.machine_mut(place(node))
    }

    pub fn node(&self, node: u32) -> &Stack<O> {
        &self.at(node).stack
    }

    /// The key file of a node.
    pub fn vault(&mut self, node: u32) -> &mut Vault {
        &mut self.at_mut(node).vault
    }

    /// Datagrams that nodes could not open.
    pub fn unopened(&self) -> usize {
        (1..=self.size).map(|node| self.at(node).unopened).sum()
    }

    pub fn state(&self, node: u32, group: &str) -> &[String] {
        self.at(node).logs.get(&GroupId::of(group)).map_or(&[], Vec::as_slice)
    }

    /// How many requests the services at this node have executed.
    pub fn executions(&self, node: u32) -> usize {
        self.at(node).executions
    }

    /// How often the services at this node were told to run.
    pub fn starts(&self, node: u32) -> usize {
        self.at(node).starts
    }

    pub fn kill(&mut self, node: u32) {
        self.world.crash(place(node));
        self.rearrange();
    }

    pub fn restart(&mut self, node: u32) {
        self.life += 1;
        let former = self.at_mut(node);
        let (vault, fake_disk) = (std::mem::take(&mut former.vault), former.fake_disk.take());
        self.start(node, false, vault, fake_disk);
        self.rearrange();
    }

    /// The disk of a node.
    pub fn fake_disk(&mut self, node: u32) -> &mut FakeDisk {
        self.at_mut(node).fake_disk.as_mut().expect("it has one")
    }

    pub fn pause(&mut self, node: u32) {
        self.world.pause(place(node));
    }

    pub fn resume(&mut self, node: u32) {
        self.world.resume(place(node));
    }

    pub fn partition(&mut self, island: &[u32]) {
        self.heal();
        self.island = island.iter().copied().collect();
        for (a, b) in (1..=self.size).flat_map(|a| (1..=self.size).map(move |b| (a, b))) {
            if self.island.contains(&a) != self.island.contains(&b) {
                self.world.network.cut(place(a), place(b));
            }
        }
        self.rearrange();
    }

    pub fn heal(&mut self) {
        self.island.clear();
        self.world.network.heal();
        self.rearrange();
    }

    pub fn leave(&mut self, node: u32) {
        self.ask(node, |stack, now| stack.leave(now));
    }

    pub fn has_left(&self, node: u32) -> bool {
        self.told(node, |event| *event == Event::Left)
    }

    /// The node has told such an event.
    pub fn told(&self, node: u32, is: impl Fn(&Event) -> bool) -> bool {
        self.at(node).events.iter().any(is)
    }

    /// Returns the outcome of a call of a node's internal client.
    pub fn own_outcome(&self, node: u32, number: u64) -> Option<wire::client::Outcome> {
        let mut owns = self.at(node).owns.iter();
        owns.find(|(own, _)| *own == number).map(|(_, outcome)| outcome.clone())
    }

    /// Calls that came to the node again and were not executed again.
    pub fn copies(&self, node: u32) -> usize {
        self.times(node, |event| matches!(event, Event::Copy { .. }))
    }

    /// A node is asked to move the primary of a group to another.
    pub fn move_primary(&mut self, node: u32, group: &str, to: u32) -> Result<(), MoveError> {
        let group = GroupId::of(group);
        self.ask(node, |stack, now| stack.move_primary(now, group, NodeId(to)))
    }

    /// Returns the outcome of the move that the node was asked for.
    pub fn moved(&mut self, node: u32) -> Result<ViewNumber, MoveError> {
        self.run_until("the end of a move", |cluster| !cluster.at(node).moves.is_empty());
        self.at_mut(node).moves.remove(0)
    }

    /// A node is asked to give a group another style.
    pub fn restyle(&mut self, node: u32, group: &str, style: Style) -> Result<(), RestyleError> {
        let group = GroupId::of(group);
        self.ask(node, |stack, now| stack.restyle(now, group, style))
    }

    /// Returns the outcome of the change of style that the node was asked for.
    pub fn restyled(&mut self, node: u32) -> Result<ViewNumber, RestyleError> {
        self.run_until("the end of a change of style", |cluster| {
            !cluster.at(node).restyles.is_empty()
        });
        self.at_mut(node).restyles.remove(0)
    }

    /// The primary, as a node has it.
    pub fn primary(&self, node: u32, group: &str) -> Option<u32> {
        let status = self.at(node).stack.status();
        let group = status.groups.iter().find(|g| g.name == group).expect("the group");
        group.primary.map(|member| member.node.0)
    }

    pub fn was_refused(&self, node: u32, group: &str) -> bool {
        let refused =
            |event: &Event| matches!(event, Event::JoinRefused { name, .. } if name == group);
        self.at(node).events.iter().any(refused)
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
        self.ask(node, |stack, now| stack.host(now, group, options)).expect("hosted");
    }

    pub fn unhost(&mut self, group: &str, node: u32) {
        self.ask(node, |stack, now| stack.unhost(now, GroupId::of(group)));
    }

    /// The nodes that have replicas, in order of rank.
    pub fn replicas(&self, group: &str) -> Vec<u32> {
        self.replicas_at(1, group)
    }

    /// The same, as this node has it.
    pub fn replicas_at(&self, node: u32, group: &str) -> Vec<u32> {
        let status = self.at(node).stack.status();
        let group = status.groups.iter().find(|g| g.name == group).expect("the group");
        group.replicas.iter().map(|replica| replica.member.node.0).collect()
    }

    pub fn run_until_synced(&mut self, group: &str, replicas: usize) {
        self.run_until("replicas with the state", |cluster| {
            cluster.world.awake().all(|(_, node)| {
                let status = node.stack.status();
                let group = status.groups.iter().find(|g| g.name == group);
                group.is_some_and(|group| {
                    group.replicas.iter().filter(|replica| replica.synced).count() == replicas
                })
            })
        });
    }

    /// Until so many streams were opened.
    pub fn run_until_streams(&mut self, count: usize) {
        self.run_until("streams", |cluster| cluster.streams.len() >= count);
    }

    pub fn run_for(&mut self, span: Duration) {
        Simulation::run(self, span);
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Cluster<O>) -> bool) {
        let done = Simulation::run_until(self, ms(10_000), done);
        assert!(done, "{what}: not within ten seconds of virtual time");
    }

    fn send(&mut self, from: u32, to: u32, datagram: Bytes) {
        let late = self.per_byte * datagram.len() as u32;
        let sealed = (self.at(from).vault.sealing(), datagram);
        self.world.send_late(late, place(from), place(to), sealed);
    }
}

impl<O: Base> Simulation for Cluster<O> {
    type Machine = Node<O>;
    type Event = u32;

    fn world(&mut self) -> &mut World<Node<O>, u32> {
        &mut self.world
    }

    fn happen(&mut self, doomed: u32) {
        self.kill(doomed);
    }

    fn drain(&mut self, place: usize) {
        let id = place as u32 + 1;
        while let Some(output) = self.next_output(id) {
            let now = self.world.now;
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
                Output::Run { group, command } => self.run(id, group, command),
                Output::Persist(kept) => self.fake_disk(id).append(now, kept),
                Output::Snapshot { strand, covers, place, state } => {
                    let kept = Kept { strand, kind: None, place, bytes: state.whole() };
                    self.fake_disk(id).snapshot(now, covers, kept);
                }
                Output::Fetch { transfer, from, .. } => self.streams.push((id, transfer, from)),
                Output::Replace(group) => {
                    let node = self.at_mut(id);
                    node.fault = None;
                    node.logs.remove(&group);
                    node.changes.remove(&group);
                }
                Output::Resume { group, ticket, outcome } => {
                    self.resume_handler(id, group, ticket, outcome)
                }
                // Another program comes at once, and nobody changes the nodes.
                Output::Close { .. } | Output::Forget(_) | Output::Revive(_) => {}
                Output::Keep(_) | Output::Known(_) | Output::Nodes(_) => {}
                Output::Key(command) => self.keep(id, command),
                Output::Moved { outcome, .. } => {
                    self.at_mut(id).moves.push(outcome);
                }
                Output::Restyled { outcome, .. } => {
                    self.at_mut(id).restyles.push(outcome);
                }
                Output::Saved { outcome, .. } => {
                    self.at_mut(id).saves.push(outcome);
                }
                Output::Restored { outcome, .. } => {
                    self.at_mut(id).restores.push(outcome);
                }
                Output::Own { number, outcome } => {
                    self.at_mut(id).owns.push((number, outcome));
                }
                Output::Away(call) => self.at_mut(id).away.push(*call),
                Output::Place { .. } => {}
                Output::Bench(outcome) => self.at_mut(id).benches.push(*outcome),
                Output::Event(event) => self.at_mut(id).events.push(event),
            }
        }
        self.at(id).stack.check_invariants();
    }
}
