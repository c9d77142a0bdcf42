//! Benchmarks of the ring: request, progress, result, errors.

use alloc::vec::Vec;

use wire::bench::{Pacing, Plan, PlanError, Report, Until};
use wire::ring::Level;
use wire::{Duration, Member, NodeId};

/// A benchmark to run. [`Plan::check`] has the limits of the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchRequest {
    /// The senders, in order of id.
    pub senders: Vec<NodeId>,
    /// Bytes of each ordered message.
    pub size: u32,
    /// The most messages of each sender.
    pub count: u64,
    /// Messages that each sender sends first, unmeasured.
    pub warm: u64,
    /// After this time, a sender creates no further message.
    pub span: Duration,
    /// When each message is delivered.
    pub level: Level,
    /// When a sender sends its next message.
    pub pacing: Pacing,
    /// The event that completes a message.
    pub until: Until,
}

/// The result of a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchResult {
    /// The plan that was carried out.
    pub plan: Plan,
    /// Messages that each sender reports as sent, in the plan's order of senders.
    pub sent: Vec<u64>,
    /// Every member's report, in order of member.
    pub reports: Vec<(Member, Report)>,
}

/// The progress of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchProgress {
    /// Messages delivered at this node.
    pub delivered: u64,
    /// The most messages; there are fewer if the time ends first.
    pub expected: u64,
}

/// Why a benchmark has no valid result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// A value is out of its bounds.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The node is in no quorate configuration.
    #[error(
        "the cluster has no quorum here, or is just forming: wait until `steadfast status` says that \
         it is quorate"
    )]
    NoQuorum,
    /// There is one already.
    #[error("a benchmark started at {by} is under way: wait for its end")]
    Running {
        /// The node that was asked for it.
        by: NodeId,
    },
    /// A sender is not in the ring.
    #[error("{0} is not in the ring: name members as senders, `steadfast status` lists them")]
    NotAMember(NodeId),
    /// Another configuration was installed meanwhile.
    #[error(
        "the configuration changed, so this measure is void: a node joined, left or stalled; see \
         `steadfast status`, and try again when all nodes are in the ring"
    )]
    Interrupted,
    /// Its client stopped it, or disconnected.
    #[error("the benchmark was stopped")]
    Stopped,
}
