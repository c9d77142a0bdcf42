//! Replicas of a group compare their states (`docs/protocol/group.md`, "Replicas are compared").

use alloc::vec::Vec;

use wire::ordered::{About, Compare, Compared, Ordered};
use wire::versions::WHOLE;
use wire::{GroupId, Member, Time};

use crate::bug::Bug;
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::parts::Finding;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::StyleRules;

/// The group's replicas can be compared.
fn compares(group: &Group) -> bool {
    group.options.style.compares() && group.synced().nth(1).is_some()
}

impl Replicas {
    /// The groups whose primary is `me` and whose replicas can be compared.
    fn led(&self, me: Member, group: Option<&Group>) -> bool {
        group.is_some_and(|group| compares(group) && group.primary() == Some(me))
    }
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// Begins the comparisons that are due, and says what others show. True if there was anything
    /// to order.
    pub(crate) fn pump_comparisons(&mut self, now: Time) -> bool {
        let membership = &self.base.membership;
        let may = membership.is_active() && membership.levels().level() >= WHOLE;
        if !may || !self.replicas.comparisons.is_due(now) {
            return false;
        }
        self.replicas.comparisons.looked(now);
        for group in self.replicas.comparisons.open() {
            self.show_comparison(now, group);
        }
        let (mut due, mut moot) = (Vec::new(), Vec::new());
        for (id, hosted) in &self.replicas.hosted {
            let group = self.base.directory.get(*id);
            let executed = hosted.replica.executed();
            let led = self.replicas.led(self.base.me, group);
            match group.zip(executed).filter(|_| led) {
                Some((group, executed)) => {
                    let shown = (executed, group.view);
                    if self.replicas.comparisons.is_to_begin(now, *id, shown) {
                        due.push(*id);
                    }
                }
                None => self.replicas.comparisons.is_for_others(*id),
            }
            let says = self.replicas.notes.says(*id, About::Apart);
            if says && !group.is_some_and(compares) {
                moot.push(*id);
            }
        }
        // Nobody is left from whom it could differ.
        moot.into_iter().for_each(|group| self.note_state(group, About::Apart, None));
        if self.base.planted.is(Bug::CompareNever) {
            due.clear();
        }
        let any = !due.is_empty();
        due.into_iter().for_each(|group| self.base.order(now, Ordered::Compare(Compare { group })));
        any
    }

    /// At this place of the order the states are compared.
    pub(crate) fn act_on_compare(&mut self, now: Time, sequence: u64, id: GroupId) {
        let me = self.base.me;
        let Some(group) = self.base.directory.get(id).filter(|group| compares(group)) else {
            return;
        };
        let synced: Vec<Member> = group.synced().collect();
        let view = group.view;
        let hosted = self.replicas.hosted.get(&id).filter(|_| synced.contains(&me));
        let Some(executed) = hosted.and_then(|hosted| hosted.replica.given()) else { return };
        let ring = self.base.membership.ring();
        let shown = (executed, view);
        self.replicas.comparisons.begin(now, (id, shown), (ring, sequence), synced);
        self.with_replica(now, id, |replica, effects| replica.compare((ring, sequence), effects));
    }

    /// A replica tells the digest of its state.
    pub(crate) fn act_on_compared(&mut self, sender: Member, compared: Compared) {
        self.replicas.comparisons.told(sender, compared);
    }

    fn show_comparison(&mut self, now: Time, id: GroupId) {
        let group = self.base.directory.get(id);
        let synced: Vec<Member> = group.iter().flat_map(|group| group.synced()).collect();
        let me = self.base.me;
        match self.replicas.comparisons.show(now, id, me, &synced) {
            // The first note stays: since when it is so counts.
            Some(Finding::Apart(_)) if self.replicas.notes.says(id, About::Apart) => {}
            Some(Finding::Apart(_)) if self.base.planted.is(Bug::KeepApartQuiet) => {}
            Some(Finding::Apart(text)) => self.note_state(id, About::Apart, Some(text)),
            Some(Finding::Same) => self.note_state(id, About::Apart, None),
            Some(Finding::Nothing) | None => {}
        }
    }
}
