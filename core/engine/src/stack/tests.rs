//! One node; the test itself is the order. Orders, losses and confused members that are rare in a
//! whole cluster are stated here directly.

mod awaited;
mod holding;
mod losing;
mod reading;
mod restyling;
mod scripted;
mod storing;
mod upgrading;
mod voting;
mod watching;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use wire::bench::{Pacing, Until};
use wire::client::{Access, Frame, Hello, Outcome, Request};
use wire::ordered::{
    AckLevel, Announce, Component, Going, GroupEntry, GroupOptions, Install, JoinGroup, LeaveGroup,
    Ordered, Place, ReplicaEntry, ReplicaState, StateChunk, StateHead, Synced,
};
use wire::{
    Caller, ClientId, GroupId, Incarnation, Member, MethodId, NodeId, RingId, Time, ViewNumber,
};

use super::Stack;
use crate::api::{
    BenchError, BenchRequest, Command, Config, Executed, Output, ServiceOutcome, Ticket,
};
use crate::ordering::{self, Configuration, ConfigurationKind, Delivery, Level};
use scripted::Scripted;

const NOW: Time = Time(1_000_000_000);
const CALLER: Caller = Caller(1);
const CLIENT: ClientId = ClientId(7);

fn member(node: u32) -> Member {
    Member { node: NodeId(node), incarnation: Incarnation(1) }
}

fn ring(sequence: u64) -> RingId {
    RingId { sequence, representative: NodeId(1) }
}

fn log() -> GroupId {
    GroupId::of("log")
}

/// Node 1 of three.
struct Room {
    stack: Stack<Scripted>,
    ring: RingId,
    sequence: u64,
}

impl Room {
    fn new() -> Room {
        let nodes = (1..=3).map(NodeId).collect();
        let mut config = Config::new(member(1), nodes, "test".into());
        config.first_life = true;
        let stack = Stack::new(config, Scripted::default(), NOW);
        Room { stack, ring: RingId::default(), sequence: 0 }
    }

    /// Returns a node in an effective component of all three nodes, with these groups.
    fn active(groups: Vec<GroupEntry>) -> Room {
        let mut room = Room::new();
        room.configure(1);
        room.announce();
        room.install(groups);
        room.hold_all();
        room
    }

    /// Nodes 1 and 2 host the group, and 2 awaits the snapshot that is under way. Returns the
    /// transfer's number, too.
    fn joined() -> (Room, ViewNumber) {
        let mut room = Room::active(Vec::new());
        room.host();
        room.join(1);
        room.join(2);
        room.snapshot();
        let transfer = room.stack.base.directory.get(log()).expect("the group").transfer();
        (room, transfer)
    }

    /// As `joined`, and 2 has the state.
    fn paired() -> Room {
        let (mut room, transfer) = Room::joined();
        room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
        room
    }

    fn configure(&mut self, sequence: u64) {
        self.ring = ring(sequence);
        self.sequence = 0;
        let members = vec![member(1), member(2), member(3)];
        let kind = ConfigurationKind::Regular;
        let configuration = Configuration { kind, ring: self.ring, members };
        self.happens(ordering::Output::Configuration(configuration));
    }

    fn nothing(&self) -> Announce {
        Announce {
            ring: self.ring,
            first_life: true,
            last: Component::default(),
            attempts: Vec::new(),
            position: 0,
            replicas: Vec::new(),
            ahead: Vec::new(),
            address: None,
            recall: None,
            program: wire::Program::this("trial"),
            level: 0,
            extension: wire::Extension::default(),
            roster: Default::default(),
        }
    }

    /// All members announce that they are new.
    fn announce(&mut self) {
        for node in 1..=3 {
            self.deliver(node, Ordered::Announce(Box::new(self.nothing())));
        }
    }

    fn install(&mut self, groups: Vec<GroupEntry>) {
        let install = Install {
            ring: self.ring,
            epoch: 1,
            groups,
            keys: None,
            programs: Vec::new(),
            roster: Default::default(),
        };
        self.deliver(1, Ordered::Install(Box::new(install)));
    }

    fn deliver(&mut self, sender: u32, ordered: Ordered) {
        self.deliver_as(sender, ordered, true);
    }

    fn deliver_as(&mut self, sender: u32, ordered: Ordered, contiguous: bool) {
        self.sequence += 1;
        let delivery = Delivery {
            ring: self.ring,
            sequence: self.sequence,
            contiguous,
            sender: member(sender),
            level: Level::Agreed,
            payload: ordered.encode(),
        };
        self.happens(ordering::Output::Deliver(delivery));
    }

    fn happens(&mut self, output: ordering::Output) {
        self.stack.base.outbox.ordering.script.push_back(output);
        self.stack.settle(NOW);
        self.stack.check_invariants();
    }

