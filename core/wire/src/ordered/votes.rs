//! The votes of a voting group's replicas on outcomes (`docs/protocol/group.md`, "Voting") and on
//! nested calls (`docs/protocol/nested.md`, "Voting groups").

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::MAX_BALLOT;
use crate::{GroupId, Malformed, Member};

/// A vote on a call's outcome, or on a nested call: the first half of its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// The first bytes, which suffice to distinguish two digests in a log.
    pub fn brief(self) -> u64 {
        u64::from_be_bytes(*self.0.first_chunk().expect("it has 16 bytes"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.brief())
    }
}

/// The votes of the sender's replica on executed calls and on their nested calls, at these
/// positions of the group's history.
///
/// ```text
/// | group | since | opening: 0, or 1 and settled | first | proven | begun | digests: count, each 16 bytes |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ballot {
    /// Which group.
    pub group: GroupId,
    /// The place in the ring's order where a [change of style](super::Restyle) made the group vote.
    /// 0: it votes since the component began. A ballot with an earlier place is void.
    pub since: u64,
    /// Only in the sender's first ballot, in a component or since it has the state: the position up
    /// to which the sender knows everything to be settled.
    pub opening: Option<u64>,
    /// The position of the first digest, from 1. A ballot without `opening` continues where the
    /// previous one ended.
    pub first: u64,
    /// How many of the group's calls the sender has executed. The others may execute them too.
    pub proven: u64,
    /// The handler of the next call has made a nested call. It can go on only after the other
    /// replicas have made the same call, so they may execute the next call too.
    pub begun: bool,
    /// The votes, at most [`MAX_BALLOT`].
    pub digests: Vec<Digest>,
}

impl Ballot {
    /// Refuses lists that are longer than their limits, and invalid positions.
    pub(super) fn checked(self) -> Result<Ballot, Malformed> {
        at_most(self.digests.len(), MAX_BALLOT, "ballot")?;
        // No history reaches the limit, and counting on from it cannot overflow.
        let is_position = |position: u64| position < u64::MAX / 2;
        super::check_number(self.proven)?;
        if self.first == 0 || !is_position(self.first) || !self.opening.is_none_or(is_position) {
            return Err(Malformed::Field("ballot position"));
        }
        Ok(self)
    }
}

/// This replica's vote has been missing for too long. The votes that are ordered before this
/// message decide whether it is removed.
///
/// ```text
/// | group | member | position |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Which group.
    pub group: GroupId,
    /// The replica's member.
    pub member: Member,
    /// The position on which a majority has voted, and this replica has not.
    pub position: u64,
}
