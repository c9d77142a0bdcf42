//! Cold passive groups: when they take checkpoints, and the status of their logs.

use wire::limits::{MAX_LOG, MAX_LOG_BYTES};
use wire::{Duration, Time};

/// When the primary of a cold passive group takes a checkpoint: as soon as the requests after the
/// last checkpoint reach one of these limits.
///
/// A checkpoint sends the whole state over the ring. The service executes no call while it takes
/// the snapshot: a state of `S` bytes, serialized at `R` bytes a second, delays calls by about `S /
/// R`.
///
/// After a failure, the new primary starts the service, restores the checkpoint and executes the
/// log before its first reply. The log has at most `requests` requests, and those that arrived
/// during the last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// Age of the first of them.
    pub interval: Duration,
}

impl Checkpoints {
    /// Whether the limits are valid: at least one request, one byte and one millisecond, and at
    /// most half of a log's limits. So a checkpoint is complete before a full log refuses calls.
    pub fn is_possible(&self) -> bool {
        (1..=MAX_LOG as u64 / 2).contains(&self.requests)
            && (1..=MAX_LOG_BYTES / 2).contains(&self.bytes)
            && self.interval >= Duration::from_millis(1)
    }
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints { requests: 1_000, bytes: 16 << 20, interval: Duration::from_secs(10) }
    }
}

/// The checkpoint and the log of this node's replica of a cold passive group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Requests after the last checkpoint.
    pub requests: u64,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// Bytes of the last checkpoint, with its sessions.
    pub checkpoint_bytes: usize,
    /// When the last checkpoint arrived, by this node's clock. `None`: none arrived since this
    /// replica joined.
    pub checkpointed: Option<Time>,
    /// The service runs here.
    pub runs: bool,
}
