//! Verdicts of voting groups, and replicas that leave because of one or because their service
//! hangs.

use alloc::vec::Vec;

use wire::ordered::{Absent, Ballot, Demote};
use wire::{GroupId, Member, Time};

use crate::api::{Deviation, Event, Output};
use crate::bug::Bug;
use crate::directory::Change;
use crate::groups::GroupHandler;
use crate::ordering::Ordering;
use crate::replicas::hung::may_go;
use crate::style::StyleRules;
use crate::tally::{Finding, Verdict};

impl<O: Ordering> GroupHandler<'_, O> {
    /// Removes a replica whose service is hung, at this place in the order.
    pub(crate) fn act_on_demote(&mut self, now: Time, sender: Member, demote: Demote) {
        let Demote { group: id, view, died } = demote;
        let Some(group) = self.base.directory.get(id).filter(|group| group.view == view) else {
            return;
        };
        if !may_go(group, sender, self.base.planted) {
            return;
        }
        let (name, was_primary) = (group.name.clone(), group.primary() == Some(sender));
        self.base.event(Event::Demoted {
            group: id,
            name,
            member: sender,
            was_primary,
            asked: view,
        });
        self.replicas().service_died(now, id, sender, died);
        if sender == self.base.me
            && let Some(hosted) = self.replicas.hosted.get_mut(&id)
        {
            (hosted.departure.abandoned, hosted.departure.begun, hosted.admission.asked) =
                (true, true, None);
            self.replicas().with_replica(now, id, |replica, effects| replica.idle(effects));
            self.base.outputs.push(Output::Replace(id));
        }
        let before = self.base.directory.get(id).cloned();
        let change = self.base.directory.leave(sender, id);
        if let Some(before) = before.filter(|_| change == Change::Removed) {
            self.base.note_gone(id, before);
        }
        self.changed(now, id, change);
        if sender == self.base.me {
            self.replies().send_on(id);
        }
        if change != Change::Removed {
            self.count_votes(now, id);
        }
    }

    /// Acts on a ballot at its place in the order.
    pub(crate) fn act_on_ballot(&mut self, now: Time, sender: Member, ballot: &Ballot) {
        let id = ballot.group;
        let Some(group) = self.base.directory.get(id).filter(|group| group.options.style.votes())
        else {
            return;
        };
        if group.replica(sender).is_none() {
            return; // it was taken out after it had told this
        }
        if !self.replicas.votes.take(sender, ballot) {
            return;
        }
        let (proven, begun, sequence) =
            (ballot.proven, ballot.begun, self.base.progress.delivered());
        self.replicas().with_listed(now, id, |replica, fx| {
            replica.prove_by_vote(proven, sequence, fx);
            replica.allow(proven + u64::from(begun), fx);
        });
        if sender == self.base.me {
            if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
                hosted.replica.ballot_delivered(ballot.opening.is_some());
            }
            // Calls settled during its state transfer: it has executed them since, or will.
            let opened = ballot.opening.map(|from| self.replicas.votes.verdicts_after(id, from));
            for (position, verdict) in opened.into_iter().flatten() {
                self.replicas().with_listed(now, id, |replica, effects| {
                    replica.settled(position, verdict, effects);
                });
            }
            self.replicas.votes.note_due(id);
        }
        self.count_votes(now, id);
    }

    /// Acts on what the votes of a group show, up to this place in the order.
    pub(crate) fn count_votes(&mut self, now: Time, id: GroupId) {
        while let Some(group) = self.base.directory.get(id) {
            let synced: Vec<Member> = group.synced().collect();
            let joining = group.replicas.len() > synced.len();
            let counted = (&synced[..], joining);
            let Some(finding) = self.replicas.votes.next_finding(id, counted, self.base.planted)
            else {
                break;
            };
            self.act_on_finding(now, id, finding);
        }
        if self.base.directory.get(id).is_none() {
            return self.replicas.votes.forget(id);
        }
        let Some(base) = self.replicas.votes.base(id) else { return };
        if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.replica.forget_votes(base);
        }
        if let Some(group) = self.base.directory.get(id) {
            let synced: Vec<Member> = group.synced().collect();
            self.replicas.votes.look_for_missing(now, id, (self.base.me, &synced));
        }
    }

    pub(crate) fn act_on_finding(&mut self, now: Time, id: GroupId, finding: Finding) {
        match finding {
            Finding::Settled { position, verdict } => {
                if let Verdict::Split(answers) = verdict {
                    let name = self.base.name_of(id);
                    self.base.event(Event::Split { group: id, name, position, answers });
                }
                self.replicas().with_listed(now, id, |replica, effects| {
                    replica.settled(position, verdict, effects);
                });
            }
            Finding::Deviates { .. } if self.base.planted.is(Bug::KeepDeviant) => {}
            Finding::Deviates { member, position, told, agreed, voters } => {
                let (told, agreed) = (told.brief(), agreed.brief());
                let cause = Deviation::Outcome { told, agreed, voters };
                self.expel(now, id, member, Some((position, cause)));
            }
            Finding::Behind { member, position } => {
                self.expel(now, id, member, Some((position, Deviation::Behind)));
            }
            Finding::Stale { member } => self.expel(now, id, member, None),
        }
    }

    /// Removes a replica, on all nodes at this place in the order. It rejoins and gets another's
    /// state.
    pub(crate) fn expel(
        &mut self,
        now: Time,
        id: GroupId,
        member: Member,
        why: Option<(u64, Deviation)>,
    ) {
        if let Some((position, cause)) = why {
            let name = self.base.name_of(id);
            self.base.event(Event::Deviated { group: id, name, member, position, cause });
        }
        self.replicas.votes.forget_member(id, member);
        if member == self.base.me {
            self.replicas().part_with(now, id, why.is_some());
        }
        self.replicas().with_listed(now, id, |replica, _| replica.member_parts(member));
        let change = self.base.directory.expel(member, id);
        self.changed(now, id, change);
    }

    /// Acts on the ordered report that votes are missing.
    pub(crate) fn act_on_absent(&mut self, now: Time, absent: &Absent) {
        let Absent { group: id, member, position } = *absent;
        let Some(group) = self.base.directory.get(id) else { return };
        let synced: Vec<Member> = group.synced().collect();
        if self.replicas.votes.is_missing(absent, &synced) {
            self.expel(now, id, member, Some((position, Deviation::Silent)));
            self.count_votes(now, id);
        }
    }
}
