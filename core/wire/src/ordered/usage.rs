//! The load of hosts, and the order of a group's backups that the manager derives from it
//! (`docs/protocol/manager.md`).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Classes;
use crate::codec::at_most;
use crate::limits::MAX_USAGE_REPLICAS;
use crate::system::most_replicas_ever;
use crate::{GroupId, Malformed, NodeId, Share, ViewNumber};

/// A report of the processor use of the sender's host, and of its clients' calls.
///
/// ```text
/// | used | capacity | above: 0 or 1 | replicas: count, each group, share |
///                                              classes: four words | refused |
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The used part of the capacity, by all processes.
    pub used: Share,
    /// The processors of the host, or the node's quota of them.
    pub capacity: Share,
    /// The use is above the level whose crossing is reported at once.
    pub above: bool,
    /// The use of the sender's replicas, each group once, in order of group. At most
    /// [`MAX_USAGE_REPLICAS`]: those that use most.
    pub replicas: Vec<(GroupId, Share)>,
    /// The priorities of the clients' calls that the sender received recently.
    pub classes: Classes,
    /// Calls that the sender has refused for their priority since its start.
    pub refused: u64,
}

impl Usage {
    /// The use of this group's replica.
    pub fn of(&self, group: GroupId) -> Share {
        let place = self.replicas.binary_search_by_key(&group, |(group, _)| *group);
        place.map_or(Share::ZERO, |place| self.replicas[place].1)
    }

    /// Refuses lists that are too long or out of order, and shares whose sum could overflow.
    pub(super) fn checked(self) -> Result<Usage, Malformed> {
        at_most(self.replicas.len(), MAX_USAGE_REPLICAS, "usage")?;
        let shares = self.replicas.iter().map(|(_, share)| *share);
        // No host has so many processors.
        let possible = |share: Share| share.0 < u64::from(u32::MAX) * Share::ONE.0;
        if !shares.chain([self.used, self.capacity]).all(possible)
            || !self.replicas.is_sorted_by(|a, b| a.0 < b.0)
        {
            return Err(Malformed::Field("usage"));
        }
        Ok(self)
    }
}

/// The order in which clients try the group's synced backups. It is void if the group's view is
/// another one.
///
/// ```text
/// | group | view | order: count, each node |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rank {
    /// Which group.
    pub group: GroupId,
    /// The view that is to be changed.
    pub view: ViewNumber,
    /// Nodes of backups, each once. Unnamed backups follow in their present order.
    pub order: Vec<NodeId>,
}

impl Rank {
    pub(super) fn checked(self) -> Result<Rank, Malformed> {
        at_most(self.order.len(), most_replicas_ever(self.group), "order")?;
        let twice = |(place, node): (usize, &NodeId)| self.order[..place].contains(node);
        if self.order.iter().enumerate().any(twice) {
            return Err(Malformed::Field("order"));
        }
        Ok(self)
    }
}
