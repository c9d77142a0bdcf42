//! The consequences of a lost replica: a state that others are about to count on, and calls that no
//! other node has.

use alloc::boxed::Box;
use wire::ordered::{Died, Style};

use super::*;
use crate::api::Begun;

/// Node 1 took one request more than node 2, and both announce so in a new configuration.
fn furthest() -> Room {
    let mut room = Room::paired();
    room.request(1, 1);
    let first = room.stack.replicas.replicas_with_state(&room.stack.base);
    room.request(1, 2);
    let second = room.stack.replicas.replicas_with_state(&room.stack.base);
    assert_ne!(first, second);
    room.configure(2);
    for (node, replicas) in [(1, second), (2, first), (3, Vec::new())] {
        room.deliver(node, Ordered::Announce(Box::new(Announce { replicas, ..room.nothing() })));
    }
    room.stack.base.outbox.ordering.multicast.clear();
    room
}

/// The authority's table, whose order has no second request.
fn install(room: &mut Room) {
    let mut table = room.stack.base.directory.entries();
    table[0].last = table[0].floor;
    room.install(table);
}

fn synced(room: &Room) -> Vec<Member> {
    room.stack.base.directory.get(log()).expect("the group").synced().collect()
}

fn announced(room: &Room) -> Option<Announce> {
    let ordered = |payload| Ordered::decode(payload).expect("what it wrote");
    room.stack.base.outbox.ordering.multicast.iter().map(ordered).find_map(
        |ordered| match ordered {
            Ordered::Announce(announce) => Some(*announce),
            _ => None,
        },
    )
}

#[test]
fn who_has_taken_the_most_goes_on() {
    let mut room = furthest();
    install(&mut room);
    assert_eq!(synced(&room), [member(1)]);
}

/// Simulator seed 309362: no replica was left in the group, though the other had every answered
/// request.
#[test]
fn who_loses_it_before_the_installation_takes_its_announcement_back() {
    let mut room = furthest();
    room.stack.abandon(NOW, log());
    let again = announced(&room).expect("what it said is not true any more");
    assert_eq!(again.replicas, []);
    room.deliver(1, Ordered::Announce(Box::new(again)));
    install(&mut room);
    assert_eq!(synced(&room), [member(2)]);
}

#[test]
fn a_state_that_others_count_on_is_not_begun_anew() {
    let mut room = furthest();
    let group = log();
    room.stack.replicas().with_replica(NOW, group, |replica, effects| replica.idle(effects));
    room.stack.replicas().rejoin(NOW, group);
    assert_eq!(announced(&room).map(|announce| announce.replicas), Some(Vec::new()));
    install(&mut room);
    assert_eq!(synced(&room), [member(1)], "that it was lost comes too late");
    assert_eq!(
        room.stack.replicas.replicas_with_state(&room.stack.base),
        [],
        "what it would begin with was never answered"
    );
    assert!(announced(&room).is_some());
}

#[test]
fn in_a_component_nothing_is_announced() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.stack.base.outbox.ordering.multicast.clear();
    room.stack.abandon(NOW, log());
    assert_eq!(announced(&room), None);
}

/// Simulator seed 376321: both replicas of a group died one after the other. The client waited
/// until its deadline for a call that both had got.
#[test]
fn who_has_called_a_stateless_replica_that_is_lost_is_told() {
    let mut room = Room::active(Vec::new());
    let options = GroupOptions { style: Style::Stateless, ..GroupOptions::default() };
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(1, options);
    room.call(1);
    assert_eq!(room.executions().len(), 1);
    room.stack.abandon(NOW, log());
    assert_eq!(room.replies(), [Outcome::Gone]);
    room.stack.host(NOW, "log", options).expect_err("it has yet to go");
    room.leave(1);
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(1, options);
    room.call(1);
    assert_eq!(room.executions().len(), 1, "its client asks again");
}

/// Simulator seed 579868: the client waited for this replica's answer until its deadline.
#[test]
fn who_waits_here_is_sent_to_another_when_the_service_is_lost() {
    let mut room = Room::paired();
    room.call(1);
    room.request(1, 1);
    let ordered = |room: &Room| {
        let messages = room.stack.base.outbox.ordering.multicast.iter();
        let messages = messages.map(|payload| Ordered::decode(payload).expect("what it wrote"));
        messages.filter(|message| matches!(message, Ordered::Request(_))).count()
    };
    assert_eq!(ordered(&room), 1);
    room.stack.abandon(NOW, log());
    assert_eq!(room.replies(), [Outcome::Gone], "it may have been executed");
    room.leave(1);
    room.host();
    room.join(1);
    let transfer = room.transfer();
    assert_eq!(ordered(&room), 1);
    room.deliver(1, Ordered::Synced(Synced { group: log(), transfer }));
    assert_eq!(ordered(&room), 1, "nobody waits here any more");
}

/// The simulator's world `poison`, seed 1525: the programs of a group that was never called died,
/// one after the other. The last one's replica was the next to begin, was leaving, and was called
/// before it had left.
#[test]
fn whose_program_dies_before_the_group_begins_here_begins_with_the_next() {
    let mut room = Room::active(Vec::new());
    room.join(2);
    room.stack.host_program(NOW, "log", GroupOptions::default()).expect("hosted");
    room.join(1);
    room.stack.service_lost(NOW, log(), Begun::Nothing);
    let died = Some(Died::default());
    let leaves = LeaveGroup { group: log(), going: Going::ForGood, died };
    room.deliver(2, Ordered::LeaveGroup(leaves.clone()));
    room.join(3);
    assert_eq!(synced(&room), [member(1)]);
    room.request(3, 1);
    room.deliver(1, Ordered::LeaveGroup(leaves));
    assert_eq!(synced(&room), [member(1)]);
    let outputs = room.outputs();
    assert!(outputs.contains(&Output::Revive(log())));
    let executes =
        |output: &&Output| matches!(output, Output::Run { command: Command::Execute { .. }, .. });
    assert_eq!(outputs.iter().filter(executes).count(), 1);
}

/// The simulator's world `poison`, seed 629: the node of a dead program began to leave, and
/// reported the death once more. One death counted as two, and two are enough to refuse a call.
#[test]
fn a_death_is_told_once_though_its_node_leaves() {
    let mut room = Room::active(Vec::new());
    room.stack.host_program(NOW, "log", GroupOptions::default()).expect("hosted");
    room.join(1);
    room.request(1, 1);
    room.stack.service_lost(NOW, log(), Begun::Any);
    room.stack.leave(NOW);
    let ordered = |payload| Ordered::decode(payload).expect("what it wrote");
    let messages = room.stack.base.outbox.ordering.multicast.iter().map(ordered);
    let leaves = |message: &Ordered| matches!(message, Ordered::LeaveGroup(_));
    assert_eq!(messages.filter(leaves).count(), 1);
}
