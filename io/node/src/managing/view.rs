//! The data plane's view for the manager.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::StateNote;
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
    /// Things that replicas of deployed groups cannot do with the states, by group.
    pub notes: BTreeMap<String, Vec<StateNote>>,
    /// The rules in force.
    pub level: u8,
    /// The cluster state, if this node's replica has it.
    pub cluster_state: Option<Arc<ClusterState>>,
}
