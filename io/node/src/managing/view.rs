//! The data plane's view for the manager.

use std::sync::Arc;

use manager::Picture;
use manager::cluster_state::ClusterState;
use wire::NodeId;

/// The view at one moment.
pub(crate) struct View {
    /// How often something had changed.
    pub changes: u64,
    pub picture: Picture,
    /// Nodes that were retired.
    pub retired: Vec<NodeId>,
    /// The cluster state, if this node's replica has it.
    pub cluster_state: Option<Arc<ClusterState>>,
}
