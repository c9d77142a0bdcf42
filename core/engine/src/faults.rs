//! The story of a fault, as this node sees it: who is suspected and why, who is excluded, who came
//! back in another life, and when a group whose primary was lost answers again
//! (`ft-corba-totem.txt` section 2.3, the fault notifier).
//!
//! The ring tells single facts. Here they get their places in one story, with the times between
//! them by this node's clock.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::{Duration, GroupId, Incarnation, Member, NodeId, RingId, Time};

use crate::api::{Event, Suspicion};

/// The memory of the present configuration and of losses before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    ring: RingId,
    members: Vec<Member>,
    /// Since when, and by what first.
    suspected: BTreeMap<Member, (Time, Suspicion)>,
    /// The last life of each node that was seen in a configuration.
    lives: BTreeMap<NodeId, Incarnation>,
    /// Groups that lost their primary and have not been answered for here since: when it gave its
    /// last sign of life.
    struck: BTreeMap<GroupId, Time>,
    /// Groups of these that are answered for now.
    resumed: BTreeSet<GroupId>,
}

impl Faults {
    /// The ring reports an event. The first of several suspicions of one member counts.
    pub(crate) fn ring_says(&mut self, now: Time, event: &ring::Event) -> Option<Event> {
        let (member, cause) = match event {
            ring::Event::TokenLost { silent, suspect: Some(member), .. } => {
                (*member, Suspicion::Silence(*silent))
            }
            ring::Event::Unreachable(member) => (*member, Suspicion::Gone),
            ring::Event::Silent(member) => (*member, Suspicion::NoAnswer),
            ring::Event::TooSlow { member, .. } => (*member, Suspicion::TooSlow),
            _ => return None,
        };
        if !self.members.contains(&member) || self.suspected.contains_key(&member) {
            return None;
        }
        self.suspected.insert(member, (now, cause));
        Some(Event::Suspected { member, ring: self.ring, cause })
    }

    /// Former members that are not among these.
    pub(crate) fn lost<'a>(&'a self, members: &'a [Member]) -> impl Iterator<Item = Member> + 'a {
        self.members.iter().copied().filter(|member| !members.contains(member))
    }

    /// A regular configuration is delivered. `struck`: the groups whose primary is not in it, and
    /// who that was.
    pub(crate) fn configuration(
        &mut self,
        now: Time,
        ring: RingId,
        members: &[Member],
        struck: &[(GroupId, Member)],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let lost: Vec<Member> = self.lost(members).collect();
        for member in lost {
            let suspicion = self.suspected.get(&member).copied();
            let cause = suspicion.map(|(_, cause)| cause);
            let suspected = suspicion.map(|(since, _)| now.since(since));
            events.push(Event::Excluded { member, ring, cause, suspected });
            let sign =
                suspected.unwrap_or_default() + cause.map_or(Duration::ZERO, Suspicion::silent);
            let sign =
                Time(now.0.saturating_sub(u64::try_from(sign.as_nanos()).unwrap_or(u64::MAX)));
            let groups = struck.iter().filter(|(_, primary)| *primary == member);
            self.struck.extend(groups.map(|(group, _)| (*group, sign)));
        }
        for member in members {
            let before = self.lives.insert(member.node, member.incarnation);
            if let Some(before) = before.filter(|before| *before != member.incarnation) {
                events.push(Event::Restarted { member: *member, before, ring });
            }
        }
        self.ring = ring;
        self.members = members.to_vec();
        self.suspected.clear();
        events
    }

    /// A reply leaves.
    pub(crate) fn replied(&mut self, group: GroupId) {
        if self.struck.contains_key(&group) {
            self.resumed.insert(group);
        }
    }

    /// The groups that are answered for again, and how long they were not.
    pub(crate) fn next_resumed(&mut self, now: Time) -> Option<(GroupId, Duration)> {
        while let Some(group) = self.resumed.pop_first() {
            if let Some(since) = self.struck.remove(&group) {
                return Some((group, now.since(since)));
            }
        }
        None
    }

    /// A group is gone.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.struck.remove(&group);
        self.resumed.remove(&group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u32, life: u64) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(life) }
    }

    fn ring(sequence: u64) -> RingId {
        RingId { sequence, representative: NodeId(1) }
    }

    fn at(ms: u64) -> Time {
        Time(1_000_000_000 + ms * 1_000_000)
    }

    const GROUP: GroupId = GroupId(7);

    #[test]
    fn the_story_of_a_silent_host_has_its_times() {
        let mut faults = Faults::default();
        let three = [member(1, 1), member(2, 1), member(3, 1)];
        assert_eq!(faults.configuration(at(0), ring(1), &three, &[]), []);
        let silent = Duration::from_millis(50);
        let lost = ring::Event::TokenLost { ring: ring(1), silent, suspect: Some(three[0]) };
        let cause = Suspicion::Silence(silent);
        let suspected = Event::Suspected { member: three[0], ring: ring(1), cause };
        assert_eq!(faults.ring_says(at(100), &lost), Some(suspected));
        let again = ring::Event::Silent(three[0]);
        assert_eq!(faults.ring_says(at(110), &again), None, "it is suspected already");
        let stranger = ring::Event::Unreachable(member(9, 1));
        assert_eq!(faults.ring_says(at(110), &stranger), None);
        let struck = [(GROUP, three[0])];
        let events = faults.configuration(at(120), ring(2), &three[1..], &struck);
        let excluded = Event::Excluded {
            member: three[0],
            ring: ring(2),
            cause: Some(cause),
            suspected: Some(Duration::from_millis(20)),
        };
        assert_eq!(events, [excluded]);
        assert_eq!(faults.next_resumed(at(121)), None);
        faults.replied(GROUP);
        let outage = Duration::from_millis(75);
        let resumed = faults.next_resumed(at(125));
        assert_eq!(resumed, Some((GROUP, outage)), "from the last sign of life");
        faults.replied(GROUP);
        assert_eq!(faults.next_resumed(at(126)), None, "once");
    }

    #[test]
    fn of_a_group_that_is_gone_nothing_is_left() {
        let mut faults = Faults::default();
        let two = [member(1, 1), member(2, 1)];
        faults.configuration(at(0), ring(1), &two, &[]);
        faults.configuration(at(1), ring(2), &two[1..], &[(GROUP, two[0])]);
        faults.replied(GROUP);
        faults.forget(GROUP);
        assert!(faults.struck.is_empty() && faults.resumed.is_empty());
    }

    #[test]
    fn who_comes_back_in_another_life_has_restarted() {
        let mut faults = Faults::default();
        faults.configuration(at(0), ring(1), &[member(1, 1), member(2, 1)], &[]);
        let left = faults.configuration(at(1), ring(2), &[member(1, 1)], &[]);
        let (cause, suspected) = (None, None);
        assert_eq!(
            left,
            [Event::Excluded { member: member(2, 1), ring: ring(2), cause, suspected }]
        );
        let same = faults.configuration(at(2), ring(3), &[member(1, 1), member(2, 1)], &[]);
        assert_eq!(same, [], "it was only away");
        let events = faults.configuration(at(3), ring(4), &[member(1, 1), member(2, 5)], &[]);
        let restarted =
            Event::Restarted { member: member(2, 5), before: Incarnation(1), ring: ring(4) };
        assert!(events.contains(&restarted), "{events:?}");
    }
}
