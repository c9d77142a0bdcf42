//! What hosts have to do, as their nodes have told.

use serde::{Deserialize, Serialize};
use wire::{Incarnation, NodeId, Share};

/// A node's host. Shares are in millionths of a processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The node.
    pub node: NodeId,
    /// Which of its lives.
    pub incarnation: Incarnation,
    /// What is used of the capacity, by whomever.
    pub used: Share,
    /// The host's processors, or the node's quota of them.
    pub capacity: Share,
    /// The use is above the level at which it is told at once.
    pub above: bool,
    /// Milliseconds since this was told.
    pub age_ms: u64,
    /// What the node's replicas use, those that use anything worth telling, in order of their groups' names.
    pub replicas: Vec<ReplicaUse>,
    /// Calls less critical than this are refused there; 0: none are.
    #[serde(default)]
    pub sheds: u8,
    /// Calls that were refused there for that since the node's start.
    #[serde(default)]
    pub refused: u64,
    /// How critical the calls are that came there in the last ten seconds.
    #[serde(default)]
    pub callers: Vec<u8>,
}

/// What a replica uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReplicaUse {
    /// The group's name.
    pub group: String,
    /// Of a processor.
    pub used: Share,
}

/// Who decides about ranks and relief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerStatus {
    /// The node that manages; `None` without a quorum.
    pub leads: Option<NodeId>,
    /// The test that a host must pass: `rate-monotonic`, `hyperbolic` or `earliest-deadline`.
    pub policy: String,
}
