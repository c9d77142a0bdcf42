//! Clients that are told of newer views of a group before they call again (`docs/protocol/client.md`, "News").

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::client::{Bound, Frame, Watch};
use wire::limits::MAX_WATCHES;
use wire::{Caller, GroupId, ViewNumber};

use super::Stack;
use crate::api::Output;
use crate::bug::Bug;
use crate::ordering::Ordering;

/// Who is to be told of which group's views.
#[derive(Default)]
pub(super) struct Watches {
    by_group: BTreeSet<(GroupId, Caller)>,
    by_caller: BTreeSet<(Caller, GroupId)>,
    /// Groups that have a newer view since watchers were told last.
    changed: BTreeSet<GroupId>,
}

impl Watches {
    /// False if there are too many.
    fn add(&mut self, group: GroupId, caller: Caller) -> bool {
        if self.by_group.len() >= MAX_WATCHES && !self.by_group.contains(&(group, caller)) {
            return false;
        }
        self.by_group.insert((group, caller));
        self.by_caller.insert((caller, group));
        true
    }

    /// The connection is gone.
    pub(super) fn forget(&mut self, caller: Caller) {
        let range = (caller, GroupId(0))..=(caller, GroupId(u64::MAX));
        let groups: Vec<GroupId> = self.by_caller.range(range).map(|(_, group)| *group).collect();
        for group in groups {
            self.by_caller.remove(&(caller, group));
            self.by_group.remove(&(group, caller));
        }
    }

    /// A group has a newer view.
    pub(super) fn changed(&mut self, group: GroupId) {
        self.changed.insert(group);
    }

    fn of(&self, group: GroupId) -> Vec<Caller> {
        let range = (group, Caller(0))..=(group, Caller(u64::MAX));
        self.by_group.range(range).map(|(_, caller)| *caller).collect()
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.by_group.len() <= MAX_WATCHES, "watches are bounded");
        assert_eq!(self.by_group.len(), self.by_caller.len(), "each is found both ways");
    }
}

impl<O: Ordering> Stack<O> {
    /// A client wants to hear of a group's newer views, and of one that it has missed now. At the limit it is not told: it hears of them with its
    /// replies, as it does without asking.
    pub(super) fn watch(&mut self, caller: Caller, watch: Watch) {
        if self.watches.add(watch.group, caller) {
            self.tell_watcher(caller, watch.group, watch.view);
        }
    }

    /// Tells those who watch groups that have newer views. After everything else that a view asks for: who takes over has no time to lose.
    pub(super) fn tell_watchers(&mut self) {
        for group in core::mem::take(&mut self.watches.changed) {
            for caller in self.watches.of(group) {
                self.tell_watcher(caller, group, ViewNumber(0));
            }
        }
    }

    fn tell_watcher(&mut self, caller: Caller, group: GroupId, view: ViewNumber) {
        if self.planted.is(Bug::TellNobody) {
            return;
        }
        let Some(known) = self.directory.get(group).filter(|known| known.view > view) else {
            return;
        };
        let frame = Frame::News(Bound { group, targets: Some(self.targets(known)) });
        self.outputs.push_back(Output::Frame { caller, frame });
    }
}
