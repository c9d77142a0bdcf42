//! Places in the total order.

use serde::{Deserialize, Serialize};

use crate::{NodeId, RingId};

/// A place in the history of the components. A later one compares as larger.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Place {
    /// The component.
    pub epoch: u64,
    /// Its ring.
    pub ring: RingId,
    /// The sequence number there.
    pub sequence: u64,
}

impl Place {
    /// Later than every real place: stands for a last request whose place is unknown.
    pub const UNKNOWN: Place = Place {
        epoch: u64::MAX,
        ring: RingId { sequence: u64::MAX, representative: NodeId(u32::MAX) },
        sequence: u64::MAX,
    };
}
