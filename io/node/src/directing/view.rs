//! The data plane's view of the cluster for the book of jobs.

use job::Sight;
use wire::NodeId;

/// The data plane's view for the book of jobs, where there is a majority and this node's replica has
/// the state.
pub(crate) struct View {
    pub leads: Option<NodeId>,
    pub sight: Sight,
}
