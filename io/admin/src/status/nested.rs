//! Calls between groups, as the node that orders them sees them.

use serde::{Deserialize, Serialize};
use wire::histogram::Times;

/// What a node's replicas had ordered of calls between groups, since its start (`docs/protocol/nested.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedStatus {
    /// Send delays of the calls that this node has sent: from when one was handed to the ring until it left.
    pub call_delays: Times,
    /// Send delays of the ends that this node has sent.
    pub end_delays: Times,
    /// How long calls were served here: from when one was delivered until its end was handed to the ring.
    pub services: Times,
}

impl From<engine::NestedStatus> for NestedStatus {
    fn from(status: engine::NestedStatus) -> Self {
        let engine::NestedStatus { call_delays, end_delays, services } = status;
        NestedStatus { call_delays, end_delays, services }
    }
}
