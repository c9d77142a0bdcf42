//! A change of style is proposed at a node that does not know yet the answer that others got.

use wire::ordered::{Restyle, Style};

use super::*;
use crate::api::RestyleError;

/// This node alone has an active group.
fn active() -> (Room, ViewNumber) {
    let mut room = Room::active(Vec::new());
    let options = GroupOptions { style: Style::Active, ..GroupOptions::default() };
    room.stack.host(NOW, "log", options).expect("hosted");
    room.join_with(1, options);
    room.outputs();
    let view = room.stack.base.directory.get(log()).expect("the group").view;
    (room, view)
}

fn restyle(view: ViewNumber, style: Style) -> Ordered {
    Ordered::Restyle(Restyle { group: log(), view, style })
}

fn propose(room: &mut Room) {
    room.stack.restyle(NOW, log(), Style::Active).expect("begun");
}

fn ends(room: &mut Room) -> Vec<Result<ViewNumber, RestyleError>> {
    let end = |output| match output {
        Output::Restyled { outcome, .. } => Some(outcome),
        _ => None,
    };
    room.outputs().into_iter().filter_map(end).collect()
}

/// The test `a_group_goes_through_its_styles_under_load`, on a busy machine. The group was warm
/// passive again as far as this node knew, and active as another had answered. A proposer of warm
/// passive here got the answer that it was so.
#[test]
fn that_a_group_has_a_style_already_is_said_at_its_place_in_the_order() {
    let (mut room, view) = active();
    propose(&mut room);
    assert_eq!(ends(&mut room), [], "another may have changed it");
    room.deliver(2, restyle(view, Style::SemiActive));
    room.deliver(1, restyle(view, Style::Active));
    assert_eq!(ends(&mut room), [], "the proposal was of another view");
    room.deliver(1, restyle(ViewNumber(view.0 + 1), Style::Active));
    assert_eq!(ends(&mut room), [Ok(ViewNumber(view.0 + 2))]);
}

#[test]
fn a_style_that_the_group_has_is_no_change() {
    let (mut room, view) = active();
    propose(&mut room);
    room.deliver(1, restyle(view, Style::Active));
    assert_eq!(ends(&mut room), [Ok(view)]);
}
