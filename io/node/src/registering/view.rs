//! The data plane's view of the cluster for the registry.

use registry::Sight;
use wire::NodeId;

/// The data plane's view for the registry, where there is a majority and this node's replica has
/// the state.
pub(crate) struct View {
    pub leads: Option<NodeId>,
    pub sight: Sight,
}
