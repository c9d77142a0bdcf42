//! The cluster's nodes as its order has decided them (`docs/protocol/growth.md`).

use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec::{append, at_most, read};
#[cfg(any(doc, test))]
use crate::limits::MAX_TOLD;
use crate::limits::{MAX_MEMBERS, MAX_RETIRED, MAX_RING_LINKS, MAX_ROSTER_PART, MAX_ROSTER_PARTS};
use crate::ordered::Place;
use crate::{Extension, Malformed, NodeId};

/// A node, and where it is reached. Postcard, fields in this order.
///
/// ```text
/// | node | ring: count, each address |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// The node.
    pub node: NodeId,
    /// Its address on each link, at most [`MAX_RING_LINKS`]. None: as the configurations say.
    pub ring: Vec<SocketAddr>,
}

/// One change of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Motion {
    /// This node comes.
    Admit(Seat),
    /// This one goes, and its number is never used again.
    Retire(NodeId),
}

impl Motion {
    /// The node that comes or goes.
    pub fn node(&self) -> NodeId {
        match self {
            Motion::Admit(seat) => seat.node,
            Motion::Retire(node) => *node,
        }
    }
}

/// A change that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// The change.
    pub motion: Motion,
    /// The nodes on whose disks it is, in order of id.
    pub kept: Vec<NodeId>,
}

/// The cluster's nodes. Postcard, fields in this order.
///
/// ```text
/// | stamp: epoch, ring, sequence | seats: count, each | retired: count, each | moving: 0, or 1 and the change |
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The place of the last change. Of two rosters the one with the later place counts. The default:
    /// nothing was changed since the configurations were written.
    pub stamp: Place,
    /// The nodes that count, in order of id.
    pub seats: Vec<Seat>,
    /// Those that have gone, as they went: at most [`MAX_RETIRED`]. The last [`MAX_TOLD`] have their
    /// addresses: one that comes back is told.
    pub retired: Vec<Seat>,
    /// The change that is under way.
    pub moving: Option<Moving>,
}

impl Roster {
    /// The nodes that count.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.seats.iter().map(|seat| seat.node)
    }

    /// The nodes that may be heard: those that count, and the one that comes.
    pub fn heard(&self) -> Vec<NodeId> {
        let comes = self.moving.iter().filter_map(|moving| match &moving.motion {
            Motion::Admit(seat) => Some(seat.node),
            Motion::Retire(_) => None,
        });
        self.nodes().chain(comes).collect()
    }

    /// All that are in it: those that count, that come, and that have gone.
    pub fn all(&self) -> impl Iterator<Item = &Seat> {
        let comes = self.moving.iter().filter_map(|moving| match &moving.motion {
            Motion::Admit(seat) => Some(seat),
            Motion::Retire(_) => None,
        });
        self.seats.iter().chain(comes).chain(&self.retired)
    }

    /// Whether a node has gone.
    pub fn is_retired(&self, node: NodeId) -> bool {
        self.retired.iter().any(|seat| seat.node == node)
    }

    /// Whether a node counts.
    pub fn has(&self, node: NodeId) -> bool {
        self.seats.binary_search_by_key(&node, |seat| seat.node).is_ok()
    }

    /// The nodes that will count, if the change that is under way comes to its end.
    pub fn next(&self) -> Option<Vec<NodeId>> {
        let motion = &self.moving.as_ref()?.motion;
        let node = motion.node();
        let mut nodes: Vec<NodeId> = self.nodes().filter(|other| *other != node).collect();
        if let Motion::Admit(_) = motion {
            nodes.push(node);
            nodes.sort_unstable();
        }
        Some(nodes)
    }

    /// The bytes, for the ring and for the disk.
    pub fn encode(&self) -> Bytes {
        append(Vec::new(), self).into()
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Roster, Malformed> {
        read::<Roster>(bytes)?.checked()
    }

    pub(crate) fn checked(self) -> Result<Roster, Malformed> {
        at_most(self.seats.len(), MAX_MEMBERS, "seats")?;
        at_most(self.retired.len(), MAX_RETIRED, "retired")?;
        if !self.seats.windows(2).all(|pair| pair[0].node < pair[1].node) {
            return Err(Malformed::Field("order of seats"));
        }
        self.seats.iter().chain(&self.retired).try_for_each(Seat::check)?;
        if let Some(Moving { motion, kept }) = &self.moving {
            at_most(kept.len(), MAX_MEMBERS, "kept")?;
            motion.check()?;
        }
        Ok(self)
    }
}

impl Seat {
    fn check(&self) -> Result<(), Malformed> {
        at_most(self.ring.len(), MAX_RING_LINKS, "links")
    }
}

impl Motion {
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        match self {
            Motion::Admit(seat) => seat.check(),
            Motion::Retire(_) => Ok(()),
        }
    }
}

