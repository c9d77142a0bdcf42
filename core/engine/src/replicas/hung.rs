//! Replicas whose services are hung (`docs/protocol/hung.md`): each node times its own, and has
//! those that are hung taken out of their groups, by their own place in the order, so that never
//! the last one that has the state goes.

use wire::ordered::{Demote, Died, Ordered};
use wire::{Member, Time};

use crate::api::{Begun, Event, Output};
use crate::bug::{Bug, Planted};
use crate::directory::Group;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;

/// The group can do without this replica: another has the state, or there is none.
pub(crate) fn may_go(group: &Group, member: Member, planted: Planted) -> bool {
    let mut others = group.synced().filter(|synced| *synced != member);
    let spared = others.next().is_some() || !group.options.style.has_state();
    group.replica(member).is_some() && (spared || planted.is(Bug::DemoteLast))
}

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// The time has come to look whose deadlines are missed.
    pub(crate) fn time_services(&mut self, now: Time) {
        if !self.replicas.hangs.is_due(now) {
            return;
        }
        let (rule, planted) = (self.replicas.hangs.rule(), self.base.planted);
        let mut next: Option<Time> = None;
        for (id, hosted) in &mut self.replicas.hosted {
            let limit = hosted.stopwatch.expire(now, rule, planted);
            next = next.into_iter().chain(limit).min();
            if hosted.stopwatch.is_hung(rule) {
                self.replicas.hangs.note(*id);
            }
        }
        self.replicas.hangs.looked(next);
    }

    /// Tells of services that are hung, and asks for their replicas' end, once in each view. True
    /// if there was anything to do.
    pub(crate) fn pump_hung(&mut self, now: Time) -> bool {
        if self.replicas.hangs.is_clear() {
            return false;
        }
        let mut any = false;
        for id in self.replicas.hangs.take() {
            let Some(hosted) = self.replicas.hosted.get_mut(&id) else { continue };
            if !hosted.stopwatch.is_hung(self.replicas.hangs.rule()) || hosted.departure.abandoned {
                hosted.hung = None; // it executes again, or is gone
                continue;
            }
            self.replicas.hangs.note(id);
            let group = self.base.directory.get(id);
            let spare = group.filter(|group| may_go(group, self.base.me, self.base.planted));
            if hosted.hung.is_none() {
                hosted.hung = Some(None);
                let (misses, ran) = (hosted.stopwatch.misses(), hosted.stopwatch.running(now));
                let (name, alone) = (hosted.name.clone(), spare.is_none());
                self.base.outputs.push(Output::Event(Event::Hung {
                    group: id,
                    name,
                    member: self.base.me,
                    misses,
                    ran,
                    alone,
                }));
                any = true;
            }
            let Some(view) = spare.map(|group| group.view) else { continue };
            let here = Some((self.base.membership.ring(), view));
            if !self.base.membership.is_active() || hosted.hung == Some(here) {
                continue;
            }
            hosted.hung = Some(here);
            let Died { executed, given, ahead } = self.replicas.reach(id, Begun::Any);
            // The calls behind the hung one were not begun.
            let died = Died { executed, given: given.min(executed + 1), ahead };
            self.base.order(now, Ordered::Demote(Demote { group: id, view, died }));
            any = true;
        }
        any
    }
}
