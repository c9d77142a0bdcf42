//! Refusal of calls by an overloaded host (`docs/protocol/manager.md`, "Shedding").

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_SHEDDING_ROOM, MAX_SHEDDING_TERM};
use crate::{Duration, Malformed, NodeId};

/// The priorities of the calls that a host received recently. Each priority is a bit, from the
/// lowest bit of the first word on.
///
/// ```text
/// | four words |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes([u64; 4]);

impl Classes {
    /// The priorities in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |class| self.0[usize::from(class / 64)] >> (class % 64) & 1 == 1)
    }
}

impl FromIterator<u8> for Classes {
    fn from_iter<T: IntoIterator<Item = u8>>(classes: T) -> Classes {
        let mut words = [0; 4];
        for class in classes {
            words[usize::from(class / 64)] |= 1 << (class % 64);
        }
        Classes(words)
    }
}

/// Makes a node refuse clients' calls of a priority below `level`. It ends with the next such
/// message to the node, after `term_ms`, or with the node's life.
///
/// ```text
/// | node | level | term in ms | room: count, each node |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shedding {
    /// The node whose host is overloaded.
    pub node: NodeId,
    /// The lowest priority that the node accepts; 0: it accepts all calls.
    pub level: u8,
    /// The longest time that this is in force, in milliseconds.
    pub term_ms: u32,
    /// Nodes whose hosts have room, the one with the most first. The node directs refused clients
    /// to those that can answer them.
    pub room: Vec<NodeId>,
}

impl Shedding {
    /// The longest time that this is in force.
    pub fn term(&self) -> Duration {
        Duration::from_millis(self.term_ms.into())
    }

    pub(super) fn checked(self) -> Result<Shedding, Malformed> {
        at_most(self.room.len(), MAX_SHEDDING_ROOM, "room")?;
        let twice = |(place, node): (usize, &NodeId)| self.room[..place].contains(node);
        if self.room.iter().enumerate().any(twice) {
            return Err(Malformed::Field("room"));
        }
        if self.term() > MAX_SHEDDING_TERM {
            return Err(Malformed::Field("term"));
        }
        Ok(self)
    }
}
