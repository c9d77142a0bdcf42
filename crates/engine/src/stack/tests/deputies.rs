//! Who answers a call in whose place, and who answers it when that goes wrong.

use wire::ordered::Move;

use super::*;

/// Nodes 1 and 2 host the group, both with the state; the first is its primary. With its view.
fn pair() -> (Room, ViewNumber) {
    let mut room = Room::paired();
    room.hold_all();
    let view = room.stack.directory.get(log()).expect("the group").view;
    (room, view)
}

/// The client, connected to both, asks this node, which orders what it asks.
fn ordered_here(room: &mut Room, number: u64, view: ViewNumber, deputy: bool) -> Option<bool> {
    let before = room.stack.ordering.multicast.len();
    let request = Request {
        group: log(),
        client: CLIENT,
        number,
        unanswered: 1,
        view,
        method: MethodId(1),
        patience_us: 1_000_000,
        criticality: 0,
        json: false,
        access: Access::Change,
        deputy,
        body: Bytes::new(),
    };
    room.stack.handle_frame(NOW, NOW, CALLER, Frame::Request(request));
    let payload = room.stack.ordering.multicast.get(before)?.clone();
    let Ok(Ordered::Request(request)) = Ordered::decode(&payload) else { panic!("a request") };
    let left = request.deputy;
    room.deliver(1, Ordered::Request(request));
    Some(left)
}

fn hello(room: &mut Room) {
    room.stack.handle_frame(NOW, NOW, CALLER, Frame::Hello(Hello::new(CLIENT)));
}

fn execute(room: &mut Room, result: &'static str) {
    let tickets = room.executions();
    room.executed(tickets[0], result);
}

fn done(result: &'static str) -> Outcome {
    Outcome::Ok(Bytes::from_static(result.as_bytes()))
}

#[test]
fn a_primary_leaves_an_answer_to_a_deputy_that_has_the_request_and_gives_it_when_asked_again() {
    let (mut room, view) = pair();
    hello(&mut room);
    room.stack.ordering.reached.insert(NodeId(2), room.sequence);
    assert_eq!(ordered_here(&mut room, 1, view, true), Some(true));
    execute(&mut room, "one");
    room.hold_all();
    assert_eq!((room.replies(), room.stack.callers.len()), (vec![], 1), "node 2 may not have it");
    room.stack.ordering.reached.insert(NodeId(2), room.sequence);
    room.hold_all();
    assert_eq!((room.replies(), room.stack.callers.len()), (vec![], 0), "node 2 answers");
    assert_eq!(ordered_here(&mut room, 1, view, false), None, "it is not ordered again");
    assert_eq!(room.replies(), [done("one")]);
}

#[test]
fn what_was_left_to_a_deputy_is_answered_by_the_primary_when_the_configuration_is_over() {
    let (mut room, view) = pair();
    hello(&mut room);
    room.stack.ordering.reached.insert(NodeId(2), room.sequence);
    assert_eq!(ordered_here(&mut room, 1, view, true), Some(true));
    execute(&mut room, "one");
    room.hold_all();
    assert_eq!(room.replies(), []);
    let state = room.stack.replicas_with_state();
    room.configure(2);
    for node in 1..=3 {
        let replicas = if node == 1 { state.clone() } else { Vec::new() };
        room.deliver(node, Ordered::Announce(Announce { replicas, ..room.nothing() }));
    }
    let last = Place { epoch: 1, ring: ring(1), sequence: 0 };
    let options = GroupOptions::default();
    room.install(vec![GroupEntry { last, ..entry(&[(1, true)], options) }]);
    room.hold_all();
    assert_eq!(room.replies(), [done("one")]);
}

#[test]
fn nobody_is_left_an_answer_who_lags_or_whom_the_client_did_not_choose_or_while_many_wait() {
    let (mut room, view) = pair();
    hello(&mut room);
    let older = ViewNumber(view.0 - 1);
    assert_eq!(ordered_here(&mut room, 1, older, true), Some(false), "another view");
    assert_eq!(ordered_here(&mut room, 2, view, false), Some(false), "it did not ask for it");
    for number in 3..40 {
        room.request(2, number);
    }
    room.stack.ordering.reached.insert(NodeId(2), room.sequence - 17);
    room.hold_all();
    assert_eq!(ordered_here(&mut room, 40, view, true), Some(false), "it has not kept up");
    room.stack.ordering.reached.insert(NodeId(2), room.sequence - 1);
    room.hold_all();
    assert_eq!(ordered_here(&mut room, 41, view, true), Some(true));
    assert_eq!(room.stack.callers.len(), 4);
    assert_eq!(ordered_here(&mut room, 42, view, true), Some(false), "more than four wait");
}

/// Node 2 is the primary, and node 1 its deputy.
fn deputy() -> Room {
    let (mut room, view) = pair();
    room.deliver(2, Ordered::Move(Move { group: log(), to: member(2), view }));
    let primary = room.stack.directory.get(log()).expect("the group").primary();
    assert_eq!(primary, Some(member(2)));
    room.outputs();
    room
}

fn left_here(room: &mut Room, number: u64) {
    let request = wire::ordered::Request { deputy: true, ..a_request(number) };
    room.deliver(2, Ordered::Request(request));
}

#[test]
fn a_deputy_answers_what_it_was_not_asked_as_soon_as_it_is_held() {
    let mut room = deputy();
    hello(&mut room);
    left_here(&mut room, 1);
    execute(&mut room, "one");
    let (ring, majority) = (room.ring, room.sequence);
    room.stack.ordering.reached.insert(NodeId(2), room.sequence - 1);
    room.happens(ordering::Output::Held { ring, majority, all: 0 });
    assert_eq!(room.replies(), [], "its sender is not known to have it");
    room.stack.ordering.reached.insert(NodeId(2), room.sequence);
    room.happens(ordering::Output::Held { ring, majority, all: 0 });
    assert_eq!(room.replies(), [done("one")]);
    room.request(2, 2);
    execute(&mut room, "two");
    room.hold_all();
    assert_eq!(room.replies(), [], "that was not left to it");
}

#[test]
fn a_deputy_without_the_clients_connection_keeps_nothing() {
    let mut room = deputy();
    left_here(&mut room, 1);
    execute(&mut room, "one");
    room.hold_all();
    assert_eq!((room.replies(), room.stack.callers.len()), (vec![], 0));
    hello(&mut room);
    left_here(&mut room, 2);
    assert_eq!(room.stack.callers.len(), 1);
    room.stack.handle_disconnect(NOW, CALLER);
    assert_eq!(room.stack.callers.len(), 0);
}
