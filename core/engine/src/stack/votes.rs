//! Voting groups: votes are counted at their places in the order, and who deviates is taken out there
//! (`docs/protocol/group.md`, "Voting").

use alloc::vec::Vec;

use wire::ordered::{Absent, Ballot, Ordered};
use wire::{Duration, GroupId, Member, Time};

use super::Stack;
use crate::api::{Deviation, Event};
use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replica::Slip;
use crate::style::Conduct;
use crate::tally::{Finding, Tally, Verdict};

/// The patience with missing votes is at least so many times what the slowest replica took of late.
const PATIENCE_FACTOR: u32 = 8;

/// A replica that was taken out comes back at once; then after so long, and twice as long each time, up to
/// [`LONGEST_PENANCE`]. Being good for ten times as long as it was kept out last makes it forgotten.
const PENANCE: Duration = Duration::from_millis(100);
const LONGEST_PENANCE: Duration = Duration::from_secs(60);

/// This node's replica was taken out for its votes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Penance {
    /// So often in a row.
    times: u32,
    /// It does not come back before.
    until: Time,
    /// That time has not come.
    pub(super) kept_out: bool,
}

impl Penance {
    fn begin(&mut self, now: Time) {
        let good_for = penance(self.times).max(PENANCE) * 10;
        if now >= self.until + good_for {
            self.times = 0;
        }
        self.times += 1;
        self.until = now + penance(self.times);
        self.kept_out = self.until > now;
    }
}

fn penance(times: u32) -> Duration {
    match times {
        0 | 1 => Duration::ZERO,
        _ => (PENANCE * 2u32.saturating_pow(times - 2).min(1 << 16)).min(LONGEST_PENANCE),
    }
}

