//! The votes of a voting group's replicas, and their result (`docs/protocol/group.md`, "Voting";
//! `ft-corba-totem.txt`, section 2.1).
//!
//! Every node of a component keeps the same tally, because all of it follows from ordered messages
//! and from the table. So a deviating replica is taken out at the same place everywhere, without
//! any questions.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::Member;
use wire::limits::MAX_UNSETTLED;
use wire::ordered::{Ballot, Digest};

use crate::bug::{Bug, Planted};

/// The replicas' verdict on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A majority has this outcome.
    Agreed(Digest),
    /// No outcome has a majority, or can have one; the number of different outcomes.
    Split(usize),
}

/// A result of the tally. Results come one at a time, in the order in which to act on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The call at this position has its verdict.
    Settled { position: u64, verdict: Verdict },
    /// This replica's outcome differs from that of a majority among so many.
    Deviates { member: Member, position: u64, told: Digest, agreed: Digest, voters: usize },
    /// This replica is too far behind the others.
    Behind { member: Member, position: u64 },
    /// This replica comes from where less was settled: no replica may be left that could judge its
    /// votes.
    Stale { member: Member },
}

/// The votes of one replica.
#[derive(Clone, Debug)]
struct Votes {
    /// The last settled position when it opened.
    opened_at: u64,
    /// The position of the first digest here.
    first: u64,
    digests: VecDeque<Digest>,
    /// The last position that was compared with the verdicts.
    judged: u64,
}

impl Votes {
    /// The last position that it voted on.
    fn told(&self) -> u64 {
        self.first - 1 + self.digests.len() as u64
    }

    fn at(&self, position: u64) -> Option<Digest> {
        let place = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.digests.get(place).copied()
    }
}

/// The votes on the calls of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The place in the order where the group began to vote. 0: at the begin of the component.
    since: u64,
    /// The last settled position. `None` until every replica with the state has opened.
    settled: Option<u64>,
    votes: BTreeMap<Member, Votes>,
    /// The verdicts up to the last settled position, as far as votes on them may still come.
    /// `None`: the verdict is unknown here.
    verdicts: VecDeque<Option<Verdict>>,
    /// Opened with less settled than another, and not yet taken out.
    stale: Vec<Member>,
    /// Verdicts that some replicas knew when the count began, and that the others lack.
    news: VecDeque<(u64, Verdict)>,
}

impl Tally {
    /// The group begins to vote at this place.
    pub(crate) fn begin(since: u64) -> Tally {
        Tally { since, ..Tally::default() }
    }

    /// The place in the order where the group began to vote. Ballots carry it, since ballots of an
    /// earlier vote may come late.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    /// A ballot of a replica in the table, of this vote, is delivered.
    pub(crate) fn take(&mut self, from: Member, ballot: &Ballot) {
        let digests = ballot.digests.iter().copied();
        match ballot.opening {
            Some(opened_at) if ballot.first <= opened_at + 1 => {
                let (first, judged) = (ballot.first, ballot.first - 1);
                let votes = Votes { opened_at, first, digests: digests.collect(), judged };
                self.votes.insert(from, votes);
            }
            // It would leave calls out: correct replicas send no such ballot.
            Some(_) => {}
            None => {
                let goes_on = |votes: &&mut Votes| votes.told() + 1 == ballot.first;
                if let Some(votes) = self.votes.get_mut(&from).filter(goes_on) {
                    votes.digests.extend(digests);
                }
            }
        }
    }

    /// A replica is out of the table: its votes count no more.
    pub(crate) fn forget(&mut self, member: Member) {
        self.votes.remove(&member);
        self.stale.retain(|stale| *stale != member);
    }

    /// The last position for which no vote is awaited.
    pub(crate) fn base(&self) -> u64 {
        self.settled.unwrap_or_default() - self.verdicts.len() as u64
    }

