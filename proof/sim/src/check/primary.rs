//! A view has one primary, the first synced replica, and only a replica answers.
//!
//! Source: docs/protocol/group.md, "Groups and views" and "Requests" (the primary orders; a replica
//! that a client asks for a call that was ordered already answers too); `stheno.txt` section IV.

use super::hashed::{HashMap, HashSet};

use wire::{GroupId, Member, RingId, ViewNumber};

use super::views::Replicas;
use super::{Verdict, demand};

const PROPERTY: &str = "one primary per view";

/// The reported primaries.
#[derive(Clone, Default)]
pub struct Primaries {
    seen: HashMap<(RingId, GroupId, ViewNumber), Option<Member>>,
    replicas: HashSet<(GroupId, Member)>,
}

impl Primaries {
    /// A node installs a view with this primary.
    pub fn installed(
        &mut self,
        by: Member,
        component: RingId,
        (group, view): (GroupId, ViewNumber),
        (replicas, primary): (&Replicas, Option<Member>),
    ) -> Verdict {
        let first = replicas.iter().find(|(_, synced)| *synced).map(|(member, _)| *member);
        demand(primary == first, PROPERTY, || {
            format!("{by} takes {primary:?} for the primary of {view} of {group}: {replicas:?}")
        })?;
        let seen = *self.seen.entry((component, group, view)).or_insert(primary);
        demand(seen == primary, PROPERTY, || {
            format!("{view} of {group} has two primaries: {seen:?} and {primary:?}")
        })?;
        self.replicas.extend(replicas.iter().map(|(member, _)| (group, *member)));
        Ok(())
    }

    /// A node answers a call with what its replica made of it.
    pub fn replied(&self, by: Member, group: GroupId) -> Verdict {
        demand(self.replicas.contains(&(group, by)), PROPERTY, || {
            format!("{by} answers for {group} and was never its replica")
        })
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
    fn a_second_primary_and_an_unsynced_one_are_seen() {
        let ring = RingId::default();
        let view = (GroupId(1), ViewNumber(2));
        let replicas = vec![(member(1), false), (member(2), true), (member(3), true)];
        let mut primaries = Primaries::default();
        primaries.installed(member(9), ring, view, (&replicas, Some(member(2)))).unwrap();
        let wrong = (&replicas, Some(member(3)));
        assert!(primaries.installed(member(8), ring, view, wrong).is_err());
        let other = vec![(member(3), true)];
        let second = (&other, Some(member(3)));
        assert!(primaries.installed(member(8), ring, view, second).is_err());
        assert!(primaries.replied(member(2), GroupId(1)).is_ok());
        assert!(primaries.replied(member(4), GroupId(1)).is_err());
    }
}
