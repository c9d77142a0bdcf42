//! What hosts have to do, and the order of a group's backups that follows from it (`docs/protocol/manager.md`).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Classes;
use crate::codec::at_most;
use crate::limits::{MAX_REPLICAS, MAX_USAGE_REPLICAS};
use crate::{GroupId, Malformed, NodeId, Share, ViewNumber};

/// What the processors of the sender's host do now, and who calls there. | used | capacity | above: 0 or 1 | replicas: count, each group, share
/// | classes: four words | refused |
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What is used of the capacity, by whomever.
    pub used: Share,
    /// What this node has for itself: the host's processors, or its quota of them.
    pub capacity: Share,
    /// The use is above the level at which it is told at once.
    pub above: bool,
    /// What the sender's replicas use, each group once and in order; at most [`MAX_USAGE_REPLICAS`], those that use most.
    pub replicas: Vec<(GroupId, Share)>,
    /// How critical the calls are that clients sent there of late.
    pub classes: Classes,
    /// How many of them it has refused for that since its start.
    pub refused: u64,
}

impl Usage {
    /// What the replica of this group uses.
    pub fn of(&self, group: GroupId) -> Share {
        let place = self.replicas.binary_search_by_key(&group, |(group, _)| *group);
        place.map_or(Share::ZERO, |place| self.replicas[place].1)
    }

    /// Refuses lists that are too long or out of order, and shares of which the sum could overflow.
    pub(super) fn checked(self) -> Result<Usage, Malformed> {
        at_most(self.replicas.len(), MAX_USAGE_REPLICAS, "usage")?;
        let shares = self.replicas.iter().map(|(_, share)| *share);
        // Far above what any host has.
        let possible = |share: Share| share.0 < u64::from(u32::MAX) * Share::ONE.0;
        if !shares.chain([self.used, self.capacity]).all(possible)
            || !self.replicas.is_sorted_by(|a, b| a.0 < b.0)
        {
            return Err(Malformed::Field("usage"));
        }
        Ok(self)
    }
}

/// The backups of this group that have the state are to be tried in this order. Of another view than the group's it is void.
/// | group | view | order: count, each node |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Which group.
    pub group: GroupId,
    /// The view that is to be changed.
    pub view: ViewNumber,
    /// Nodes of backups, none twice. Backups that are not named come after them as they are.
    pub order: Vec<NodeId>,
}

impl Rank {
    pub(super) fn checked(self) -> Result<Rank, Malformed> {
        at_most(self.order.len(), MAX_REPLICAS, "order")?;
        let twice = |(place, node): (usize, &NodeId)| self.order[..place].contains(node);
        if self.order.iter().enumerate().any(twice) {
            return Err(Malformed::Field("order"));
        }
        Ok(self)
    }
}
