//! All members see the same views in the same order.
//!
//! Source: docs/protocol/group.md, "Groups and views" (each change makes a view numbered one
//! higher); `jgroup-arm.txt` (view synchrony). Views are compared within a component: what a member
//! that was cut off did with the tail of its old ring is undone by its next component.

use super::hashed::HashMap;

use wire::{GroupId, Member, RingId, ViewNumber};

use super::{Verdict, demand};

const PROPERTY: &str = "views agree";

/// A view's members in order of rank, and whether each has the state.
pub type Replicas = Vec<(Member, bool)>;

/// All views seen.
#[derive(Clone, Default)]
pub struct Views {
    seen: HashMap<(RingId, GroupId, ViewNumber), (Replicas, Member)>,
    last: HashMap<(Member, GroupId), (RingId, ViewNumber)>,
}

impl Views {
    /// A node installs a view of a group, in this component.
    pub fn installed(
        &mut self,
        by: Member,
        component: RingId,
        (group, view): (GroupId, ViewNumber),
        replicas: &Replicas,
    ) -> Verdict {
        let seen = self.seen.entry((component, group, view));
        let (first, who) = seen.or_insert_with(|| (replicas.clone(), by));
        demand(first == replicas, PROPERTY, || {
            format!("{view} of {group} in {component} is {replicas:?} at {by}, {first:?} at {who}")
        })?;
        if let Some((before, last)) = self.last.insert((by, group), (component, view)) {
            let follows = before != component || view.0 == last.0 + 1;
            demand(follows, PROPERTY, || {
                format!("{by} installs {view} of {group} after {last} in {component}")
            })?;
        }
        let mut nodes: Vec<_> = replicas.iter().map(|(member, _)| member.node).collect();
        nodes.sort_unstable();
        let single = nodes.windows(2).all(|pair| pair[0] < pair[1]);
        demand(single, PROPERTY, || format!("{view} of {group} names a node twice: {replicas:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    const RING: RingId = RingId { sequence: 4, representative: NodeId(1) };

    #[test]
    fn a_view_that_differs_or_is_skipped_is_seen() {
        let mut views = Views::default();
        let mut install = |by, view, replicas: &[(u32, bool)]| {
            let replicas = replicas.iter().map(|&(node, synced)| (member(node), synced)).collect();
            views.installed(member(by), RING, (GroupId(1), ViewNumber(view)), &replicas)
        };
        install(1, 3, &[(1, true)]).unwrap();
        install(2, 3, &[(1, true)]).unwrap();
        install(1, 4, &[(1, true), (2, false)]).unwrap();
        assert!(install(2, 4, &[(1, true), (2, true)]).is_err());
        assert!(install(1, 6, &[(1, true)]).is_err());
        assert!(install(3, 9, &[(1, true), (1, false)]).is_err());
    }
}
