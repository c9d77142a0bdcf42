//! Records and states that a node gives to its disk, and when.

use alloc::boxed::Box;
use wire::kept::{BEGUN, FOLLOWED, LOST, TAKEN, encode_style};
use wire::ordered::{
    Durability, End, KeptReply, NestedEnd, Place, Progress, Recall, Restyle, Style,
};

use super::*;
use crate::{Kept, Recovery};

fn on_disk() -> GroupOptions {
    GroupOptions { durability: Durability::Disk, ..GroupOptions::default() }
}

/// Node 1 of three has a disk, and hosts a group on it.
fn disk_room() -> Room {
    let mut room = Room::new();
    let nodes = (1..=3).map(NodeId).collect();
    let mut config = Config::new(member(1), nodes, "test".into());
    (config.first_life, config.storage) = (true, Some(Recovery::default()));
    room.stack = Stack::new(config, Scripted::default(), NOW);
    room.configure(1);
    room.announce();
    room.install(Vec::new());
    room.hold_all();
    room.stack.host(NOW, "log", on_disk()).expect("hosted");
    room
}

/// Node 1 is back with its disk: the group had begun, and had taken these requests.
fn back(requests: &[wire::ordered::Request]) -> Room {
    let mut room = Room::new();
    let nodes = (1..=3).map(NodeId).collect();
    let mut config = Config::new(member(1), nodes, "test".into());
    let kept = |kind, place, bytes| Kept { strand: Some(log()), kind: Some(kind), place, bytes };
    let mut all = vec![kept(BEGUN, Place::default(), encode_style(Style::SemiActive))];
    for (request, sequence) in requests.iter().zip(1..) {
        let place = Place { epoch: 1, ring: ring(1), sequence };
        all.push(kept(TAKEN, place, Ordered::Request(request.clone()).encode()));
    }
    config.storage = Some(Recovery::read(all).expect("it can be read"));
    room.stack = Stack::new(config, Scripted::default(), NOW);
    room
}

/// It has the only replica.
fn alone() -> Room {
    let mut room = disk_room();
    room.join_with(1, on_disk());
    assert_eq!(room.records(), [BEGUN]);
    room
}

impl Room {
    /// The kinds of the group's records since the last time.
    fn records(&mut self) -> Vec<u8> {
        let outputs = self.outputs().into_iter();
        let kind = |output| match output {
            Output::Persist(kept) if kept.strand == Some(log()) => kept.kind,
            _ => None,
        };
        outputs.filter_map(kind).collect()
    }

    /// These messages come in one datagram.
    fn deliver_at_once(&mut self, messages: impl IntoIterator<Item = Ordered>) {
        self.sequence += 1;
        for message in messages {
            let delivery = Delivery {
                ring: self.ring,
                sequence: self.sequence,
                contiguous: true,
                sender: member(1),
                level: Level::Agreed,
                payload: message.encode(),
            };
            self.stack.base.outbox.ordering.script.push_back(ordering::Output::Deliver(delivery));
        }
        self.stack.settle(NOW);
    }
}

#[test]
fn all_but_the_last_request_of_a_place_are_marked_as_followed() {
    let mut room = alone();
    room.deliver_at_once([1, 2, 3].map(|number| Ordered::Request(a_request(number))));
    assert_eq!(room.records(), [FOLLOWED, FOLLOWED, TAKEN]);
    room.request(1, 4);
    assert_eq!(room.records(), [TAKEN]);
}

/// The simulator's world `disks`, seed 5000764: the change was logged at the installation's place,
/// which parted the records of its own. After a loss of power an answered request was gone.
#[test]
fn a_change_of_style_that_waited_is_logged_at_its_own_place() {
    let mut room = alone();
    room.configure(20);
    let restyle = Restyle { group: log(), view: ViewNumber(9), style: Style::Active };
    let [first, second] = [1, 2].map(|number| Ordered::Request(a_request(number)));
    room.deliver_at_once([first, Ordered::Restyle(restyle), second]);
    room.announce_disks(Vec::new(), Vec::new());
    room.install(vec![entry(&[(1, true)], on_disk())]);
    assert_eq!(room.records(), [FOLLOWED, FOLLOWED, TAKEN]);
}

