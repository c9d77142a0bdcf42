//! Which services are hung, and when one may be next (`docs/protocol/hung.md`).

use alloc::collections::BTreeSet;

use wire::{GroupId, Time};

use crate::api::HangRule;

/// The services of this node that hang.
#[derive(Clone, Debug)]
pub(crate) struct Hangs {
    /// The rule by which a service is hung.
    rule: HangRule,
    /// The time of the next deadline that a service may miss.
    due: Option<Time>,
    hung: BTreeSet<GroupId>,
}

impl Hangs {
    pub(crate) fn new(rule: HangRule) -> Hangs {
        Hangs { rule, due: None, hung: BTreeSet::new() }
    }

    pub(crate) fn rule(&self) -> HangRule {
        self.rule
    }

    /// Returns when services are to be checked.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// All services have been checked; `next` is the next deadline.
    pub(crate) fn looked(&mut self, next: Option<Time>) {
        self.due = next;
    }

    /// A service executes a command with this deadline.
    pub(crate) fn limit(&mut self, deadline: Time) {
        self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
    }

    /// Notes that the service of this group's replica is hung, or was.
    pub(crate) fn note(&mut self, group: GroupId) {
        self.hung.insert(group);
    }

    pub(crate) fn is_hung(&self, group: GroupId) -> bool {
        self.hung.contains(&group)
    }

    /// Whether no group was noted.
    pub(crate) fn is_clear(&self) -> bool {
        self.hung.is_empty()
    }

    /// Takes the noted groups. A service that is still hung is to be noted again.
    pub(crate) fn take(&mut self) -> BTreeSet<GroupId> {
        core::mem::take(&mut self.hung)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_counts_until_all_were_looked_at() {
        let mut hangs = Hangs::new(HangRule::default());
        assert!(!hangs.is_due(Time(9)));
        hangs.limit(Time(7));
        hangs.limit(Time(5));
        hangs.limit(Time(6));
        assert_eq!(hangs.next_timeout(), Some(Time(5)));
        assert!(hangs.is_due(Time(5)) && !hangs.is_due(Time(4)));
        hangs.looked(Some(Time(7)));
        assert!(!hangs.is_due(Time(6)));
    }

    #[test]
    fn a_service_that_recovered_is_not_noted_again() {
        let mut hangs = Hangs::new(HangRule::default());
        hangs.note(GroupId(1));
        hangs.note(GroupId(2));
        let noted = hangs.take();
        assert_eq!(noted.len(), 2);
        hangs.note(GroupId(2));
        assert!(hangs.is_hung(GroupId(2)) && !hangs.is_hung(GroupId(1)));
    }
}
