//! Voting groups: votes are counted at their places in the order, and who deviates is taken out
//! there (`docs/protocol/group.md`, "Voting").

use alloc::vec::Vec;

use wire::ordered::{Ballot, Ordered};
use wire::{GroupId, Time};

use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replica::Slip;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::style::StyleRules;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// This node's replica is taken out: what it has executed is worth nothing.
    pub(crate) fn part_with(&mut self, now: Time, id: GroupId, guilty: bool) {
        self.replies().lose_calls(id);
        if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.replica.close_votes();
            if guilty {
                hosted.rejoin.begin(now);
            }
        }
    }

    /// Orders the votes that have gathered. True if there were any.
    pub(crate) fn pump_ballots(&mut self, now: Time) -> bool {
        if !self.replicas.votes.any_due() || !self.base.membership.is_active() {
            return false;
        }
        let mut any = false;
        for id in self.replicas.votes.take_due() {
            let slip =
                self.replicas.hosted.get_mut(&id).and_then(|hosted| hosted.replica.take_ballot());
            if let Some(slip) = slip {
                self.order_votes(now, id, slip);
                any = true;
            }
        }
        any
    }

    /// Orders what this node's replica tells, with the vote that it is about.
    pub(crate) fn order_votes(&mut self, now: Time, group: GroupId, slip: Slip) {
        let since = self.replicas.votes.since(group);
        let Slip { opening, first, digests } = slip;
        let hosted = self.replicas.hosted.get(&group);
        let proven = hosted.and_then(|hosted| hosted.replica.executed()).unwrap_or(0);
        let begun = hosted.is_some_and(|hosted| hosted.replica.has_asked());
        self.base.order(
            now,
            Ordered::Ballot(Ballot { group, since, opening, first, proven, begun, digests }),
        );
    }

    /// A component begins: replicas with the state order their unsettled votes anew.
    pub(crate) fn open_votes(&mut self, now: Time) {
        let groups: Vec<GroupId> = self.base.directory.iter().map(|(id, _)| id).collect();
        groups.into_iter().for_each(|id| self.open_votes_of(now, id));
    }

    /// The same of one group.
    pub(crate) fn open_votes_of(&mut self, now: Time, id: GroupId) {
        let me = self.base.me;
        let Some(group) = self.base.directory.get(id) else { return };
        let (is_synced, alone) =
            (group.synced().any(|member| member == me), group.synced().eq([me]));
        if group.options.style.votes() && is_synced {
            self.with_replica(now, id, |replica, effects| replica.open_votes(alone, effects));
        } else if let Some(hosted) = self.replicas.hosted.get_mut(&id) {
            hosted.replica.close_votes();
        }
    }

    /// Replicas that were kept out for long enough may come back.
    pub(crate) fn end_backoffs(&mut self, now: Time) {
        self.replicas.hosted.values_mut().for_each(|hosted| hosted.rejoin.expire(now));
    }

    /// Reports the replicas whose votes are missing for too long. The facts at the report's place
    /// in the order decide.
    pub(crate) fn accuse(&mut self, now: Time) {
        let overdue = self.replicas.votes.overdue(now);
        if self.base.planted.is(Bug::AwaitVotes) {
            return;
        }
        for absent in overdue {
            self.base.order(now, Ordered::Absent(absent));
        }
    }
}

impl Replicas {
    /// When a replica that is kept out may come back.
    pub(crate) fn next_return(&self) -> Option<Time> {
        self.hosted.values().filter_map(|hosted| hosted.rejoin.ends()).min()
    }
}