#[test]
fn a_state_that_does_not_count_is_kept_until_all_disks_know_the_table() {
    let mut room = alone();
    room.request(1, 1);
    let taken = room.stack.replicas.replicas_with_state(&room.stack.base);
    assert_eq!(taken.len(), 1);
    room.outputs();

    // Another went on while this node was away.
    let others = |room: &mut Room, sequence| {
        room.configure(sequence);
        room.announce_with_disks();
        let last = Place { epoch: 9, ring: ring(9), sequence: 9 };
        room.install(vec![GroupEntry { last, floor: last, ..entry(&[(2, true)], on_disk()) }]);
    };
    others(&mut room, 20);
    assert_eq!(room.records(), [], "its disk, and 2's, may lose what is in memory");
    assert_eq!(
        room.stack.replicas.replicas_with_state(&room.stack.base),
        taken,
        "and then it tells what it has"
    );
    others(&mut room, 21);
    assert_eq!(room.records(), []);
    room.hold_all();
    assert_eq!(room.records(), [], "all have the table, and not all have stored it");
    room.stack.base.outbox.ordering.stored =
        (1..=3).map(|node| (NodeId(node), room.sequence)).collect();
    let ring = room.ring;
    room.happens(ordering::Output::Stored { ring });
    assert_eq!(room.records(), [LOST]);
    assert_eq!(room.stack.replicas.replicas_with_state(&room.stack.base), []);
}

/// Seed 700865 of the world of decay: it heard how far the others' leader was, and executed a call
/// of its own order.
#[test]
fn a_state_that_does_not_count_goes_by_nothing_that_the_others_order() {
    let mut room = back(&[a_request(1)]);
    room.stack.host(NOW, "log", on_disk()).expect("hosted");
    room.configure(20);
    room.announce_with_disks();
    let last = Place { epoch: 9, ring: ring(9), sequence: 9 };
    room.install(vec![GroupEntry { last, floor: last, ..entry(&[(2, true)], on_disk()) }]);
    room.deliver(2, Ordered::Progress(Progress { group: log(), executed: 1, trial: None }));
    assert_eq!(room.executions(), []);
}

/// Seed 60051645: a standby kept a call whose client had its answer from the primary, and asked all
/// disks for it until the call's deadline.
#[test]
fn a_call_without_an_outcome_asks_no_disks() {
    let mut room = alone();
    room.configure(20);
    room.announce_disks(Vec::new(), Vec::new());
    room.install(vec![entry(&[(1, true)], on_disk())]);
    room.store_all();
    room.call(1);
    room.request(1, 1);
    let asks_after = |room: &mut Room, wait| {
        let before = room.stack.base.outbox.ordering.asked;
        room.stack.handle_timeout(NOW + Duration::from_millis(wait));
        room.stack.base.outbox.ordering.asked > before
    };
    assert!(!asks_after(&mut room, 400));
    let ticket = room.executions()[0];
    room.executed(ticket, "done");
    room.outputs();
    assert!(asks_after(&mut room, 800));
}

/// The end of the first nested call of the client's call `number`.
fn an_end(number: u64) -> Ordered {
    let reply = KeptReply::Ok(b"reply".to_vec());
    let (callee, caller, end) = (GroupId(3), log(), End::Reply(reply));
    Ordered::NestedEnd(NestedEnd { callee, caller, client: CLIENT, number, call: 1, asked: 1, end })
}

#[test]
fn how_a_handlers_calls_ended_is_in_the_log() {
    let mut room = alone();
    room.request(1, 1);
    assert_eq!(room.records(), [TAKEN]);
    room.deliver(2, an_end(1));
    assert_eq!(room.records(), [TAKEN]);
    let taken = room.stack.replicas.replicas_with_state(&room.stack.base);
    assert_eq!(taken[0].1.sequence, room.sequence, "it is a part of what led to the state");
}

