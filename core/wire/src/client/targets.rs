//! Which nodes a client is to turn to.

use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::codec::at_most;
use crate::limits::MAX_REPLICAS;
use crate::ordered::Style;
use crate::{Malformed, NodeId, ViewNumber};

/// The ranked list of nodes to turn to, first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// The view that they are taken from: a larger one replaces a smaller one.
    pub view: ViewNumber,
    /// How the group is replicated: what a client may do with more than the first of them.
    pub style: Style,
    /// The best first: of most styles the primary's. Empty: no replica has the state now.
    pub nodes: Vec<Target>,
}

impl Targets {
    pub(super) fn checked(self) -> Result<Targets, Malformed> {
        at_most(self.nodes.len(), MAX_REPLICAS, "targets")?;
        Ok(self)
    }
}

/// One node to turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Which node.
    pub node: NodeId,
    /// Where its clients connect.
    pub address: SocketAddr,
}
