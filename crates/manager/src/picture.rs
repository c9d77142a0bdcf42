//! What a node that manages sees.

use alloc::vec::Vec;

use wire::ordered::Usage;
use wire::{GroupId, NodeId, RingId, ViewNumber};

/// The cluster as one node sees it at one moment: its component, the table of groups, and what hosts told of themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The component's ring: what was ordered on another need not have come.
    pub ring: RingId,
    /// This node is the one that manages: groups act here, and no member of the component has a smaller id.
    pub leads: bool,
    /// The component's nodes, in order of id, with what each has told last in this life, if it has.
    pub nodes: Vec<(NodeId, Option<Usage>)>,
    /// The groups that have a primary, in order of id.
    pub groups: Vec<Shape>,
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
    /// What this node has told of its host.
    pub fn usage(&self, node: NodeId) -> Option<&Usage> {
        let place = self.nodes.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        self.nodes[place].1.as_ref()
    }
}
