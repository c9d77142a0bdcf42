//! The data plane's view for the manager.

use std::sync::Arc;

use manager::Picture;
use manager::cluster_state::ClusterState;

/// The view at one moment.
pub(crate) struct View {
    /// How often something had changed.
    pub changes: u64,
    pub picture: Picture,
    /// The cluster state, if this node's replica has it.
    pub cluster_state: Option<Arc<ClusterState>>,
}
