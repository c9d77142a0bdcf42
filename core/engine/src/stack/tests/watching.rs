//! Clients that watch a group get its newer views.

use wire::client::{Bound, Watch};
use wire::limits::MAX_WATCHES;

use super::*;

fn watch(room: &mut Room, caller: Caller, view: ViewNumber) {
    let frame = Frame::Watch(Watch { group: log(), view });
    room.stack.handle_frame(NOW, NOW, caller, frame);
    room.stack.settle(NOW);
}

fn hello(room: &mut Room, caller: Caller) {
    let client = ClientId(caller.0);
    room.stack.handle_frame(NOW, NOW, caller, Frame::Hello(Hello::new(client)));
}

/// The notified callers, each with the view.
fn told(room: &mut Room) -> Vec<(Caller, u64)> {
    let mut told = Vec::new();
    while let Some(output) = room.stack.poll_output() {
        if let Output::Frame { caller, frame: Frame::News(Bound { targets, .. }) } = output {
            told.push((caller, targets.expect("news have targets").view.0));
        }
    }
    told
}

fn view(room: &Room) -> ViewNumber {
    room.stack.base.directory.get(log()).expect("the group").view
}

#[test]
fn who_watches_is_told_of_each_newer_view_while_connected() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    let (one, two) = (Caller(1), Caller(2));
    hello(&mut room, one);
    hello(&mut room, two);
    let known = view(&room);
    watch(&mut room, one, known);
    assert_eq!(told(&mut room), [], "it knows the view");
    watch(&mut room, two, ViewNumber(0));
    assert_eq!(told(&mut room), [(two, known.0)], "it has missed one");
    room.join(2);
    room.stack.settle(NOW);
    let next = view(&room);
    assert!(next > known);
    let told_of = told(&mut room);
    assert!(told_of.contains(&(one, next.0)) && told_of.contains(&(two, next.0)), "{told_of:?}");
    room.stack.handle_disconnect(NOW, one);
    room.join(3);
    room.stack.settle(NOW);
    let told_of = told(&mut room);
    assert!(told_of.iter().all(|(caller, _)| *caller == two) && !told_of.is_empty());
}

#[test]
fn at_the_limit_nobody_more_is_told() {
    let mut room = Room::active(Vec::new());
    room.host();
    room.join(1);
    hello(&mut room, CALLER);
    for group in 0..MAX_WATCHES as u64 {
        let frame = Frame::Watch(Watch { group: GroupId(group), view: ViewNumber(0) });
        room.stack.handle_frame(NOW, NOW, CALLER, frame);
    }
    watch(&mut room, CALLER, ViewNumber(0));
    assert_eq!(told(&mut room), []);
    room.stack.check_invariants();
    room.stack.handle_disconnect(NOW, CALLER);
    hello(&mut room, CALLER);
    watch(&mut room, CALLER, ViewNumber(0));
    assert_eq!(told(&mut room).len(), 1, "there is room again");
}
