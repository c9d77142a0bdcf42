//! What a host refuses because it has too much to do (`docs/protocol/manager.md`, "Shedding").

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::{MAX_SHEDDING_ROOM, MAX_SHEDDING_TERM};
use crate::{Duration, Malformed, NodeId};

/// The criticalities of calls that came to a host of late: a bit each, from the lowest of the first word. | four words |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes([u64; 4]);

impl Classes {
    /// Those in order, the least critical first.
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

/// A node refuses calls of clients that are less critical than `level` from here on, until it is told otherwise, and for `term_ms` at most.
/// It ends with the life that it was said to. | node | level | term in ms | room: count, each node |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shedding {
    /// Whose host has too much to do.
    pub node: NodeId,
    /// Calls of this priority and more are taken; 0: all are.
    pub level: u8,
    /// For so many milliseconds, if nothing else is said before.
    pub term_ms: u32,
    /// Nodes whose hosts have room, the one with the most first: clients are sent there that may be answered there.
    pub room: Vec<NodeId>,
}

impl Shedding {
    /// For so long.
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