/// A step of a change of the nodes. Postcard: the variant's number, then its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RosterStep {
    /// A node is to come or to go. A node that was asked for it orders this.
    Propose {
        /// The change.
        motion: Motion,
        /// The nodes of the sender's configuration, in order of id: the first change begins with
        /// them.
        base: Vec<Seat>,
    },
    /// The roster of this stamp is on the sender's disk.
    Kept(Place),
    /// The change of this stamp is given up.
    Withdraw(Place),
}

impl RosterStep {
    pub(crate) fn checked(self) -> Result<RosterStep, Malformed> {
        if let RosterStep::Propose { motion, base } = &self {
            motion.check()?;
            at_most(base.len(), MAX_MEMBERS, "base")?;
            if !base.windows(2).all(|pair| pair[0].node < pair[1].node) {
                return Err(Malformed::Field("order of the base"));
            }
            base.iter().try_for_each(Seat::check)?;
        }
        Ok(self)
    }
}

/// A part of a roster, from a node that has a later one than the receiver. Its form is frozen.
/// Postcard, fields in this order.
///
/// ```text
/// | stamp: epoch, ring, sequence | part | parts | bytes: count, each |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RosterPart {
    /// The roster's.
    pub stamp: Place,
    /// Which part, from 0.
    pub part: u8,
    /// How many there are, at most [`MAX_ROSTER_PARTS`].
    pub parts: u8,
    /// Bytes of [`Roster::encode`], at most [`MAX_ROSTER_PART`].
    pub bytes: Vec<u8>,
}

impl RosterPart {
    /// All parts of a roster.
    pub fn of(stamp: Place, roster: &[u8]) -> impl Iterator<Item = RosterPart> + '_ {
        let pieces = roster.chunks(MAX_ROSTER_PART);
        let parts = pieces.len() as u8;
        pieces.zip(0..).map(move |(bytes, part)| RosterPart {
            stamp,
            part,
            parts,
            bytes: bytes.to_vec(),
        })
    }

    pub(crate) fn checked(self) -> Result<RosterPart, Malformed> {
        at_most(self.bytes.len(), MAX_ROSTER_PART, "part")?;
        if self.part >= self.parts || self.parts > MAX_ROSTER_PARTS {
            return Err(Malformed::Field("parts"));
        }
        Ok(self)
    }
}

impl Extension {
    /// The extension of a node whose roster has this stamp.
    pub fn of(stamp: Place) -> Extension {
        if stamp == Place::default() {
            return Extension::default();
        }
        Extension(append(Vec::new(), &stamp))
    }

    /// The stamp of its sender's roster. What a newer program adds behind it is skipped.
    pub fn stamp(&self) -> Place {
        postcard::take_from_bytes(&self.0).map_or(Place::default(), |(stamp, _)| stamp)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::RingId;

    fn stamp(epoch: u64) -> Place {
        let ring = RingId { sequence: u64::MAX, representative: NodeId(u32::MAX) };
        Place { epoch, ring, sequence: u64::MAX }
    }

    #[test]
    fn the_longest_roster_is_sent_in_parts_and_the_stamp_fits_an_extension() {
        let address = "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535".parse().unwrap();
        let seat = |node| Seat { node: NodeId(node), ring: vec![address; MAX_RING_LINKS] };
        let gone = |node: u32| Seat {
            node: NodeId(u32::MAX - 10_000 + node),
            ring: vec![address; if node < MAX_TOLD as u32 { MAX_RING_LINKS } else { 0 }],
        };
        let roster = Roster {
            stamp: stamp(u64::MAX),
            seats: (0..64).map(|node| seat(u32::MAX - 64 + node)).collect(),
            retired: (0..MAX_RETIRED as u32).map(gone).collect(),
            moving: Some(Moving {
                motion: Motion::Admit(seat(u32::MAX)),
                kept: (0..64).map(|node| NodeId(u32::MAX - 64 + node)).collect(),
            }),
        };
        let bytes = roster.encode();
        let parts: Vec<RosterPart> = RosterPart::of(roster.stamp, &bytes).collect();
        assert!(parts.len() <= MAX_ROSTER_PARTS.into(), "{}", parts.len());
        let whole: Vec<u8> =
            parts.into_iter().flat_map(|part| part.checked().unwrap().bytes).collect();
        assert_eq!(Roster::decode(&whole), Ok(roster));
        let extension = Extension::of(stamp(u64::MAX));
        assert!(extension.check().is_ok());
        assert_eq!(extension.stamp(), stamp(u64::MAX));
        assert_eq!(Extension::of(Place::default()), Extension::default());
        assert_eq!(Extension(vec![255; 3]).stamp(), Place::default());
    }
}
