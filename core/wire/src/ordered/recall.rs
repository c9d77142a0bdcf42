//! What a node that has storage brings along from its earlier lives.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{GroupEntry, Place};
use crate::codec::at_most;
use crate::limits::MAX_GROUPS;
use crate::{GroupId, Incarnation, Malformed};

/// What the disk of a member knows, beside what the rest of its announcement says.
///
/// ```text
/// | since | restarted | volatile | groups: count, each (entry, at: place) | waiting: count, each group |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recall {
    /// The sender has not forgotten anything that it said was stored since this life of its node.
    pub since: Incarnation,
    /// It was in no component in this life: components, position and replicas that it announces are those of
    /// its disk.
    pub restarted: bool,
    /// There were groups in memory, of which it has forgotten what it held.
    pub volatile: bool,
    /// If it is restarted: every group on disk, each with the place at which its entry was last changed. One without any
    /// replica, asleep or not, is gone. What an entry says of the last request is old.
    pub groups: Vec<(GroupEntry, Place)>,
    /// Groups of which it has the state on its disk, while nobody hosts the replica yet.
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
