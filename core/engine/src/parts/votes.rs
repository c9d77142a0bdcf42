//! The votes in voting groups: those received, those due, and those missing
//! (`docs/protocol/group.md`, "Voting").

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::ordered::{Absent, Ballot};
use wire::{Duration, GroupId, Member, Time};

use crate::bug::{Bug, Planted};
use crate::tally::{Finding, Tally, Verdict};

/// The minimum for the timeout with missing votes, in multiples of the slowest replica's recent
/// lag.
const TIMEOUT_FACTOR: u32 = 8;

/// Missing votes in a group, and how long they may be missing.
#[derive(Clone, Debug, Default)]
struct MissingVotes {
    /// Replicas with missing votes, each with the time of its report.
    missing: Vec<Missing>,
    /// How long the last of a call's votes came after the majority, smoothed.
    lag: Duration,
}

impl MissingVotes {
    fn timeout(&self, least: Duration) -> Duration {
        least.max(self.lag * TIMEOUT_FACTOR)
    }
}

/// A replica that has not voted on the call of this position, though a majority has.
#[derive(Clone, Copy, Debug)]
struct Missing {
    member: Member,
    position: u64,
    since: Time,
    due: Time,
}

/// The votes of all voting groups, since the component began.
#[derive(Clone, Debug)]
pub(crate) struct Votes {
    tallies: BTreeMap<GroupId, Tally>,
    missing: BTreeMap<GroupId, MissingVotes>,
    /// Groups in which this node's replica may have votes to send.
    due: BTreeSet<GroupId>,
    /// The minimum time that a vote may be missing.
    timeout: Duration,
}

impl Votes {
    pub(crate) fn new(timeout: Duration) -> Votes {
        Votes { tallies: BTreeMap::new(), missing: BTreeMap::new(), due: BTreeSet::new(), timeout }
    }

    /// Returns the minimum time that a vote may be missing.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Begins a component: all replicas vote anew on calls that are not settled.
    pub(crate) fn begin_component(&mut self, planted: Planted) {
        if !planted.is(Bug::KeepVotes) {
            self.tallies.clear();
        }
        self.missing.clear();
    }

    /// A group begins to vote at this place in the order.
    pub(crate) fn begin(&mut self, group: GroupId, sequence: u64) {
        self.forget(group);
        self.tallies.insert(group, Tally::begin(sequence));
    }

