//! A node's copy of the registry.

use ::registry::{Binding, Epoch};
use serde::{Deserialize, Serialize};
use wire::NodeId;

/// A node's copy of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryStatus {
    /// The node that was asked.
    pub node: NodeId,
    /// The node that ends what is dead.
    pub leads: Option<NodeId>,
    /// The node is with a majority, and has all that was answered there when it was asked. Else
    /// what it tells may be old.
    pub current: bool,
    /// The epoch of what is told.
    pub epoch: Epoch,
    /// The bindings, in order of name and address; `None` if nothing has changed since the epoch
    /// that was asked about.
    pub bindings: Option<Vec<Binding>>,
}
