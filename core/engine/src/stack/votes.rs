//! Voting groups: votes are counted at their places in the order, and who deviates is taken out there
//! (`docs/protocol/group.md`, "Voting").

use alloc::vec::Vec;

use wire::ordered::{Absent, Ballot, Ordered};
use wire::{GroupId, Member, Time};

use super::Stack;
use crate::api::{Deviation, Event};
use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replica::Slip;
use crate::style::Conduct;
use crate::tally::{Finding, Verdict};

impl<O: Ordering> Stack<O> {
    /// A ballot at its place in the order.
    pub(super) fn act_on_ballot(&mut self, now: Time, sender: Member, ballot: &Ballot) {
        let id = ballot.group;
        let Some(group) = self.directory.get(id).filter(|group| group.options.style.votes()) else {
            return;
        };
        if group.replica(sender).is_none() {
            return; // it was taken out after it had told this
        }
        if !self.votes.take(sender, ballot) {
            return;
        }
        let (proven, begun, sequence) = (ballot.proven, ballot.begun, self.progress.delivered());
        self.with_replica(now, id, |replica, fx| {
            replica.prove(proven, sequence, fx);
            replica.allow(proven + u64::from(begun), fx);
        });
        if sender == self.me {
            if let Some(hosted) = self.hosted.get_mut(&id) {
                hosted.replica.ballot_delivered(ballot.opening.is_some());
            }
            // What was settled while its state was on the way: it has executed that since, or will.
            let opened = ballot.opening.map(|from| self.votes.verdicts_after(id, from));
            for (position, verdict) in opened.into_iter().flatten() {
                self.with_replica(now, id, |replica, effects| {
                    replica.settled(position, verdict, effects);
                });
            }
            self.votes.note_due(id);
        }
        self.count_votes(now, id);
    }

    /// Acts on what the votes of a group show, up to this place in the order.
    pub(super) fn count_votes(&mut self, now: Time, id: GroupId) {
        while let Some(group) = self.directory.get(id) {
            let synced: Vec<Member> = group.synced().collect();
            let joining = group.replicas.len() > synced.len();
            let counted = (&synced[..], joining);
            let Some(finding) = self.votes.next_finding(id, counted, self.planted) else { break };
            self.act_on_finding(now, id, finding);
        }
        if self.directory.get(id).is_none() {
            return self.votes.forget(id);
        }
        let Some(base) = self.votes.base(id) else { return };
        if let Some(hosted) = self.hosted.get_mut(&id) {
            hosted.replica.forget_votes(base);
        }
        if let Some(group) = self.directory.get(id) {
            let synced: Vec<Member> = group.synced().collect();
            self.votes.look_for_missing(now, id, (self.me, &synced));
        }
    }

    fn act_on_finding(&mut self, now: Time, id: GroupId, finding: Finding) {
        match finding {
            Finding::Settled { position, verdict } => {
                if let Verdict::Split(answers) = verdict {
                    let name = self.name_of(id);
                    self.event(Event::Split { group: id, name, position, answers });
                }
                self.with_replica(now, id, |replica, effects| {
                    replica.settled(position, verdict, effects);
                });
            }
            Finding::Deviates { .. } if self.planted.is(Bug::KeepDeviant) => {}
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

    fn name_of(&self, id: GroupId) -> alloc::string::String {
        self.directory.get(id).map(|group| group.name.clone()).unwrap_or_default()
    }

    /// Takes a replica out, everywhere at this place in the order. It comes back and is given the state of another.
    fn expel(&mut self, now: Time, id: GroupId, member: Member, why: Option<(u64, Deviation)>) {
        if let Some((position, cause)) = why {
            let name = self.name_of(id);
            self.event(Event::Deviated { group: id, name, member, position, cause });
        }
        self.votes.forget_member(id, member);
        if member == self.me {
            self.part_with(now, id, why.is_some());
        }
        self.with_replica(now, id, |replica, _| replica.member_parts(member));
        let change = self.directory.expel(member, id);
        self.changed(now, id, change);
    }

    /// This node's replica is taken out: what it has executed is worth nothing.
    fn part_with(&mut self, now: Time, id: GroupId, guilty: bool) {
        self.lose_calls(id);
        if let Some(hosted) = self.hosted.get_mut(&id).filter(|_| guilty) {
            hosted.rejoin.begin(now);
        }
    }

    /// Orders the votes that have gathered. True if there were any.
    pub(super) fn pump_ballots(&mut self, now: Time) -> bool {
        if !self.votes.any_due() || !self.membership.is_active() {
            return false;
        }
        let mut any = false;
        for id in self.votes.take_due() {
            let slip = self.hosted.get_mut(&id).and_then(|hosted| hosted.replica.take_ballot());
            if let Some(slip) = slip {
                self.order_votes(now, id, slip);
                any = true;
            }
        }
        any
    }

    /// Orders what this node's replica tells, with the vote that it is about.
    pub(super) fn order_votes(&mut self, now: Time, group: GroupId, slip: Slip) {
        let since = self.votes.since(group);
        let Slip { opening, first, digests } = slip;
        let hosted = self.hosted.get(&group);
        let proven = hosted.and_then(|hosted| hosted.replica.executed()).unwrap_or(0);
        let begun = hosted.is_some_and(|hosted| hosted.replica.has_asked());
        self.order(
            now,
            Ordered::Ballot(Ballot { group, since, opening, first, proven, begun, digests }),
        );
    }

    /// A component begins: whoever has the state tells anew what is not settled.
    pub(super) fn open_votes(&mut self, now: Time) {
        let groups: Vec<GroupId> = self.directory.iter().map(|(id, _)| id).collect();
        groups.into_iter().for_each(|id| self.open_votes_of(now, id));
    }

    /// The same of one group.
    pub(super) fn open_votes_of(&mut self, now: Time, id: GroupId) {
        let me = self.me;
        let Some(group) = self.directory.get(id) else { return };
        if group.options.style.votes() && group.synced().any(|member| member == me) {
            let alone = group.synced().eq([me]);
            self.with_replica(now, id, |replica, effects| replica.open_votes(alone, effects));
        }
    }

    /// When a replica that is kept out may come back.
    pub(super) fn next_return(&self) -> Option<Time> {
        self.hosted.values().filter_map(|hosted| hosted.rejoin.ends()).min()
    }

    /// Replicas that were kept out for long enough may come back.
    pub(super) fn end_backoffs(&mut self, now: Time) {
        self.hosted.values_mut().for_each(|hosted| hosted.rejoin.expire(now));
    }

    /// Says whose votes are missing for too long. What is true where that is ordered decides.
    pub(super) fn accuse(&mut self, now: Time) {
        let overdue = self.votes.overdue(now);
        if self.planted.is(Bug::AwaitVotes) {
            return;
        }
        for absent in overdue {
            self.order(now, Ordered::Absent(absent));
        }
    }

    /// It is said, at this place in the order, that votes are missing.
    pub(super) fn act_on_absent(&mut self, now: Time, absent: &Absent) {
        let Absent { group: id, member, position } = *absent;
        let Some(group) = self.directory.get(id) else { return };
        let synced: Vec<Member> = group.synced().collect();
        if self.votes.is_missing(absent, &synced) {
            self.expel(now, id, member, Some((position, Deviation::Silent)));
            self.count_votes(now, id);
        }
    }
}
