//! Replicas whose services are hung (`docs/protocol/hung.md`): each node times its own, and has those that are hung taken out of
//! their groups, by their own place in the order, so that never the last one that has the state goes.

use wire::ordered::{Demote, Died, Ordered};
use wire::{Member, Time};

use super::Stack;
use crate::api::{Begun, Event, Output};
use crate::bug::{Bug, Planted};
use crate::directory::{Change, Group};
use crate::ordering::Ordering;

impl<O: Ordering> Stack<O> {
    /// The time has come to look whose deadlines are missed.
    pub(super) fn time_services(&mut self, now: Time) {
        if !self.hangs.is_due(now) {
            return;
        }
        let (rule, planted) = (self.hangs.rule(), self.planted);
        let mut next: Option<Time> = None;
        for (id, hosted) in &mut self.hosted {
            let limit = hosted.stopwatch.expire(now, rule, planted);
            next = next.into_iter().chain(limit).min();
            if hosted.stopwatch.is_hung(rule) {
                self.hangs.note(*id);
            }
        }
        self.hangs.looked(next);
    }

    /// Tells of services that are hung, and asks for their replicas' end, once in each view. True if there was anything to do.
    pub(super) fn pump_hung(&mut self, now: Time) -> bool {
        let mut any = false;
        for id in self.hangs.take() {
            let Some(hosted) = self.hosted.get_mut(&id) else { continue };
            if !hosted.stopwatch.is_hung(self.hangs.rule()) || hosted.departure.abandoned {
                hosted.hung = None; // it executes again, or is gone
                continue;
            }
            self.hangs.note(id);
            let group = self.directory.get(id);
            let spare = group.filter(|group| may_go(group, self.me, self.planted));
            if hosted.hung.is_none() {
                hosted.hung = Some(None);
                let (misses, ran) = (hosted.stopwatch.misses(), hosted.stopwatch.running(now));
                let (name, alone) = (hosted.name.clone(), spare.is_none());
                self.outputs.push(Output::Event(Event::Hung {
                    group: id,
                    name,
                    member: self.me,
                    misses,
                    ran,
                    alone,
                }));
                any = true;
            }
            let Some(view) = spare.map(|group| group.view) else { continue };
            let here = Some((self.membership.ring(), view));
            if !self.membership.is_active() || hosted.hung == Some(here) {
                continue;
            }
            hosted.hung = Some(here);
            let Died { executed, given, ahead } = self.reach(id, Begun::Any);
            // What waits behind the call that hangs was not begun.
            let died = Died { executed, given: given.min(executed + 1), ahead };
            self.order(now, Ordered::Demote(Demote { group: id, view, died }));
            any = true;
        }
        any
    }

    /// A replica whose service is hung goes, at this place in the order.
    pub(super) fn act_on_demote(&mut self, now: Time, sender: Member, demote: Demote) {
        let Demote { group: id, view, died } = demote;
        let Some(group) = self.directory.get(id).filter(|group| group.view == view) else { return };
        if !may_go(group, sender, self.planted) {
            return;
        }
        let (name, was_primary) = (group.name.clone(), group.primary() == Some(sender));
        self.event(Event::Demoted { group: id, name, member: sender, was_primary, asked: view });
        self.service_died(now, id, sender, died);
        if sender == self.me
            && let Some(hosted) = self.hosted.get_mut(&id)
        {
            (hosted.departure.abandoned, hosted.departure.begun, hosted.admission.asked) =
                (true, true, None);
            self.with_replica(now, id, |replica, effects| replica.idle(effects));
            self.outputs.push(Output::Replace(id));
        }
        let before = self.directory.get(id).cloned();
        let change = self.directory.leave(sender, id);
        if let Some(before) = before.filter(|_| change == Change::Removed) {
            self.note_gone(id, before);
        }
        self.changed(now, id, change);
        if sender == self.me {
            self.send_on(id);
        }
        if change != Change::Removed {
            self.count_votes(now, id);
        }
    }
}

/// The group can do without this replica: another has the state, or there is none.
fn may_go(group: &Group, member: Member, planted: Planted) -> bool {
    let mut others = group.synced().filter(|synced| *synced != member);
    let spared = others.next().is_some() || !group.options.style.has_state();
    group.replica(member).is_some() && (spared || planted.is(Bug::DemoteLast))
}
