//! Clients that get newer views of a group before they call again (`docs/protocol/client.md`,
//! "News").

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::limits::MAX_WATCHES;
use wire::{Caller, GroupId};

/// Callers, and the groups that they watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches {
    by_group: BTreeSet<(GroupId, Caller)>,
    by_caller: BTreeSet<(Caller, GroupId)>,
    /// Groups with a newer view since the last news to watchers.
    changed: BTreeSet<GroupId>,
}

impl Watches {
    /// Adds a watch. False if there are too many.
    pub(crate) fn add(&mut self, group: GroupId, caller: Caller) -> bool {
        if self.by_group.len() >= MAX_WATCHES && !self.by_group.contains(&(group, caller)) {
            return false;
        }
        self.by_group.insert((group, caller));
        self.by_caller.insert((caller, group));
        true
    }

    /// Forgets a lost connection.
    pub(crate) fn forget(&mut self, caller: Caller) {
        let range = (caller, GroupId(0))..=(caller, GroupId(u64::MAX));
        let groups: Vec<GroupId> = self.by_caller.range(range).map(|(_, group)| *group).collect();
        for group in groups {
            self.by_caller.remove(&(caller, group));
            self.by_group.remove(&(group, caller));
        }
    }

    /// Notes that a group has a newer view.
    pub(crate) fn changed(&mut self, group: GroupId) {
        self.changed.insert(group);
    }

    /// Returns the callers that watch this group.
    pub(crate) fn of(&self, group: GroupId) -> Vec<Caller> {
        let range = (group, Caller(0))..=(group, Caller(u64::MAX));
        self.by_group.range(range).map(|(_, caller)| *caller).collect()
    }

    /// Takes the next group with a newer view since the last news to watchers.
    pub(crate) fn next_changed(&mut self) -> Option<GroupId> {
        self.changed.pop_first()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.by_group.len() <= MAX_WATCHES, "watches are bounded");
        assert_eq!(self.by_group.len(), self.by_caller.len(), "each is found both ways");
    }
}
