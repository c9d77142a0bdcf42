//! The comparison of a group's replicas (`docs/protocol/group.md`, "Replicas are compared").

use serde::{Deserialize, Serialize};

use crate::{GroupId, RingId};

/// The replicas with the group's state tell digests of it, as it is at this place of the order. This
/// is part of no history. From level [`WHOLE`](crate::versions::WHOLE) on. | group |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compare {
    /// Which group.
    pub group: GroupId,
}

/// A digest of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDigest {
    /// A hash of the kind of digest and of the program that made it. Only digests of one form can be
    /// compared: another version of the program may write the same state otherwise.
    pub form: u64,
    /// The digest.
    pub value: u64,
}

/// The digest of the sender's replica at the place of a [`Compare`].
///
/// ```text
/// | group | ring | sequence | executed | form | value |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// Which group.
    pub group: GroupId,
    /// The ring of the comparison.
    pub ring: RingId,
    /// Its place there.
    pub sequence: u64,
    /// The number of calls in the replica's history at that place.
    pub executed: u64,
    /// The digest.
    pub state: StateDigest,
}
