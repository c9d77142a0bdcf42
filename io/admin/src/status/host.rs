//! The load of hosts, as their nodes last reported it, and the manager.

use serde::{Deserialize, Serialize};
use wire::{Incarnation, NodeId, Share};

/// The load of a node's host. Shares are in millionths of a processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The node.
    pub node: NodeId,
    /// The node's incarnation.
    pub incarnation: Incarnation,
    /// The used part of the capacity, by all processes.
    pub used: Share,
    /// The host's processors, or the node's quota of them.
    pub capacity: Share,
    /// The use is above the level whose crossing is reported at once.
    pub above: bool,
    /// Milliseconds since the report.
    pub age_ms: u64,
    /// The use of the node's replicas, without those of negligible use, in order of group name.
    pub replicas: Vec<ReplicaUse>,
    /// The node refuses calls of a lower priority than this; 0: it refuses none.
    #[serde(default)]
    pub sheds: u8,
    /// Calls that the node has refused for their priority since its start.
    #[serde(default)]
    pub refused: u64,
    /// The priorities of the calls that the node received in the last ten seconds.
    #[serde(default)]
    pub callers: Vec<u8>,
}

/// The use of one replica.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReplicaUse {
    /// The group's name.
    pub group: String,
    /// The used share of a processor.
    pub used: Share,
}

/// The manager, which decides about ranks and relief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerStatus {
    /// The node that manages; `None` without a quorum.
    pub leads: Option<NodeId>,
    /// The test that a host must pass: `rate-monotonic`, `hyperbolic` or `earliest-deadline`.
    pub policy: String,
}