/// The state includes outcomes of requests before its place, and their nested calls ended after
/// that. A replica that came back with the state alone would ask again. It might get another answer
/// than the replicas that have not executed the requests yet.
#[test]
fn a_state_is_given_to_the_store_when_all_that_led_to_it_is_there() {
    let mut room = alone();
    room.request(1, 1);
    room.stack.handle_snapshot_wanted(NOW, Some(log()));
    let given = |output| match output {
        Output::Run { command: Command::Execute { ticket, .. }, .. } => Some(ticket),
        Output::Run { command: Command::Snapshot { ticket }, .. } => Some(ticket),
        _ => None,
    };
    let given: Vec<Ticket> = room.outputs().into_iter().filter_map(given).collect();
    room.deliver(2, an_end(1));
    room.executed(given[0], "done");
    let state = Executed::Snapshot(Ok(Bytes::from_static(b"state")));
    room.stack.handle_executed(NOW, log(), given[1], state);
    let snapshots = |room: &mut Room| {
        let is_snapshot =
            |output: &Output| matches!(output, Output::Snapshot { strand: Some(_), .. });
        room.outputs().iter().filter(|output| is_snapshot(output)).count()
    };
    assert_eq!(snapshots(&mut room), 0, "the end is not on the disk");
    let recorded = room.stack.base.records.disk().expect("it has one").appended();
    room.stack.handle_persisted(NOW, recorded - 1);
    assert_eq!(snapshots(&mut room), 0);
    room.stack.handle_persisted(NOW, recorded);
    assert_eq!(snapshots(&mut room), 1);
}

/// The simulator's seed 675 of the world of disks: a transfer had delivered the state, its donor
/// died before the disk had it, and the group began anew. Requests that it executed then were
/// answered, and no stored state preceded them.
#[test]
fn who_begins_a_group_begins_it_on_the_disk_too() {
    let mut room = disk_room();
    room.join_with(2, on_disk());
    room.join_with(1, on_disk());
    assert_eq!(room.records(), [LOST]);
    room.transfer();
    assert_eq!(room.stack.replicas.replicas_with_state(&room.stack.base), [], "it is not stored");
    room.configure(20);
    room.announce();
    room.install(vec![entry(&[(1, false)], on_disk())]);
    assert_eq!(room.records(), [BEGUN]);
    assert_eq!(room.stack.replicas.replicas_with_state(&room.stack.base).len(), 1);
}

/// The simulator's seed 279 of the world `everything`: the disk's state was announced, and given up
/// with the next view. When the group awoke that state counted. The replica was told to go on with
/// a state that it no longer had.
#[test]
fn what_the_disk_has_of_a_group_that_sleeps_is_kept() {
    let mut room = alone();
    room.request(1, 1);
    let taken = room.stack.replicas.replicas_with_state(&room.stack.base);
    room.outputs();
    room.configure(20);
    room.sleep();
    room.join_with(2, on_disk());
    assert_eq!(
        room.stack.replicas.replicas_with_state(&room.stack.base),
        taken,
        "it is not in the table"
    );
    room.join_with(1, on_disk());
    assert_eq!(
        room.stack.replicas.replicas_with_state(&room.stack.base),
        taken,
        "it is, without the state"
    );
    assert_eq!(room.records(), []);
}

/// The simulator's seed 559 of the world `everything`: the cluster state had moved the replica, and
/// nobody hosted the group of the disk's state.
#[test]
fn a_node_knows_what_its_disk_has_of_a_group_that_sleeps() {
    let mut room = back(&[]);
    room.configure(1);
    room.sleep();
    assert_eq!(room.stack.picture().brings, [log()]);
    room.stack.host(NOW, "log", on_disk()).expect("hosted");
    assert_eq!(room.stack.picture().brings, [log()], "nobody has said yet what it is worth");
    room.configure(20);
    room.announce_with_disks();
    room.install(vec![entry(&[(2, true)], on_disk())]);
    assert_eq!(room.stack.picture().brings, [], "another has the state");
}

/// The simulator's world `poison`, seed 1079: a node's disk failed at its start. The node gave up
/// the recalled state when its service had executed it, before any announcement. All disks were
/// there, so the group began anew at a replica that was joining.
#[test]
fn who_leaves_before_its_first_component_brings_what_its_disk_has() {
    let second = wire::ordered::Request { proven: 1, ..a_request(2) };
    let mut room = back(&[a_request(1), second]);
    room.stack.host(NOW, "log", on_disk()).expect("hosted");
    room.stack.leave(NOW);
    let first = room.executions()[0];
    let reply = Executed::Reply(ServiceOutcome::Ok(Bytes::new()));
    room.stack.handle_executed(NOW, log(), first, reply);
    let place = Place { epoch: 1, ring: ring(1), sequence: 2 };
    assert_eq!(room.stack.replicas.replicas_with_state(&room.stack.base), [(log(), place)]);
    room.configure(20);
    room.announce_with_disks();
    room.install(vec![entry(&[(2, true)], on_disk())]);
    assert!(!room.stack.is_hosting(log()), "another has more");
}

