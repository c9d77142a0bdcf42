//! Checkpoints of cold passive groups.

mod handler;

use alloc::collections::BTreeSet;

use wire::{GroupId, Time};

/// Cold passive groups that have a replica here.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColdGroups {
    groups: BTreeSet<GroupId>,
    /// The time of the next checkpoint.
    due: Option<Time>,
}

impl ColdGroups {
    pub(crate) fn insert(&mut self, group: GroupId) {
        self.groups.insert(group);
    }

    pub(crate) fn remove(&mut self, group: GroupId) {
        self.groups.remove(&group);
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}
