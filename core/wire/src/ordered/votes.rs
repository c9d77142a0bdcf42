//! What the replicas of a voting group say of their outcomes (`docs/protocol/group.md`, "Voting"), and of what their handlers ask of
//! other groups (`docs/protocol/nested.md`, "Voting groups").

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::MAX_BALLOT;
use crate::{GroupId, Malformed, Member};

/// What stands for the outcome of a call, or for what a handler asks: the first half of its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Enough of it to tell two apart where they are shown.
    pub fn brief(self) -> u64 {
        u64::from_be_bytes(*self.0.first_chunk().expect("it has 16 bytes"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.brief())
    }
}

/// The outcomes of calls that the sender's replica has executed, and what their handlers have asked, at these positions of the group's
/// history.
///
/// ```text
/// | group | since | opening: 0, or 1 and settled | first | proven | begun | digests: count, each 16 bytes |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ballot {
    /// Which group.
    pub group: GroupId,
    /// The place in the ring's order where the group began to vote by a [change of style](super::Restyle); 0: it votes since the component
    /// began. A ballot of an earlier vote counts no more.
    pub since: u64,
    /// The sender's first ballot in a component, or since it has the state: up to this position all is settled, as far as it
    /// knows.
    pub opening: Option<u64>,
    /// The position of the first digest, from 1. Each ballot that is no opening goes on where the one before ended.
    pub first: u64,
    /// The sender has executed so many of the group's calls: the others may execute them too.
    pub proven: u64,
    /// The handler of the next call has asked something: the others are to ask, too, before it can go on.
    pub begun: bool,
    /// At most [`MAX_BALLOT`].
    pub digests: Vec<Digest>,
}

impl Ballot {
    /// Refuses lists that are longer than their limits, and positions that are none.
    pub(super) fn checked(self) -> Result<Ballot, Malformed> {
        at_most(self.digests.len(), MAX_BALLOT, "ballot")?;
        // Far above what any history reaches, far below what counting on from it could overflow.
        let is_position = |position: u64| position < u64::MAX / 2;
        super::check_number(self.proven)?;
        if self.first == 0 || !is_position(self.first) || !self.opening.is_none_or(is_position) {
            return Err(Malformed::Field("ballot position"));
        }
        Ok(self)
    }
}

/// This replica's vote is missing for too long. What is true at this place in the order decides. | group | member | position |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Which group.
    pub group: GroupId,
    /// Whose replica.
    pub member: Member,
    /// The position that it has not told of, and a majority has.
    pub position: u64,
}
