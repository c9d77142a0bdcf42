//! The director's view of the cluster.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::{Member, NodeId};

/// The cluster at one moment, where a majority is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// The lives of nodes that are in the component.
    pub members: Vec<Member>,
    /// Nodes that are to be emptied.
    pub drained: BTreeSet<NodeId>,
    /// How much the hosts have to do, in twentieths of what they can.
    pub loads: BTreeMap<NodeId, u32>,
}

impl Sight {
    /// This life of a node is there, and may have ranks.
    pub(crate) fn offers(&self, node: Member) -> bool {
        self.members.contains(&node) && !self.drained.contains(&node.node)
    }
}
