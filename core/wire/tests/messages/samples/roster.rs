//! The nodes, and how they change.

use wire::NodeId;
use wire::ordered::{Announce, Install, Ordered, Place};
use wire::roster::{Motion, Moving, Roster, RosterStep, Seat};

use super::{RING, requests_and_components};

/// A node comes to two others.
pub fn roster() -> Roster {
    let seat =
        |node: u32| Seat { node: NodeId(node), ring: vec![([192, 0, 2, node as u8], 7201).into()] };
    Roster {
        stamp: Place { epoch: 5, ring: RING, sequence: 0x20 },
        seats: vec![seat(1), seat(3)],
        retired: vec![Seat { node: NodeId(2), ring: Vec::new() }],
        moving: Some(Moving { motion: Motion::Admit(seat(4)), kept: vec![NodeId(1)] }),
    }
}

pub fn propose() -> RosterStep {
    let Roster { seats, moving, .. } = roster();
    RosterStep::Propose { motion: moving.expect("it has one").motion, base: seats }
}

/// The sample of this name, with a roster that was changed.
pub fn with_roster(name: &str) -> Ordered {
    let samples = requests_and_components();
    let sample = samples.into_iter().find(|(known, _)| *known == name).expect("a sample").1;
    match sample {
        Ordered::Install(install) => {
            Ordered::Install(Box::new(Install { roster: roster(), ..*install }))
        }
        Ordered::Announce(announce) => {
            Ordered::Announce(Box::new(Announce { roster: roster(), ..*announce }))
        }
        _ => unreachable!("no other has one"),
    }
}
