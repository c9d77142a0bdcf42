//! The owner of a store.

use core::fmt;

use wire::{ClusterId, NodeId};

/// The owner of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster: ClusterId,
    /// The node.
    pub node: NodeId,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of cluster {}", self.node, self.cluster)
    }
}
