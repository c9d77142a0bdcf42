//! Whose a store is.

use core::fmt;

use wire::{ClusterId, NodeId};

/// Whose store it is.
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
