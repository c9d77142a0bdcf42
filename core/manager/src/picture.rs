//! The cluster as a manager's node sees it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Ordering;

use wire::ordered::Usage;
use wire::{GroupId, NodeId, RingId, Time, ViewNumber};

/// The cluster as one node sees it at one moment: its component, the table of groups, and what
/// hosts told of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The component's ring: what was ordered on another need not have come.
    pub ring: RingId,
    /// This node is the one that manages: groups act here, and no member of the component has a
    /// smaller id.
    pub leads: bool,
    /// The component's nodes, in order of id, with what each has told last in this life, if it has.
    pub nodes: Vec<(NodeId, Option<Usage>)>,
    /// The groups that have a primary, in order of id.
    pub groups: Vec<Shape>,
    /// Hosts that refuse calls less critical than this, until then if nothing else is said.
    pub sheds: BTreeMap<NodeId, (u8, Time)>,
    /// Groups that nobody here is known to have the state of, and of which this node's disk has
    /// one, in order of id: it hosts them, wherever their replicas are to be.
    pub brings: Vec<GroupId>,
}

/// A group's place in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which group.
    pub id: GroupId,
    /// Its view.
    pub view: ViewNumber,
    /// Where its primary is.
    pub primary: NodeId,
    /// Where its other replicas are that have the state, in order of rank.
    pub backups: Vec<NodeId>,
}

impl Picture {
    /// The load that this node has reported of its host.
    pub fn usage(&self, node: NodeId) -> Option<&Usage> {
        let place = self.nodes.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        self.nodes[place].1.as_ref()
    }

    /// Calls less critical than this are refused at a node.
    pub fn level(&self, now: Time, node: NodeId) -> u8 {
        self.sheds.get(&node).filter(|(_, until)| now < *until).map_or(0, |(level, _)| *level)
    }

    /// A group's place in the table, if it has a primary.
    pub fn group(&self, id: GroupId) -> Option<&Shape> {
        let place = self.groups.binary_search_by_key(&id, |shape| shape.id).ok()?;
        Some(&self.groups[place])
    }

    /// Hosts that tell something else than in an earlier picture, or are in one of the two only;
    /// and groups that are, or that had or have a replica on such a host.
    pub(crate) fn differs_from(&self, earlier: &Picture) -> (BTreeSet<NodeId>, BTreeSet<GroupId>) {
        let mut hosts = BTreeSet::new();
        unlike(
            &earlier.nodes,
            &self.nodes,
            |(node, _)| *node,
            |it| {
                hosts.insert(it.0);
            },
        );
        let mut groups = BTreeSet::new();
        unlike(
            &earlier.groups,
            &self.groups,
            |shape| shape.id,
            |it| {
                groups.insert(it.id);
            },
        );
        let touches = |shape: &&Shape| {
            hosts.contains(&shape.primary) || shape.backups.iter().any(|node| hosts.contains(node))
        };
        if !hosts.is_empty() {
            groups.extend(self.groups.iter().filter(touches).map(|shape| shape.id));
        }
        (hosts, groups)
    }
}

/// Tells of what is in one of two lists alone, or not alike in both. They are in order of the key,
/// and none is in a list twice.
fn unlike<'a, T: PartialEq, K: Ord>(
    earlier: &'a [T],
    later: &'a [T],
    key: impl Fn(&T) -> K,
    mut tell: impl FnMut(&'a T),
) {
    let (mut old, mut new) = (earlier.iter().peekable(), later.iter().peekable());
    while let (Some(was), Some(is)) = (old.peek(), new.peek()) {
        match key(was).cmp(&key(is)) {
            Ordering::Less => old.next().into_iter().for_each(&mut tell),
            Ordering::Greater => new.next().into_iter().for_each(&mut tell),
            Ordering::Equal => {
                let is = new.next().filter(|is| old.next() != Some(*is));
                is.into_iter().for_each(&mut tell);
            }
        }
    }
    old.chain(new).for_each(tell);
}