    fn hold_all(&mut self) {
        let (ring, all) = (self.ring, self.sequence);
        self.happens(ordering::Output::Held { ring, majority: all, all });
    }

    fn host(&mut self) {
        self.stack.host(NOW, "log", GroupOptions::default()).expect("hosted");
    }

    fn join(&mut self, sender: u32) {
        self.join_with(sender, GroupOptions::default());
    }

    fn join_with(&mut self, sender: u32, options: GroupOptions) {
        self.deliver(sender, Ordered::JoinGroup(JoinGroup { name: "log".into(), options }));
    }

    fn leave(&mut self, sender: u32) {
        self.deliver(
            sender,
            Ordered::LeaveGroup(LeaveGroup { group: log(), going: Going::ForGood, died: None }),
        );
    }

    fn call(&mut self, number: u64) {
        self.call_with(number, Access::Change);
    }

    fn call_with(&mut self, number: u64, access: Access) {
        let request = Request {
            group: log(),
            client: CLIENT,
            number,
            unanswered: 1,
            view: ViewNumber(u64::MAX),
            method: MethodId(1),
            timeout_us: 1_000_000,
            priority: 0,
            json: false,
            beside: false,
            has_key: false,
            access,
            body: Bytes::new(),
        };
        self.stack.handle_frame(NOW, NOW, CALLER, Frame::Hello(Hello::new(CLIENT)));
        self.stack.handle_frame(NOW, NOW, CALLER, Frame::Request(request));
    }

    /// Orders the call.
    fn request(&mut self, sender: u32, number: u64) {
        self.deliver(sender, Ordered::Request(a_request(number)));
    }

    fn executed(&mut self, ticket: Ticket, result: &'static str) {
        let outcome = ServiceOutcome::Ok(Bytes::from_static(result.as_bytes()));
        self.stack.handle_executed(NOW, log(), ticket, Executed::Reply(outcome));
    }

    /// Completes the transfer that this node waits for, with an empty state.
    fn restore(&mut self) {
        let transfer = self.transfer();
        self.deliver(1, Ordered::Synced(Synced { group: log(), transfer }));
    }

    /// Completes the transfer, before the disk has the state.
    fn transfer(&mut self) -> ViewNumber {
        let state = ReplicaState { head: StateHead::default(), service: Bytes::new() };
        let transfer = self.stack.base.directory.get(log()).expect("the group").transfer();
        let chunk = StateChunk {
            group: log(),
            transfer,
            index: 0,
            last: true,
            bytes: state.encode().whole(),
        };
        self.deliver(2, Ordered::StateChunk(chunk));
        let restore = self.outputs().into_iter().find_map(|output| match output {
            Output::Run { command: Command::Restore { ticket, .. }, .. } => Some(ticket),
            _ => None,
        });
        let ticket = restore.expect("the state is complete");
        self.stack.handle_executed(NOW, log(), ticket, Executed::Restored(Ok(())));
        transfer
    }

    /// Hands in the snapshot that this node's service was asked for.
    fn snapshot(&mut self) {
        let snapshot = self.outputs().into_iter().find_map(|output| match output {
            Output::Run { command: Command::Snapshot { ticket }, .. } => Some(ticket),
            _ => None,
        });
        let ticket = snapshot.expect("somebody waits for the state");
        self.stack.handle_executed(NOW, log(), ticket, Executed::Snapshot(Ok(Bytes::new())));
    }

    fn outputs(&mut self) -> Vec<Output> {
        core::iter::from_fn(|| self.stack.poll_output()).collect()
    }

    /// Returns the tickets of the requests that the service got.
    fn executions(&mut self) -> Vec<Ticket> {
        let ticket = |output| match output {
            Output::Run { command: Command::Execute { ticket, .. }, .. } => Some(ticket),
            _ => None,
        };
        self.outputs().into_iter().filter_map(ticket).collect()
    }

    fn replies(&mut self) -> Vec<Outcome> {
        let outcome = |output| match output {
            Output::Frame { frame: Frame::Reply(reply), .. } => Some(reply.outcome),
            _ => None,
        };
        self.outputs().into_iter().filter_map(outcome).collect()
    }
}

/// Returns a call as it is ordered.
fn a_request(number: u64) -> wire::ordered::Request {
    wire::ordered::Request {
        group: log(),
        method: MethodId(1),
        json: false,
        read: false,
        client: CLIENT,
        number,
        unanswered: 1,
        time: NOW,
        seed: 0,
        proven: 0,
        timeout_us: 1_000_000,
        priority: 0,
        identity: wire::ordered::Identity::Number,
        origin: None,
        body: Bytes::new(),
    }
}

