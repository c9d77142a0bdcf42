//! A replica that is gone from the table and comes again is awaited by the last that has the state.

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

/// Node 2 has been given the state.
fn two_has_it(room: &mut Room) {
    room.snapshot();
    let transfer = room.stack.directory.get(log()).expect("the group").transfer();
    room.deliver(2, Ordered::Synced(Synced { group: log(), transfer }));
}

fn come_anew(room: &mut Room, node: u32) {
    room.deliver(node, Ordered::LeaveGroup(LeaveGroup { group: log(), returns: true, died: None }));
}

/// How this node has said that its replica goes.
fn leavings(room: &Room) -> Vec<bool> {
    let leaving = |payload: &Bytes| match Ordered::decode(payload) {
        Ok(Ordered::LeaveGroup(leave)) => Some(leave.returns),
        _ => None,
    };
    room.stack.ordering.multicast.iter().filter_map(leaving).collect()
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
    let group = room.stack.directory.get(log()).expect("the group");
    assert_eq!(group.primary(), Some(member(2)));
}

#[test]
fn a_node_says_whether_its_replica_comes_again() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(2);
    room.join(1);
    room.restore();
    room.stack.rejoin(NOW, log());
    assert_eq!(leavings(&room), [true]);
    room.stack.unhost(NOW, log());
    assert_eq!(leavings(&room), [true, false]);
    come_anew(&mut room, 1);
    assert!(room.stack.is_hosting(log()), "it is awaited until all know that it does not come");
    room.leave(1);
    assert!(!room.stack.is_hosting(log()));
    room.leave(2);
    assert_eq!(room.stack.directory.get(log()), None, "nobody is awaited");
}
