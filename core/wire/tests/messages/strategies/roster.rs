//! The nodes, and how they change.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use wire::NodeId;
use wire::limits::{MAX_MEMBERS, MAX_RING_LINKS, MAX_ROSTER_PART, MAX_ROSTER_PARTS};
use wire::ordered::{Announce, Install, Ordered, Place};
use wire::roster::{Motion, Moving, Roster, RosterPart, RosterStep, Seat};

use super::{address, announce, install, place};

fn seats(most: usize) -> impl Strategy<Value = Vec<Seat>> {
    btree_map(any::<u32>(), vec(address(), 0..=MAX_RING_LINKS), 0..=most).prop_map(|seats| {
        seats.into_iter().map(|(node, ring)| Seat { node: NodeId(node), ring }).collect()
    })
}

fn motion() -> impl Strategy<Value = Motion> {
    let seat = (any::<u32>(), vec(address(), 0..=MAX_RING_LINKS))
        .prop_map(|(node, ring)| Seat { node: NodeId(node), ring });
    prop_oneof![seat.prop_map(Motion::Admit), any::<u32>().prop_map(|n| Motion::Retire(NodeId(n)))]
}

/// One that was changed: its stamp is not that of the configuration.
fn roster() -> impl Strategy<Value = Roster> {
    let kept = vec(any::<u32>().prop_map(NodeId), 0..=MAX_MEMBERS);
    let moving = (motion(), kept).prop_map(|(motion, kept)| Moving { motion, kept });
    let stamp = place().prop_filter("it was changed", |stamp| *stamp != Place::default());
    (stamp, seats(MAX_MEMBERS), seats(4), option::of(moving))
        .prop_map(|(stamp, seats, retired, moving)| Roster { stamp, seats, retired, moving })
}

fn step() -> impl Strategy<Value = RosterStep> {
    prop_oneof![
        (motion(), seats(4)).prop_map(|(motion, base)| RosterStep::Propose { motion, base }),
        place().prop_map(RosterStep::Kept),
        place().prop_map(RosterStep::Withdraw),
    ]
}

pub fn part() -> impl Strategy<Value = RosterPart> {
    (place(), 1..=MAX_ROSTER_PARTS, any::<u8>(), vec(any::<u8>(), 0..=MAX_ROSTER_PART)).prop_map(
        |(stamp, parts, part, bytes)| RosterPart { stamp, part: part % parts, parts, bytes },
    )
}

pub fn ordered() -> impl Strategy<Value = Ordered> {
    prop_oneof![
        step().prop_map(|step| Ordered::Roster(Box::new(step))),
        (install(), roster()).prop_map(|(install, roster)| Ordered::Install(Box::new(Install {
            roster,
            ..install
        }))),
        (announce(), roster()).prop_map(|(announce, roster)| Ordered::Announce(Box::new(
            Announce { roster, ..announce }
        ))),
    ]
}