    /// A group votes no more, or is gone.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.tallies.remove(&group);
        self.missing.remove(&group);
    }

    /// Forgets a replica that is out of its group.
    pub(crate) fn forget_member(&mut self, group: GroupId, member: Member) {
        if let Some(tally) = self.tallies.get_mut(&group) {
            tally.forget(member);
        }
    }

    /// Counts a ballot. False if the group has ceased to vote since it was sent, and votes anew.
    pub(crate) fn take(&mut self, sender: Member, ballot: &Ballot) -> bool {
        let tally = self.tallies.entry(ballot.group).or_default();
        let counts = ballot.since == tally.since();
        if counts {
            tally.take(sender, ballot);
        }
        counts
    }

    /// Returns the place in the order since which the group votes; 0 if it has not begun.
    pub(crate) fn since(&self, group: GroupId) -> u64 {
        self.tallies.get(&group).map_or(0, Tally::since)
    }

    /// Returns the verdicts after this position.
    pub(crate) fn verdicts_after(&self, group: GroupId, position: u64) -> Vec<(u64, Verdict)> {
        let tally = self.tallies.get(&group);
        tally.into_iter().flat_map(|tally| tally.verdicts_after(position)).collect()
    }

    /// Returns the next finding from the votes of the synced replicas.
    pub(crate) fn next_finding(
        &mut self,
        group: GroupId,
        (synced, joining): (&[Member], bool),
        planted: Planted,
    ) -> Option<Finding> {
        self.tallies.get_mut(&group)?.next_finding(synced, joining, planted)
    }

    /// Returns the position up to which nobody waits for votes.
    pub(crate) fn base(&self, group: GroupId) -> Option<u64> {
        Some(self.tallies.get(&group)?.base())
    }

    /// Notes that this node's replica may have votes to send.
    pub(crate) fn note_due(&mut self, group: GroupId) {
        self.due.insert(group);
    }

    pub(crate) fn any_due(&self) -> bool {
        !self.due.is_empty()
    }

    pub(crate) fn take_due(&mut self) -> BTreeSet<GroupId> {
        core::mem::take(&mut self.due)
    }

    /// Looks for missing votes on calls for which a majority has voted. It waits until the replica
    /// of `me` has voted on them as well.
    pub(crate) fn look_for_missing(
        &mut self,
        now: Time,
        group: GroupId,
        (me, synced): (Member, &[Member]),
    ) {
        let Some(tally) = self.tallies.get(&group) else { return };
        let waits = synced.contains(&me) && tally.lacks(me, synced).is_none();
        let lacking = |member: &Member| Some((*member, tally.lacks(*member, synced)?));
        let lacking: Vec<(Member, u64)> =
            synced.iter().filter(|_| waits).filter_map(lacking).collect();
        let votes = self.missing.entry(group).or_default();
        let before = core::mem::take(&mut votes.missing);
        for gone in before.iter().filter(|old| lacking.iter().all(|(m, _)| *m != old.member)) {
            if synced.contains(&gone.member) {
                votes.lag = (votes.lag * 7 + now.since(gone.since)) / 8;
            }
        }
        let timeout = votes.timeout(self.timeout);
        for (member, position) in lacking {
            let same = before.iter().find(|old| old.member == member && old.position == position);
            let fresh = Missing { member, position, since: now, due: now + timeout };
            votes.missing.push(same.copied().unwrap_or(fresh));
        }
    }

    /// Returns when the next report of missing votes is due.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let missing = self.missing.values().flat_map(|votes| &votes.missing);
        missing.map(|missing| missing.due).min()
    }

    /// Returns votes that are missing for too long. When the report is ordered, they may have come.
    pub(crate) fn overdue(&mut self, now: Time) -> Vec<Absent> {
        let mut absent = Vec::new();
        for (group, votes) in &mut self.missing {
            let timeout = votes.timeout(self.timeout);
            for missing in votes.missing.iter_mut().filter(|missing| missing.due <= now) {
                // A node that was held up itself has not received the votes of that time.
                let in_time = now.since(missing.due) <= timeout / 4;
                missing.due = now + timeout;
                if in_time {
                    let Missing { member, position, .. } = *missing;
                    absent.push(Absent { group: *group, member, position });
                }
            }
        }
        absent
    }

    /// Whether this vote is still missing.
    pub(crate) fn is_missing(&self, absent: &Absent, synced: &[Member]) -> bool {
        let tally = self.tallies.get(&absent.group);
        synced.contains(&absent.member)
            && tally.and_then(|tally| tally.lacks(absent.member, synced)) == Some(absent.position)
    }

    pub(crate) fn check_invariants(&self) {
        self.tallies.values().for_each(Tally::check_invariants);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::ordered::Digest;
    use wire::{Incarnation, NodeId};

    const GROUP: GroupId = GroupId(1);
    const LEAST: Duration = Duration::from_millis(10);

    fn members() -> Vec<Member> {
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        [1, 2, 3].map(member).to_vec()
    }

    fn tell(votes: &mut Votes, member: Member, first: u64, opening: Option<u64>, count: usize) {
        let (since, digests) = (votes.since(GROUP), vec![Digest([7; 16]); count]);
        let ballot =
            Ballot { group: GROUP, since, opening, first, proven: 0, begun: false, digests };
        assert!(votes.take(member, &ballot));
    }

    fn vote(votes: &mut Votes, member: Member, first: u64) {
        tell(votes, member, first, None, 1);
    }

    /// Acts on all findings of the votes, and looks for missing ones.
    fn look(votes: &mut Votes, now: Time, members: &[Member]) {
        let planted = Planted::default();
        while votes.next_finding(GROUP, (members, false), planted).is_some() {}
        votes.look_for_missing(now, GROUP, (members[0], members));
    }

    /// Two of three replicas have voted on the first call.
    fn one_is_missing(now: Time) -> (Votes, Vec<Member>) {
        let (mut votes, members) = (Votes::new(LEAST), members());
        votes.begin(GROUP, 5);
        for (member, count) in members.iter().zip([1, 1, 0]) {
            tell(&mut votes, *member, 1, Some(0), count);
        }
        look(&mut votes, now, &members);
        (votes, members)
    }

    #[test]
    fn a_missing_vote_is_told_after_the_timeout_and_again() {
        let begin = Time(1_000_000_000);
        let (mut votes, members) = one_is_missing(begin);
        assert_eq!(votes.next_timeout(), Some(begin + LEAST));
        assert_eq!(votes.overdue(begin), []);
        let absent = votes.overdue(begin + LEAST);
        assert_eq!(absent, [Absent { group: GROUP, member: members[2], position: 1 }]);
        assert!(votes.is_missing(&absent[0], &members));
        assert_eq!(votes.next_timeout(), Some(begin + LEAST * 2));
        vote(&mut votes, members[2], 1);
        assert!(!votes.is_missing(&absent[0], &members), "it has come meanwhile");
    }

    #[test]
    fn a_node_that_was_held_up_accuses_nobody() {
        let begin = Time(1_000_000_000);
        let (mut votes, _) = one_is_missing(begin);
        assert_eq!(votes.overdue(begin + LEAST * 3), []);
    }

    #[test]
    fn a_slow_replica_is_given_more_time() {
        let begin = Time(1_000_000_000);
        let (mut votes, members) = one_is_missing(begin);
        vote(&mut votes, members[2], 1);
        look(&mut votes, begin + LEAST * 8, &members);
        assert_eq!(votes.next_timeout(), None);
        for member in &members[..2] {
            vote(&mut votes, *member, 2);
        }
        look(&mut votes, begin + LEAST * 8, &members);
        // An eighth of what it took, eight times.
        assert_eq!(votes.next_timeout(), Some(begin + LEAST * 16));
    }

    #[test]
    fn a_ballot_of_an_earlier_vote_does_not_count() {
        let (mut votes, members) = (Votes::new(LEAST), members());
        votes.begin(GROUP, 5);
        let ballot = Ballot {
            group: GROUP,
            since: 4,
            opening: Some(0),
            first: 1,
            proven: 0,
            begun: false,
            digests: Vec::new(),
        };
        assert!(!votes.take(members[0], &ballot));
        votes.forget(GROUP);
        assert_eq!(votes.since(GROUP), 0);
    }
}
