//! Benchmarks: what is asked, and what comes of it.

use alloc::vec::Vec;

use wire::bench::{Pacing, Plan, PlanError, Report, Until};
use wire::ring::Level;
use wire::{Duration, Member, NodeId};

/// What a benchmark is to measure. The values' bounds are those of [`Plan::check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchRequest {
    /// Who sends, in order of id.
    pub senders: Vec<NodeId>,
    /// Bytes of each ordered message.
    pub size: u32,
    /// Messages of each sender, at most.
    pub count: u64,
    /// The first of these are not measured.
    pub warm: u64,
    /// No message is begun after this time.
    pub span: Duration,
    /// When each message is delivered.
    pub level: Level,
    /// When the next message is sent.
    pub pacing: Pacing,
    /// What is waited for.
    pub until: Until,
}

/// What a benchmark gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchResult {
    /// What was done.
    pub plan: Plan,
    /// What each sender says that it sent, in the plan's order.
    pub sent: Vec<u64>,
    /// What every member saw, in order of member.
    pub reports: Vec<(Member, Report)>,
}

/// How far a benchmark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchProgress {
    /// Messages delivered at this node.
    pub delivered: u64,
    /// Messages at the most: the time may be over before.
    pub expected: u64,
}

/// Why there is no benchmark, or none that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// A value is out of its bounds.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The node is in no configuration that acts.
    #[error(
        "the cluster has no quorum here, or is just forming: wait until `steadfast status` says that \
         it is quorate"
    )]
    NoQuorum,
    /// There is one already.
    #[error("a benchmark that {by} was asked for is under way: wait for its end")]
    Running {
        /// Who was asked for it.
        by: NodeId,
    },
    /// A sender is not there.
    #[error("{0} is not in the ring: name members as senders, `steadfast status` lists them")]
    NotAMember(NodeId),
    /// Another configuration was installed meanwhile.
    #[error(
        "the configuration changed, so what was measured is worth nothing: a node came, went or was \
         held up; see `steadfast status`, and try again when all are there"
    )]
    Interrupted,
    /// Whoever asked for it ended it.
    #[error("the benchmark was stopped")]
    Stopped,
}