/// Returns a group of these replicas, each with whether it has the state.
fn entry(replicas: &[(u32, bool)], options: GroupOptions) -> GroupEntry {
    let replica = |&(node, synced)| ReplicaEntry { member: member(node), synced };
    GroupEntry {
        name: "log".into(),
        options,
        view: ViewNumber(9),
        replicas: replicas.iter().map(replica).collect(),
        last: Place::default(),
        floor: Place::default(),
        asleep: Vec::new(),
        awaited: Vec::new(),
        deposit: None,
    }
}

/// A node without a replica cannot take a call. It keeps it for a client that knows as much as the
/// node. The client is answered elsewhere, and its next calls show that. (Simulator seeds 5989 and
/// 11782: others were refused for want of room.)
#[test]
fn a_call_whose_client_was_answered_elsewhere_waits_no_longer() {
    let mut room = Room::active(Vec::new());
    room.join(2);
    for number in 1..=3 {
        room.call(number);
    }
    room.request(2, 1);
    assert_eq!(
        room.stack.replies.clients.callers.len(),
        3,
        "it is executed, and nobody says that it is answered"
    );
    room.deliver(2, Ordered::Request(wire::ordered::Request { unanswered: 3, ..a_request(3) }));
    assert_eq!(room.stack.replies.clients.callers.len(), 1, "the third is still wanted");
    assert_eq!(room.replies(), [], "and nobody is told anything");
}

#[test]
fn a_primary_answers_what_it_was_given_before_and_does_not_order_it_again() {
    let mut room = Room::paired();
    room.request(1, 1);
    let tickets = room.executions();
    room.executed(tickets[0], "one");
    room.hold_all();
    let ordered = room.stack.base.outbox.ordering.multicast.len();
    room.call(1);
    assert_eq!(room.stack.base.outbox.ordering.multicast.len(), ordered);
    assert_eq!(room.replies(), [Outcome::Ok(Bytes::from_static(b"one"))]);
}

#[test]
fn quorate_is_who_takes_what_it_is_asked_for() {
    let mut room = Room::new();
    room.configure(1);
    room.announce();
    let asked = BenchRequest {
        senders: vec![NodeId(1)],
        size: 64,
        count: 10,
        warm: 0,
        span: Duration::from_millis(10),
        level: Level::Agreed,
        pacing: Pacing::Window(1),
        until: Until::Own,
    };
    assert_eq!(
        room.stack.status().ring.quorate,
        None,
        "the verdict is there, the component is not"
    );
    assert_eq!(room.stack.bench(NOW, asked.clone()), Err(BenchError::NoQuorum));
    let install = Install {
        ring: room.ring,
        epoch: 1,
        groups: Vec::new(),
        keys: None,
        programs: Vec::new(),
        roster: Default::default(),
    };
    room.deliver_as(1, Ordered::Install(Box::new(install)), true);
    assert_eq!(room.stack.status().ring.quorate, Some(true));
    assert_ne!(room.stack.bench(NOW, asked), Err(BenchError::NoQuorum));
}

#[test]
fn an_installation_after_a_gap_is_not_taken() {
    let mut room = Room::new();
    room.configure(1);
    room.announce();
    let install = Install {
        ring: room.ring,
        epoch: 1,
        groups: Vec::new(),
        keys: None,
        programs: Vec::new(),
        roster: Default::default(),
    };
    room.deliver_as(1, Ordered::Install(Box::new(install)), false);
    let ring = room.stack.status().ring;
    assert_eq!(ring.epoch, 0, "what was lost may have been part of the component's history");
    assert_ne!(ring.quorate, Some(true));
}

#[test]
fn a_reply_that_waits_for_nobody_leaves_when_the_component_is_effective() {
    let options = GroupOptions { ack: AckLevel::One, ..GroupOptions::default() };
    let mut room = Room::new();
    room.stack.host(NOW, "log", options).expect("hosted");
    room.configure(1);
    room.announce();
    room.install(Vec::new());
    room.join_with(1, options);
    room.call(1);
    room.request(1, 1);
    let tickets = room.executions();
    room.executed(tickets[0], "a");
    assert_eq!(room.replies(), [], "nothing is acknowledged before the component is effective");
    room.hold_all();
    assert_eq!(room.replies(), [Outcome::Ok("a".into())]);
}

#[test]
fn what_was_ordered_before_the_last_replica_left_is_answered() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.call(1);
    room.request(1, 1);
    room.stack.unhost(NOW, log());
    room.leave(1);
    let tickets = room.executions();
    room.executed(tickets[0], "a");
    assert_eq!(room.replies(), [], "nobody else is known to hold it");
    room.hold_all();
    assert_eq!(room.replies(), [Outcome::Ok("a".into())]);
}

