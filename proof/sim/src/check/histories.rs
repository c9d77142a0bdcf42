//! Replicas of a group have one history: of two, one is a beginning of the other.
//!
//! Source: docs/protocol/group.md, "Requests" (every replica executes in the same order) and "State
//! transfer"; `ft-corba-totem.txt` section 2.1 (replica consistency). Compared at every execution,
//! within the component in which the last had its place of all that led to it, requests and ends of
//! calls between groups; and as whole digests at the end.

use super::hashed::HashMap;

use wire::{GroupId, Member, RingId};

use super::{Verdict, demand};

const PROPERTY: &str = "replicas agree";

/// The hash of the history at each place, by component.
#[derive(Clone, Default)]
pub struct Histories {
    seen: HashMap<(RingId, GroupId, u64), (u64, Member)>,
}

impl Histories {
    /// A replica's history, in this component, has this hash at this place.
    pub fn reached(
        &mut self,
        by: Member,
        component: RingId,
        (group, place): (GroupId, u64),
        hash: u64,
    ) -> Verdict {
        let (first, who) = *self.seen.entry((component, group, place)).or_insert((hash, by));
        demand(first == hash, PROPERTY, || {
            format!("{group} has two histories of length {place} in {component}: at {by} and {who}")
        })
    }

    /// The engine counts the history as the replica does.
    pub fn counted(by: Member, group: GroupId, told: u64, place: u64) -> Verdict {
        demand(told == place, PROPERTY, || {
            format!("{by} executes the {place}th request of {group} and calls it the {told}th")
        })
    }

    /// At the end: all replicas that have the group's state have the same.
    pub fn finish(group: GroupId, ends: &[(Member, usize, u64)]) -> Verdict {
        let agree = ends.windows(2).all(|pair| (pair[0].1, pair[0].2) == (pair[1].1, pair[1].2));
        demand(agree, PROPERTY, || format!("the replicas of {group} end with {ends:x?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    #[test]
    fn a_fork_is_seen_at_once_and_at_the_end() {
        let ring = |sequence| RingId { sequence, representative: NodeId(1) };
        let mut histories = Histories::default();
        histories.reached(member(1), ring(1), (GroupId(1), 5), 77).unwrap();
        histories.reached(member(2), ring(2), (GroupId(1), 5), 78).unwrap();
        assert!(histories.reached(member(2), ring(1), (GroupId(1), 5), 78).is_err());
        assert!(Histories::counted(member(1), GroupId(1), 4, 5).is_err());
        let ends = [(member(1), 5, 77), (member(2), 5, 78)];
        assert!(Histories::finish(GroupId(1), &ends).is_err());
        assert!(Histories::finish(GroupId(1), &ends[..1]).is_ok());
    }
}