/// The simulator's world `poison`, seed 2577: a leader waited until a disk had its report that it
/// tries a call. The report was lost on the way, and the leader asked nobody.
#[test]
fn a_leader_that_waits_for_disks_asks_them() {
    let mut room = back(&[a_request(1)]);
    room.stack.host(NOW, "log", on_disk()).expect("hosted");
    room.configure(20);
    room.announce_disks(Vec::new(), Vec::new());
    room.install(vec![entry(&[(1, true)], on_disk())]);
    room.store_all();
    let trial = room
        .stack
        .base
        .outbox
        .ordering
        .multicast
        .pop()
        .expect("it may have killed who was given it");
    let trial = Ordered::decode(&trial).expect("what it wrote");
    assert!(matches!(trial, Ordered::Progress(_)), "{trial:?}");
    room.deliver(1, trial);
    room.hold_all();
    let asked = room.stack.base.outbox.ordering.asked;
    room.stack.handle_timeout(NOW + Duration::from_secs(1));
    assert_eq!(room.stack.base.outbox.ordering.asked, asked + 1);
    assert_eq!(room.executions().len(), 0);
    room.store_all();
    assert_eq!(room.executions().len(), 1);
}

/// The simulator's seed 613 of the world `decay`: the disk had no room for the transferred state,
/// and the replica never had it.
#[test]
fn a_later_state_stands_for_what_a_transfer_has_brought() {
    let mut room = disk_room();
    room.join_with(2, on_disk());
    room.join_with(1, on_disk());
    let transfer = room.transfer();
    room.request(2, 1);
    let told = Ordered::Synced(Synced { group: log(), transfer }).encode();
    let says = |room: &Room| room.stack.base.outbox.ordering.multicast.contains(&told);
    let recorded = room.stack.base.records.disk().expect("it has one").appended();
    room.stack.handle_snapshot_stored(NOW, log(), 1);
    assert!(!says(&room), "what it had before it lost all");
    room.stack.handle_snapshot_stored(NOW, log(), recorded);
    assert!(says(&room));
}

impl Room {
    /// All members have all messages so far, on their disks too.
    fn store_all(&mut self) {
        for node in 1..=3 {
            self.stack.base.outbox.ordering.stored.insert(NodeId(node), self.sequence);
        }
        self.hold_all();
        self.happens(ordering::Output::Stored { ring: self.ring });
    }

    /// Everybody has a disk; 2 has the group's last request.
    fn announce_with_disks(&mut self) {
        let last = Place { epoch: 9, ring: ring(9), sequence: 9 };
        self.announce_disks(vec![(log(), last)], Vec::new());
    }

    /// Everybody has a disk. Node 2 announces `brought`; `left` is on the disk of 3, which hosts
    /// none of it.
    fn announce_disks(&mut self, brought: Vec<(GroupId, Place)>, left: Vec<GroupId>) {
        for node in 1..=3 {
            let (groups, since, restarted) = (Vec::new(), Incarnation(1), false);
            let waiting = if node == 3 { left.clone() } else { Vec::new() };
            let recall = Recall { since, restarted, volatile: false, groups, waiting };
            let replicas = match node {
                1 => self.stack.replicas.replicas_with_state(&self.stack.base),
                2 => brought.clone(),
                _ => Vec::new(),
            };
            let plain = self.nothing();
            let announce = Announce { replicas, recall: Some(recall), ..plain };
            self.deliver(node, Ordered::Announce(Box::new(announce)));
        }
    }

    /// The group was last in node 3's former life, whose disk has more of it.
    fn sleep(&mut self) {
        self.announce_disks(Vec::new(), vec![log()]);
        let last = Place { epoch: 9, ring: ring(9), sequence: 10 };
        let asleep = vec![Member { incarnation: Incarnation(0), ..member(3) }];
        self.install(vec![GroupEntry { last, floor: last, asleep, ..entry(&[], on_disk()) }]);
    }
}
