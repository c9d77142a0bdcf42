//! The cluster's nodes, as they come and go.

use config::NodeAddress;
use serde::{Deserialize, Serialize};
use wire::NodeId;

/// The cluster's nodes, as one of them knows them (`docs/protocol/growth.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodesStatus {
    /// Those that count, in order of id.
    pub counted: Vec<NodeId>,
    /// Those that were retired, the last ones at the end.
    pub retired: Vec<NodeId>,
    /// The node that comes or goes just now.
    pub moving: Option<MovingStatus>,
}

/// A node that comes or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovingStatus {
    /// The node.
    pub node: NodeId,
    /// It comes; else it goes.
    pub comes: bool,
    /// The nodes that have the change on their disks.
    pub kept: Vec<NodeId>,
}

impl From<engine::GrowthStatus> for NodesStatus {
    fn from(status: engine::GrowthStatus) -> Self {
        let moving = status.moving.map(|(node, comes, kept)| MovingStatus { node, comes, kept });
        let counted = status.seats.into_iter().map(|seat| seat.node).collect();
        NodesStatus { counted, retired: status.retired, moving }
    }
}

/// The answer to [`Request::Welcome`](crate::Request::Welcome): what a node needs that is to come.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WelcomeAnswer {
    /// The cluster's name.
    pub cluster: String,
    /// The nodes that count, and where they are reached.
    pub nodes: Vec<NodeAddress>,
    /// The text of the key file; `None`: the ring is not sealed.
    pub cluster_key: Option<String>,
}

impl std::fmt::Debug for WelcomeAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the key.
        f.debug_struct("WelcomeAnswer").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
