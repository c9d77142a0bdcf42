//! Which members a reply waits for, how a sleeping group acts, and how long a group may still come.

use super::*;
use alloc::boxed::Box;

#[test]
fn a_reply_waits_for_a_majority_of_the_replicas_whatever_bystanders_hold() {
    let (mut room, transfer) = Room::joined();
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
    room.call(1);
    room.request(1, 1);
    let tickets = room.executions();
    room.executed(tickets[0], "held");
    // Nodes 1 and 3 have it; node 2, the other replica, does not.
    let held = ordering::Output::Held { ring: room.ring, majority: room.sequence, all: 0 };
    room.stack.base.outbox.ordering.reached.insert(NodeId(2), room.sequence - 1);
    room.happens(held.clone());
    assert_eq!(room.replies(), []);
    room.stack.base.outbox.ordering.reached.insert(NodeId(2), room.sequence);
    room.happens(held);
    assert_eq!(room.replies(), [Outcome::Ok(Bytes::from_static(b"held"))]);
}

#[test]
fn a_request_from_before_the_replicas_were_these_is_held_by_all() {
    let (mut room, transfer) = Room::joined();
    room.call(1);
    room.request(1, 1);
    let place = room.sequence;
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
    let tickets = room.executions();
    room.executed(tickets[0], "held");
    let (ring, majority) = (room.ring, room.sequence);
    room.happens(ordering::Output::Held { ring, majority, all: place - 1 });
    assert_eq!(room.replies(), [], "2 was no replica yet, and 3 may be the only one to tell it");
    room.happens(ordering::Output::Held { ring, majority, all: place });
    assert_eq!(room.replies().len(), 1);
}

#[test]
fn a_replica_of_a_sleeping_group_keeps_its_state_and_takes_nothing() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.request(1, 1);
    let tickets = room.executions();
    room.executed(tickets[0], "one");
    let state = room.stack.replicas.replicas_with_state(&room.stack.base);
    assert_eq!(state.len(), 1);
    room.configure(2);
    for node in 1..=3 {
        let replicas = if node == 1 { state.clone() } else { Vec::new() };
        room.deliver(node, Ordered::Announce(Box::new(Announce { replicas, ..room.nothing() })));
    }
    // 4 and 5 are away, and a member knows of a later request.
    let last = Place { epoch: 1, ring: ring(1), sequence: 99 };
    let replicas = [(1, true), (4, true), (5, true)];
    room.install(vec![GroupEntry { last, ..entry(&replicas, GroupOptions::default()) }]);
    assert_eq!(room.stack.base.directory.get(log()).expect("the group").primary(), None);
    room.outputs();
    room.request(1, 2);
    assert!(room.executions().is_empty());
    assert_eq!(
        room.stack.replicas.replicas_with_state(&room.stack.base),
        state,
        "it may be all that was answered"
    );
}

/// A client calls a group that nobody knows, this long after the configuration. Returns whether the
/// client gets that answer.
fn is_told_after(members: u32, installed: u64, waited: u64) -> bool {
    let ms = wire::Duration::from_millis;
    let mut room = Room::new();
    room.ring = ring(1);
    let kind = ConfigurationKind::Regular;
    let members: Vec<Member> = (1..=members).map(member).collect();
    let configuration = Configuration { kind, ring: room.ring, members: members.clone() };
    room.happens(ordering::Output::Configuration(configuration));
    for member in members {
        room.deliver(member.node.0, Ordered::Announce(Box::new(room.nothing())));
    }
    let install = Install {
        ring: room.ring,
        epoch: 1,
        groups: Vec::new(),
        keys: None,
        programs: Vec::new(),
        roster: Default::default(),
    };
    let delivery = Delivery {
        ring: room.ring,
        sequence: 9,
        contiguous: true,
        sender: member(1),
        level: Level::Agreed,
        payload: Ordered::Install(Box::new(install)).encode(),
    };
    room.stack.base.outbox.ordering.script.push_back(ordering::Output::Deliver(delivery));
    room.stack.settle(NOW + ms(installed));
    room.call(1);
    room.stack.handle_timeout(NOW + ms(installed + waited));
    room.replies() == [Outcome::NoSuchGroup]
}

#[test]
fn nobody_is_told_that_a_group_does_not_exist_while_its_hosts_may_be_joining() {
    assert!(!is_told_after(3, 1, 40) && is_told_after(3, 1, 60));
    // Announcements took 80 ms, as of fourteen nodes with 2.5 ms between them: so do joins.
    assert!(!is_told_after(3, 80, 300) && is_told_after(3, 80, 330));
    // A node is still missing: it may host the group.
    assert!(!is_told_after(2, 1, 900));
}