    /// The known verdicts on positions after this one, with their positions.
    pub(crate) fn verdicts_after(
        &self,
        position: u64,
    ) -> impl Iterator<Item = (u64, Verdict)> + '_ {
        let known = (self.base() + 1..).zip(&self.verdicts);
        let known = known.filter_map(|(at, verdict)| Some((at, (*verdict)?)));
        known.filter(move |(at, _)| *at > position)
    }

    /// The next finding, while these replicas have the state. `joining`: others are receiving it.
    /// They will vote on all positions after that state's place.
    pub(crate) fn next_finding(
        &mut self,
        synced: &[Member],
        joining: bool,
        planted: Planted,
    ) -> Option<Finding> {
        let found = self.find(synced, planted);
        if found.is_none() {
            self.trim(joining);
        }
        found
    }

    fn find(&mut self, synced: &[Member], planted: Planted) -> Option<Finding> {
        if self.settled.is_none() {
            self.open(synced);
        }
        let settled = self.settled?;
        if let Some(member) = self.stale.pop() {
            return Some(Finding::Stale { member });
        }
        if let Some((position, verdict)) = self.news.pop_front() {
            return Some(Finding::Settled { position, verdict });
        }
        if let Some(found) = self.judge(settled, synced.len()) {
            return Some(found);
        }
        for member in synced {
            let told = self.votes.get(member).map(Votes::told);
            if let Some(told) = told.filter(|told| told + MAX_UNSETTLED < settled) {
                return Some(Finding::Behind { member: *member, position: told + 1 });
            }
        }
        let position = settled + 1;
        let verdict = self.verdict(position, synced, planted)?;
        self.settled = Some(position);
        self.verdicts.push_back(Some(verdict));
        Some(Finding::Settled { position, verdict })
    }

    /// The last position that any replica knows to be settled, once all have opened.
    fn furthest(&self, synced: &[Member]) -> Option<u64> {
        let opened: Option<Vec<u64>> =
            synced.iter().map(|member| Some(self.votes.get(member)?.opened_at)).collect();
        opened?.into_iter().max()
    }

    /// Begins the count when all have opened, and have voted up to the last position that any of
    /// them knows to be settled. A replica restored from its disk knows only its snapshot as
    /// settled, and votes anew on later positions.
    fn open(&mut self, synced: &[Member]) {
        let Some(settled) = self.furthest(synced) else { return };
        let opened: Vec<&Votes> = synced.iter().filter_map(|m| self.votes.get(m)).collect();
        if opened.iter().any(|votes| votes.told() < settled) {
            return;
        }
        let lowest = opened.iter().map(|votes| votes.first).min().unwrap_or(settled + 1);
        let from = lowest.max(settled.saturating_sub(MAX_UNSETTLED) + 1);
        // Earlier verdicts are not decided again. They are known where most of the present votes
        // agree.
        let known = |position| {
            let told = count(opened.iter().filter_map(|votes| votes.at(position)));
            let all: usize = told.values().sum();
            let agreed = told.into_iter().find(|(_, votes)| 2 * votes > all);
            agreed.map(|(digest, _)| Verdict::Agreed(digest))
        };
        // Enough replicas vote alike to prove the verdict, whichever replicas voted at that time.
        let needed = synced.len() / 2 + 1;
        let is_sure = |position| {
            let told = count(opened.iter().filter_map(|votes| votes.at(position)));
            told.into_values().any(|votes| votes >= needed)
        };
        let unsure = (from..=settled).rev().find(|position| !is_sure(*position));
        let sure_from = unsure.map_or(from, |unsure| unsure + 1);
        let verdicts: VecDeque<Option<Verdict>> = (from..=settled).map(known).collect();
        let is_stale = |member: &&Member| self.votes[*member].opened_at + 1 < sure_from;
        self.stale = synced.iter().filter(is_stale).copied().collect();
        let behind = opened.iter().map(|votes| votes.opened_at + 1).min().unwrap_or(sure_from);
        let news = (from..=settled).zip(&verdicts).filter(|(at, _)| *at >= behind.max(sure_from));
        self.news = news.filter_map(|(at, verdict)| Some((at, (*verdict)?))).collect();
        (self.settled, self.verdicts) = (Some(settled), verdicts);
    }

    /// Finds a replica whose vote differs from the verdict.
    fn judge(&mut self, settled: u64, voters: usize) -> Option<Finding> {
        let base = settled - self.verdicts.len() as u64;
        for (member, votes) in &mut self.votes {
            let upto = votes.told().min(settled);
            votes.judged = votes.judged.max(base.min(upto));
            while votes.judged < upto {
                votes.judged += 1;
                let position = votes.judged;
                let verdict = self.verdicts[(position - base - 1) as usize];
                if let (Some(Verdict::Agreed(agreed)), Some(told)) = (verdict, votes.at(position))
                    && agreed != told
                {
                    let member = *member;
                    return Some(Finding::Deviates { member, position, told, agreed, voters });
                }
            }
        }
        None
    }

    fn verdict(&self, position: u64, synced: &[Member], planted: Planted) -> Option<Verdict> {
        let told = synced.iter().filter_map(|member| self.votes.get(member)?.at(position));
        let told = count(told);
        let needed = synced.len() / 2 + 1;
        let weight = if planted.is(Bug::CountVotesTwice) { 2 } else { 1 };
        let (digest, most) = told.iter().max_by_key(|(_, votes)| **votes)?;
        let missing = synced.len() - told.values().sum::<usize>();
        if most * weight >= needed {
            Some(Verdict::Agreed(*digest))
        } else if most + missing < needed {
            Some(Verdict::Split(told.len()))
        } else {
            None
        }
    }

    fn trim(&mut self, joining: bool) {
        let Some(settled) = self.settled else { return };
        let told = self.votes.values().map(Votes::told).min().unwrap_or(settled).min(settled);
        let told = if joining { self.base() } else { told };
        let base = told.max(settled.saturating_sub(MAX_UNSETTLED));
        let gone = base.saturating_sub(self.base());
        self.verdicts.drain(..gone as usize);
        for votes in self.votes.values_mut() {
            let gone = base.saturating_sub(votes.first - 1).min(votes.digests.len() as u64);
            votes.digests.drain(..gone as usize);
            votes.first += gone;
        }
    }

    /// The position on which this replica has not voted, and at least half of those with the state
    /// have: of two, the other.
    pub(crate) fn lacks(&self, member: Member, synced: &[Member]) -> Option<u64> {
        let position = self.votes.get(&member)?.told() + 1;
        if self.settled.is_none() {
            // The count begins when it has voted up to the position that others know to be settled.
            return (position <= self.furthest(synced)?).then_some(position);
        }
        let tells = |member: &&Member| {
            self.votes.get(*member).is_some_and(|votes| votes.told() >= position)
        };
        (2 * synced.iter().filter(tells).count() >= synced.len()).then_some(position)
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        assert!(self.verdicts.len() as u64 <= MAX_UNSETTLED + 1, "what is settled is let go");
        assert!(self.settled.is_some() || self.verdicts.is_empty(), "nothing is settled unopened");
    }
}

