//! The last replica with the state awaits one that is out of the table and rejoins.

use super::*;

/// Node 1 is the primary, 2 has the state as well.
fn two() -> Room {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.join(2);
    two_has_it(&mut room);
    room
}

/// Node 2 has got the state.
fn two_has_it(room: &mut Room) {
    room.snapshot();
    let transfer = room.stack.base.directory.get(log()).expect("the group").transfer();
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
}

fn come_anew(room: &mut Room, node: u32) {
    room.deliver(
        node,
        Ordered::LeaveGroup(LeaveGroup { group: log(), going: Going::Returns, died: None }),
    );
}

impl Room {
    /// Messages that this node has multicast.
    fn ordered(&self) -> Vec<Ordered> {
        let multicast = self.stack.base.outbox.ordering.multicast.iter();
        multicast.map(|payload| Ordered::decode(payload).expect("it was encoded here")).collect()
    }
}

/// How this node has ordered that its replica leaves.
fn leavings(room: &Room) -> Vec<Going> {
    let leaving = |payload: &Bytes| match Ordered::decode(payload) {
        Ok(Ordered::LeaveGroup(leave)) => Some(leave.going),
        _ => None,
    };
    room.stack.base.outbox.ordering.multicast.iter().filter_map(leaving).collect()
}

#[test]
fn who_goes_serves_until_a_replica_that_comes_anew_has_the_state() {
    let mut room = two();
    come_anew(&mut room, 2);
    room.stack.unhost(NOW, log());
    assert_eq!(leavings(&room), [], "2 is to come again");
    room.leave(1);
    assert!(room.stack.is_hosting(log()), "what it said when it knew of two is void");
    room.join(2);
    two_has_it(&mut room);
    room.leave(1);
    let group = room.stack.base.directory.get(log()).expect("the group");
    assert_eq!(group.primary(), Some(member(2)));
}

#[test]
fn a_node_says_whether_its_replica_comes_again() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(2);
    room.join(1);
    room.restore();
    room.stack.replicas().rejoin(NOW, log());
    assert_eq!(leavings(&room), [Going::Returns]);
    room.stack.unhost(NOW, log());
    assert_eq!(leavings(&room), [Going::Returns, Going::ForGood]);
    come_anew(&mut room, 1);
    assert!(room.stack.is_hosting(log()), "it is awaited until all know that it does not come");
    room.leave(1);
    assert!(!room.stack.is_hosting(log()));
    room.leave(2);
    assert_eq!(room.stack.base.directory.get(log()), None, "nobody is awaited");
}

/// The simulator's seed 568 of the world `everything`: a service was to move, its new host was
/// lost, and the old one ended the group.
#[test]
fn who_parts_serves_as_long_as_no_other_has_the_state() {
    let mut room = two();
    room.stack.part(NOW, log());
    let part = |room: &mut Room, node| {
        let leave = LeaveGroup { group: log(), going: Going::IfSpared, died: None };
        room.deliver(node, Ordered::LeaveGroup(leave));
    };
    room.leave(2);
    part(&mut room, 1);
    assert!(room.stack.is_parting(log()), "what it said when it knew of two is void");
    room.call(1);
    assert!(matches!(room.ordered().last(), Some(Ordered::Request(_))), "it serves");
    room.join(2);
    two_has_it(&mut room);
    part(&mut room, 1);
    let group = room.stack.base.directory.get(log()).expect("the group");
    assert_eq!(group.primary(), Some(member(2)));
}

#[test]
fn who_parts_and_need_not_any_more_ends_its_group() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    room.stack.part(NOW, log());
    assert_eq!(leavings(&room), [], "nobody else has the state");
    room.stack.unhost(NOW, log());
    assert_eq!(leavings(&room), [Going::ForGood]);
    room.leave(1);
    assert_eq!(room.stack.base.directory.get(log()), None);
}