/// Whose votes are missing in a group, and how long that is borne.
#[derive(Debug, Default)]
pub(super) struct Arrears {
    /// Since when, and from which position on; and when it is said.
    missing: Vec<Missing>,
    /// How long the last of a call's votes came after the majority, smoothed.
    lag: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    member: Member,
    position: u64,
    since: Time,
    due: Time,
}

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
        let tally = self.tallies.entry(id).or_default();
        if ballot.since != tally.since() {
            return; // the group has ceased to vote since it was told, and votes anew
        }
        tally.take(sender, ballot);
        let (proven, begun, sequence) = (ballot.proven, ballot.begun, self.delivered);
        self.with_replica(now, id, |replica, fx| {
            replica.prove(proven, sequence, fx);
            replica.allow(proven + u64::from(begun), fx);
        });
        let Some(tally) = self.tallies.get_mut(&id) else { return };
        if sender == self.me {
            if let Some(hosted) = self.hosted.get_mut(&id) {
                hosted.replica.ballot_delivered(ballot.opening.is_some());
            }
            // What was settled while its state was on the way: it has executed that since, or will.
            let opened = ballot.opening.map(|from| tally.verdicts_after(from).collect::<Vec<_>>());
            for (position, verdict) in opened.into_iter().flatten() {
                self.with_replica(now, id, |replica, effects| {
                    replica.settled(position, verdict, effects);
                });
            }
            self.ballots_due.insert(id);
        }
        self.count_votes(now, id);
    }

    /// Acts on what the votes of a group show, up to this place in the order.
    pub(super) fn count_votes(&mut self, now: Time, id: GroupId) {
        while let Some(group) = self.directory.get(id)
            && let Some(tally) = self.tallies.get_mut(&id)
        {
            let synced: Vec<Member> = group.synced().collect();
            let joining = group.replicas.len() > synced.len();
            let Some(finding) = tally.next_finding(&synced, joining, self.planted) else { break };
            self.act_on_finding(now, id, finding);
        }
        if self.directory.get(id).is_none() {
            self.tallies.remove(&id);
            self.arrears.remove(&id);
            return;
        }
        let Some(base) = self.tallies.get(&id).map(|tally| tally.base()) else { return };
        if let Some(hosted) = self.hosted.get_mut(&id) {
            hosted.replica.forget_votes(base);
        }
        self.look_for_arrears(now, id);
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
        if let Some(tally) = self.tallies.get_mut(&id) {
            tally.forget(member);
        }
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
            hosted.penance.begin(now);
        }
    }

    /// Orders the votes that have gathered. True if there were any.
    pub(super) fn pump_ballots(&mut self, now: Time) -> bool {
        if self.ballots_due.is_empty() || !self.membership.is_active() {
            return false;
        }
        let mut any = false;
        for id in core::mem::take(&mut self.ballots_due) {
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
        let since = self.tallies.get(&group).map_or(0, Tally::since);
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

    /// Whose votes are missing, of those that a majority has told, as far as this node's replica has told them as well.
    fn look_for_arrears(&mut self, now: Time, id: GroupId) {
        let (Some(group), Some(tally)) = (self.directory.get(id), self.tallies.get(&id)) else {
            return;
        };
        let synced: Vec<Member> = group.synced().collect();
        let waits = synced.contains(&self.me) && tally.lacks(self.me, &synced).is_none();
        let lacking = |member: &Member| Some((*member, tally.lacks(*member, &synced)?));
        let lacking: Vec<(Member, u64)> =
            synced.iter().filter(|_| waits).filter_map(lacking).collect();
        let arrears = self.arrears.entry(id).or_default();
        let before = core::mem::take(&mut arrears.missing);
        for gone in before.iter().filter(|old| lacking.iter().all(|(m, _)| *m != old.member)) {
            if synced.contains(&gone.member) {
                arrears.lag = (arrears.lag * 7 + now.since(gone.since)) / 8;
            }
        }
        let patience = self.vote_patience.max(arrears.lag * PATIENCE_FACTOR);
        for (member, position) in lacking {
            let same = before.iter().find(|old| old.member == member && old.position == position);
            let fresh = Missing { member, position, since: now, due: now + patience };
            arrears.missing.push(same.copied().unwrap_or(fresh));
        }
    }

    /// When it is next to be said that votes are missing.
    pub(super) fn next_arrears(&self) -> Option<Time> {
        let missing = self.arrears.values().flat_map(|arrears| &arrears.missing);
        missing.map(|missing| missing.due).min()
    }

    /// When a replica that is kept out may come back.
    pub(super) fn next_return(&self) -> Option<Time> {
        let kept_out = self.hosted.values().map(|hosted| hosted.penance).filter(|p| p.kept_out);
        kept_out.map(|penance| penance.until).min()
    }

    /// Replicas that were kept out for long enough may come back.
    pub(super) fn end_penance(&mut self, now: Time) {
        for hosted in self.hosted.values_mut() {
            hosted.penance.kept_out &= hosted.penance.until > now;
        }
    }

    /// Says whose votes are missing for too long. What is true where that is ordered decides.
    pub(super) fn accuse(&mut self, now: Time) {
        let mut absent = Vec::new();
        for (group, arrears) in &mut self.arrears {
            let patience = self.vote_patience.max(arrears.lag * PATIENCE_FACTOR);
            for missing in arrears.missing.iter_mut().filter(|missing| missing.due <= now) {
                // Who was held up itself has not heard what was said meanwhile.
                let in_time = now.since(missing.due) <= patience / 4;
                missing.due = now + patience;
                if in_time && !self.planted.is(Bug::AwaitVotes) {
                    let Missing { member, position, .. } = *missing;
                    absent.push(Absent { group: *group, member, position });
                }
            }
        }
        for absent in absent {
            self.order(now, Ordered::Absent(absent));
        }
    }

    /// It is said, at this place in the order, that votes are missing.
    pub(super) fn act_on_absent(&mut self, now: Time, absent: &Absent) {
        let Absent { group: id, member, position } = *absent;
        let (Some(group), Some(tally)) = (self.directory.get(id), self.tallies.get(&id)) else {
            return;
        };
        let synced: Vec<Member> = group.synced().collect();
        if synced.contains(&member) && tally.lacks(member, &synced) == Some(position) {
            self.expel(now, id, member, Some((position, Deviation::Silent)));
            self.count_votes(now, id);
        }
    }
}
