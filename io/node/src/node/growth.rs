//! Nodes come and go.

use config::NodeAddress;
use wire::NodeId;
use wire::roster::Motion;

use super::Node;
use crate::error::GrowthRefused;

impl Node {
    /// Has another node come: it counts once it is there, and a majority of the nodes before and
    /// after has kept that. It has begun when this returns; [`status`](Node::status) tells how far it
    /// is. The other node starts with an empty data_dir, and with the addresses of those that count.
    ///
    /// # Errors
    /// Its number or address is taken, another change is under way, or the cluster has no quorum
    /// here: the text says what to do.
    pub fn admit(&self, node: NodeAddress) -> Result<(), GrowthRefused> {
        self.control.admit(node)
    }

    /// Has a node go for good: nobody counts on it any more, and its number is never used again. It
    /// has begun when this returns; the node ends by itself then. One that has the last state of a
    /// group stays.
    ///
    /// # Errors
    /// It is no node of the cluster or its last one, another change is under way, or the cluster has
    /// no quorum here: the text says what to do.
    pub fn retire(&self, node: NodeId) -> Result<(), GrowthRefused> {
        self.control.move_node(Motion::Retire(node))
    }
}