/// The votes for each outcome. In order, so that all nodes have the same result.
fn count(told: impl Iterator<Item = Digest>) -> BTreeMap<Digest, usize> {
    let mut counted = BTreeMap::new();
    told.for_each(|digest| *counted.entry(digest).or_default() += 1);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use wire::{GroupId, Incarnation, NodeId};

    /// The member to be taken out.
    fn excluded(finding: &Finding) -> Option<Member> {
        match finding {
            Finding::Settled { .. } => None,
            Finding::Deviates { member, .. }
            | Finding::Behind { member, .. }
            | Finding::Stale { member } => Some(*member),
        }
    }

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn ballot(opening: Option<u64>, first: u64, outcomes: &[u8]) -> Ballot {
        let digests = outcomes.iter().map(|outcome| Digest([*outcome; 16])).collect();
        Ballot { group: GroupId(1), since: 0, opening, first, proven: 0, begun: false, digests }
    }

    fn all() -> Vec<Member> {
        [1, 2, 3].map(member).to_vec()
    }

    /// Three replicas that have opened, with nothing executed.
    fn opened() -> Tally {
        let mut tally = Tally::default();
        all().into_iter().for_each(|member| tally.take(member, &ballot(Some(0), 1, &[])));
        tally
    }

    fn findings(tally: &mut Tally, synced: &[Member]) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut synced = synced.to_vec();
        while let Some(finding) = tally.next_finding(&synced, false, Planted::default()) {
            if let Some(member) = excluded(&finding) {
                tally.forget(member);
                synced.retain(|synced| *synced != member);
            }
            found.push(finding);
        }
        tally.check_invariants();
        found
    }

    fn agreed(position: u64, outcome: u8) -> Finding {
        let verdict = Verdict::Agreed(Digest([outcome; 16]));
        Finding::Settled { position, verdict }
    }

    #[test]
    fn two_of_three_settle_a_call_and_one_does_not() {
        let mut tally = opened();
        tally.take(member(1), &ballot(None, 1, &[5, 6]));
        assert_eq!(findings(&mut tally, &all()), []);
        tally.take(member(3), &ballot(None, 1, &[5]));
        assert_eq!(findings(&mut tally, &all()), [agreed(1, 5)]);
        tally.take(member(2), &ballot(None, 1, &[5, 6]));
        assert_eq!(findings(&mut tally, &all()), [agreed(2, 6)]);
        assert_eq!(tally.base(), 1, "3 may still deviate at 2");
        tally.take(member(3), &ballot(None, 2, &[6]));
        findings(&mut tally, &all());
        assert_eq!(tally.base(), 2);
    }

    #[test]
    fn nothing_is_settled_before_all_have_opened() {
        let mut tally = Tally::default();
        tally.take(member(3), &ballot(Some(4), 5, &[9]));
        assert_eq!(findings(&mut tally, &all()), [], "alone it would be its own majority");
        tally.take(member(1), &ballot(Some(4), 5, &[5]));
        tally.take(member(2), &ballot(Some(4), 5, &[5]));
        let found = findings(&mut tally, &all());
        assert_eq!(found[0], agreed(5, 5));
        assert_eq!(excluded(&found[1]), Some(member(3)));
    }

    #[test]
    fn who_deviates_is_found_whether_it_tells_before_or_after_the_majority() {
        for order in [[3, 1, 2], [1, 3, 2], [1, 2, 3]] {
            let mut tally = opened();
            let mut found = Vec::new();
            for node in order {
                let outcome = if node == 3 { 9 } else { 5 };
                tally.take(member(node), &ballot(None, 1, &[outcome]));
                found.extend(findings(&mut tally, &all()));
            }
            let deviates = Finding::Deviates {
                member: member(3),
                position: 1,
                told: Digest([9; 16]),
                agreed: Digest([5; 16]),
                voters: 3,
            };
            assert_eq!(found, [agreed(1, 5), deviates], "{order:?}");
        }
    }

    #[test]
    fn three_answers_are_no_majority_nor_are_two_of_two() {
        let mut tally = opened();
        for (node, outcome) in [(1, 5), (2, 6), (3, 7)] {
            tally.take(member(node), &ballot(None, 1, &[outcome]));
        }
        let split = |answers| Finding::Settled { position: 1, verdict: Verdict::Split(answers) };
        assert_eq!(findings(&mut tally, &all()), [split(3)]);

        let mut tally = opened();
        tally.take(member(1), &ballot(None, 1, &[5]));
        tally.take(member(2), &ballot(None, 1, &[6]));
        assert_eq!(findings(&mut tally, &all()), [], "3 decides");
        tally.forget(member(3));
        assert_eq!(findings(&mut tally, &all()[..2]), [split(2)], "nobody can any more");
    }

    /// A component begins: 3 lags, its calls were settled without it, and it lied.
    #[test]
    fn what_was_settled_is_still_held_against_who_tells_late() {
        let mut tally = Tally::default();
        tally.take(member(1), &ballot(Some(3), 2, &[5, 6]));
        tally.take(member(2), &ballot(Some(3), 2, &[5, 6]));
        tally.take(member(3), &ballot(Some(3), 2, &[5]));
        assert_eq!(findings(&mut tally, &all()), []);
        tally.take(member(3), &ballot(None, 3, &[9]));
        assert_eq!(excluded(&findings(&mut tally, &all())[0]), Some(member(3)));
    }

    #[test]
    fn who_knows_of_less_that_is_settled_begins_anew() {
        let mut tally = Tally::default();
        tally.take(member(1), &ballot(Some(3), 4, &[]));
        tally.take(member(2), &ballot(Some(3), 4, &[]));
        tally.take(member(3), &ballot(Some(2), 3, &[9]));
        assert_eq!(findings(&mut tally, &all()), [Finding::Stale { member: member(3) }]);
    }

    /// All come back from their disks: one has a newer snapshot, and the two others tell the same
    /// of what it knows to be settled.
    #[test]
    fn who_tells_what_a_majority_confirms_goes_on() {
        let mut tally = Tally::default();
        tally.take(member(1), &ballot(Some(2), 3, &[]));
        tally.take(member(2), &ballot(Some(0), 1, &[5]));
        tally.take(member(3), &ballot(Some(0), 1, &[5, 6]));
        assert_eq!(findings(&mut tally, &all()), [], "2 has still to tell");
        assert_eq!(tally.lacks(member(2), &all()), Some(2));
        assert_eq!(tally.lacks(member(3), &all()), None);
        tally.take(member(2), &ballot(None, 2, &[6, 7]));
        assert_eq!(findings(&mut tally, &all()), [agreed(1, 5), agreed(2, 6)]);
        tally.take(member(1), &ballot(None, 3, &[7]));
        assert_eq!(findings(&mut tally, &all()), [agreed(3, 7)]);
    }

    #[test]
    fn who_comes_back_with_what_nobody_confirms_begins_anew() {
        let mut tally = Tally::default();
        tally.take(member(1), &ballot(Some(2), 3, &[]));
        tally.take(member(2), &ballot(Some(1), 2, &[6]));
        tally.take(member(3), &ballot(Some(0), 1, &[5, 8]));
        let mut out: Vec<Member> =
            findings(&mut tally, &all()).iter().filter_map(excluded).collect();
        out.sort_unstable();
        assert_eq!(out, [member(2), member(3)], "they differ, and 1 cannot say who is right");
    }

    /// The simulator's seed 915: a joiner lied about what had been settled while it was given the
    /// state.
    #[test]
    fn who_joins_is_held_to_what_was_settled_meanwhile() {
        let mut tally = opened();
        let two = &all()[..2];
        tally.forget(member(3));
        for node in [1, 2] {
            tally.take(member(node), &ballot(None, 1, &[5, 6, 7]));
        }
        let mut next = || tally.next_finding(two, true, Planted::default());
        assert_eq!(
            [next(), next(), next(), next()],
            [Some(agreed(1, 5)), Some(agreed(2, 6)), Some(agreed(3, 7)), None]
        );
        // It was given the state after the first call.
        tally.take(member(3), &ballot(Some(1), 2, &[]));
        let verdicts: Vec<_> = tally.verdicts_after(1).map(|(position, _)| position).collect();
        assert_eq!(verdicts, [2, 3]);
        tally.take(member(3), &ballot(None, 2, &[6, 9]));
        assert_eq!(excluded(&findings(&mut tally, &all())[0]), Some(member(3)));
    }

    #[test]
    fn a_vote_is_missing_when_half_of_the_replicas_have_told() {
        let mut tally = opened();
        assert_eq!(tally.lacks(member(3), &all()), None);
        tally.take(member(1), &ballot(None, 1, &[5]));
        assert_eq!(tally.lacks(member(3), &all()), None);
        tally.take(member(2), &ballot(None, 1, &[5]));
        findings(&mut tally, &all());
        assert_eq!(tally.lacks(member(3), &all()), Some(1));
        let far: Vec<u8> = vec![5; 1_000];
        for _ in 0..17 {
            for node in [1, 2] {
                let next = tally.votes[&member(node)].told() + 1;
                tally.take(member(node), &ballot(None, next, &far));
            }
        }
        let found = findings(&mut tally, &all());
        let behind = Finding::Behind { member: member(3), position: 1 };
        assert!(found.contains(&behind), "the limit is not waited for");
    }
}
