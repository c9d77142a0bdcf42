//! The knowledge of a node's disk about the node's earlier lives.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{GroupEntry, Place};
use crate::codec::at_most;
use crate::limits::MAX_GROUPS;
use crate::{GroupId, Incarnation, Malformed};

/// The disk's part of a member's announcement.
///
/// ```text
/// | since | restarted | volatile | groups: count, each (entry, at: place) | waiting: count, each group |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The node's earliest life that the disk covers: everything that this life or a later one
    /// reported as stored is still there.
    pub since: Incarnation,
    /// The sender has joined no component in this life. The components, the position and the
    /// replicas of its announcement come from its disk.
    pub restarted: bool,
    /// The earlier lives knew groups in memory. The sender has lost their state.
    pub volatile: bool,
    /// If `restarted`: every group on disk, with the place at which its entry last changed. A group
    /// without replicas, awake or asleep, has ended. An entry's last request may be out of date.
    pub groups: Vec<(GroupEntry, Place)>,
    /// Groups whose state is on the sender's disk, but whose replica it does not host yet.
    pub waiting: Vec<GroupId>,
}

impl Recall {
    /// Refuses lists that are longer than their limits.
    pub(super) fn checked(&self) -> Result<(), Malformed> {
        at_most(self.groups.len(), MAX_GROUPS, "recalled groups")?;
        at_most(self.waiting.len(), MAX_GROUPS, "waiting groups")?;
        self.groups.iter().try_for_each(|(group, _)| group.checked())
    }
}