#[test]
fn an_outcome_does_not_outlive_the_history_that_it_belongs_to() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.call(1);
    room.request(1, 1);
    let tickets = room.executions();
    room.executed(tickets[0], "lost");

    // The others went on without this node, and it gets the state anew.
    room.configure(2);
    room.deliver(1, Ordered::Announce(Box::new(room.nothing())));
    let members = vec![member(2), member(3)];
    let last = Component { epoch: 5, ring: ring(1), members };
    for node in 2..=3 {
        let replicas = if node == 2 { vec![(log(), Place::default())] } else { Vec::new() };
        let announce =
            Announce { last: last.clone(), first_life: false, replicas, ..room.nothing() };
        room.deliver(node, Ordered::Announce(Box::new(announce)));
    }
    let groups = vec![entry(&[(2, true), (1, false)], GroupOptions::default())];
    room.deliver(
        2,
        Ordered::Install(Box::new(Install {
            ring: room.ring,
            epoch: 6,
            groups,
            keys: None,
            programs: Vec::new(),
            roster: Default::default(),
        })),
    );
    room.restore();
    room.outputs();
    room.request(2, 1);
    room.hold_all();
    assert_eq!(room.replies(), [], "it has not been executed in this history yet");
}

#[test]
fn the_only_replica_with_the_state_does_not_leave_before_it_has_given_it() {
    let mut room = Room::active(Vec::new());
    room.join(1);
    room.join(2);
    room.leave(1);
    let group = room.stack.base.directory.get(log()).expect("the group");
    assert_eq!(group.primary(), Some(member(1)), "it did not know of 2 when it asked");
    let transfer = group.transfer();
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
    room.leave(1);
    let group = room.stack.base.directory.get(log()).expect("the group");
    assert_eq!(group.primary(), Some(member(2)));
}

#[test]
fn what_was_said_of_a_transfer_in_an_earlier_component_does_not_count() {
    let mut room = Room::new();
    room.host();
    room.configure(1);
    for node in 1..=3 {
        let replicas = if node == 2 { vec![(log(), Place::default())] } else { Vec::new() };
        room.deliver(node, Ordered::Announce(Box::new(Announce { replicas, ..room.nothing() })));
    }
    // View 10 belongs to the transfer that begins with the installation.
    let view = ViewNumber(10);
    let transfer = ViewNumber(crate::directory::name_of(room.ring).wrapping_add(view.0));
    room.deliver(1, Ordered::Synced(Synced { group: log(), transfer }));
    room.install(vec![entry(&[(2, true), (1, false)], GroupOptions::default())]);
    let group = room.stack.base.directory.get(log()).expect("the group");
    assert_eq!((group.view, group.transfer()), (view, transfer));
    assert_eq!(group.synced().collect::<Vec<_>>(), [member(2)]);
}

#[test]
fn a_view_number_at_its_limit_does_no_harm() {
    let view = ViewNumber(u64::MAX);
    let group = GroupEntry { view, ..entry(&[(2, true), (3, true)], GroupOptions::default()) };
    let mut room = Room::active(vec![group]);
    room.leave(3);
    room.join(3);
}

#[test]
fn a_call_that_may_have_been_executed_is_not_declined() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.call(1);
    room.request(1, 1);
    // In the new component nobody has the group's state, and then the group is unknown.
    room.configure(2);
    room.announce();
    let gone = vec![entry(&[(2, true)], GroupOptions::default())];
    room.install(gone);
    assert_eq!(room.replies(), [], "those who are gone may have acknowledged it");
    room.configure(3);
    room.announce();
    room.install(Vec::new());
    room.stack.handle_timeout(NOW + wire::Duration::from_millis(100));
    assert_eq!(room.replies(), []);
}

#[test]
fn a_replica_that_has_left_executes_nothing_more() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.request(1, 1);
    room.stack.unhost(NOW, log());
    room.leave(1);
    room.join(2);
    room.request(2, 2);
    assert_eq!(room.executions().len(), 1, "the second belongs to another history");
}

#[test]
fn a_replica_that_is_needed_serves_while_it_waits_to_leave() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.join(2);
    room.stack.unhost(NOW, log());
    room.call(1);
    assert!(
        room.stack.replies.clients.callers.any_under_way(),
        "the state may take long to reach 2"
    );
}

#[test]
fn a_replica_whose_service_is_lost_goes_and_can_be_hosted_anew() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.request(1, 1);
    assert_eq!(room.executions().len(), 1, "it was given something that it never answers");
    room.stack.abandon(NOW, log());
    room.leave(1);
    room.host();
    room.join(1);
    room.request(2, 2);
    assert_eq!(room.executions().len(), 1);
    room.stack.check_invariants();
}
