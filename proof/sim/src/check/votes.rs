//! In a voting group no client gets an answer that a lone replica invents. A replica that invents
//! or hangs is taken out within a bound, and no other is.
//!
//! Source: docs/protocol/group.md, "Voting". The checkers of replies judge whether answers are
//! right. This one judges which replicas may be wrong.

use super::hashed::{HashMap, HashSet};

use engine::Deviation;
use wire::{Duration, GroupId, Member, Time};

use super::{Verdict, demand};

const PROPERTY: &str = "deviants are replaced, and nobody else";

/// Where nothing else happens, a lie is found out within this time.
pub const FOUND_WITHIN: Duration = Duration::from_millis(250);

/// The replicas' faults, and the nodes' reports of them.
#[derive(Clone, Default)]
pub struct Votes {
    /// Replicas whose state is not the group's, until it is replaced.
    wrong: HashSet<(GroupId, Member)>,
    /// Outcomes that are not the group's.
    lies: HashSet<(GroupId, Member, u64)>,
    /// Lies of which nobody has said anything.
    unnoticed: HashMap<(GroupId, Member), Time>,
    /// Replicas that hang, or hung.
    hung: HashSet<(GroupId, Member)>,
    /// Replicas that had something to execute, or whose nodes had something to tell, when they were
    /// looked at last.
    busy: HashSet<(GroupId, Member)>,
    /// Replicas taken out, each with the call that proved it, as some node reported.
    told: HashSet<(GroupId, Member, u64)>,
    /// Groups in which the liars were no minority any more: nobody can know who is right.
    spoilt: HashSet<GroupId>,
    /// Nodes have disks: a replica that executes again what its disk gave back reports late.
    recalls: bool,
}

impl Votes {
    /// `recalls`: nodes have disks.
    pub fn new(recalls: bool) -> Self {
        Votes { recalls, ..Votes::default() }
    }

    /// A replica has another outcome of a call than it should, and another state if it is
    /// `lasting`.
    pub fn lied(&mut self, now: Time, by: Member, group: GroupId, position: u64, lasting: bool) {
        self.lies.insert((group, by, position));
        self.unnoticed.entry((group, by)).or_insert(now);
        if lasting {
            self.wrong.insert((group, by));
        }
    }

    /// A replica executes nothing any more.
    pub fn hangs(&mut self, by: Member, group: GroupId) {
        self.hung.insert((group, by));
    }

    /// Its history is not the group's.
    pub fn is_wrong(&self, by: Member, group: GroupId) -> bool {
        self.wrong.contains(&(group, by))
    }

    /// It has lied, and nobody has said so.
    pub fn is_unnoticed(&self, by: Member, group: GroupId) -> bool {
        self.unnoticed.contains_key(&(group, by)) || self.is_wrong(by, group)
    }

    /// Nothing is promised of the group any more.
    pub fn is_spoilt(&self, group: GroupId) -> bool {
        self.spoilt.contains(&group)
    }

    /// A replica has another history, or none, or is gone.
    pub fn replaced(&mut self, by: Member, group: GroupId) {
        self.wrong.remove(&(group, by));
        self.unnoticed.remove(&(group, by));
    }

    /// A node installs a view of a group.
    pub fn view(&mut self, group: GroupId, replicas: &[(Member, bool)]) {
        let synced = replicas.iter().filter(|(_, synced)| *synced).count();
        let lies = |member: &Member| self.unnoticed.contains_key(&(group, *member));
        let liars = replicas.iter().filter(|(member, synced)| *synced && lies(member)).count();
        if liars > 0 && 2 * liars >= synced {
            self.spoilt.insert(group);
        }
    }

    /// A replica has something to execute, or its node to tell, or not.
    pub fn busy(&mut self, by: Member, group: GroupId, busy: bool) {
        if busy {
            self.busy.insert((group, by));
        } else {
            self.busy.remove(&(group, by));
        }
    }

    /// A node says that a replica is taken out.
    pub fn deviated(
        &mut self,
        group: GroupId,
        member: Member,
        position: u64,
        cause: &Deviation,
    ) -> Verdict {
        if !self.told.insert((group, member, position)) {
            return Ok(()); // another node has said so before
        }
        self.unnoticed.remove(&(group, member));
        let guilty = match cause {
            Deviation::Outcome { .. } => self.lies.contains(&(group, member, position)),
            Deviation::Silent | Deviation::Behind => {
                let of = (group, member);
                self.recalls || self.busy.contains(&of) || self.hung.contains(&of)
            }
        };
        demand(guilty || self.is_spoilt(group), PROPERTY, || {
            format!("{member} is taken out of {group} for call {position}, by {cause:?}")
        })
    }

    /// A node says that there is no majority for any outcome of a call.
    pub fn split(&self, group: GroupId, position: u64) -> Verdict {
        demand(self.is_spoilt(group), PROPERTY, || {
            format!("call {position} of {group} has no outcome, and a majority tells the truth")
        })
    }

    /// Somebody's lie has not been noticed.
    pub fn missing(&self) -> Option<String> {
        let mut left = self.unnoticed.iter().filter(|((group, _), _)| !self.is_spoilt(*group));
        left.next().map(|((group, by), _)| format!("{by} has lied in {group}, and stays in it"))
    }

    /// Nothing else has happened since a replica lied at this time.
    pub fn found_in_time(&self, group: GroupId, by: Member, lied: Time) -> Verdict {
        let since = self.unnoticed.get(&(group, by)).filter(|since| **since <= lied);
        demand(since.is_none() || self.is_spoilt(group), PROPERTY, || {
            format!("{by} has lied in {group}, and is in it after {FOUND_WITHIN:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    const GROUP: GroupId = GroupId(5);

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    fn view(synced: &[u32]) -> Vec<(Member, bool)> {
        synced.iter().map(|node| (member(*node), true)).collect()
    }

    #[test]
    fn an_honest_replica_that_is_taken_out_and_a_liar_that_stays_are_seen() {
        let cause = Deviation::Outcome { told: 1, agreed: 2, voters: 3 };
        let mut votes = Votes::default();
        votes.view(GROUP, &view(&[1, 2, 3]));
        assert!(votes.deviated(GROUP, member(2), 1, &cause).is_err());
        assert!(votes.deviated(GROUP, member(2), 2, &Deviation::Silent).is_err());
        votes.busy(member(2), GROUP, true);
        assert!(votes.deviated(GROUP, member(2), 3, &Deviation::Silent).is_ok(), "busy");
        votes.lied(Time(7), member(2), GROUP, 4, true);
        assert!(votes.missing().is_some());
        assert!(votes.found_in_time(GROUP, member(2), Time(7)).is_err());
        assert!(votes.deviated(GROUP, member(2), 4, &cause).is_ok());
        assert!(votes.deviated(GROUP, member(2), 5, &cause).is_err(), "that was true");
        assert!(votes.found_in_time(GROUP, member(2), Time(7)).is_ok());
        assert!(votes.is_wrong(member(2), GROUP), "until it is replaced");
        votes.replaced(member(2), GROUP);
        assert!(!votes.is_wrong(member(2), GROUP) && votes.missing().is_none());
    }

    #[test]
    fn nothing_is_promised_when_half_of_the_replicas_lie() {
        let mut votes = Votes::default();
        votes.lied(Time(7), member(2), GROUP, 4, true);
        votes.view(GROUP, &view(&[1, 2, 3]));
        assert!(votes.split(GROUP, 4).is_err());
        votes.view(GROUP, &view(&[1, 2]));
        assert!(votes.split(GROUP, 4).is_ok());
    }
}
