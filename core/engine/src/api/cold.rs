//! What cold passive groups are told and tell.

use wire::limits::{MAX_LOG, MAX_LOG_BYTES};
use wire::{Duration, Time};

/// When the primary of a cold passive group takes a checkpoint: at whichever comes first, of what is in none yet.
///
/// A checkpoint costs each replica the state's bytes on the wire, and the primary's calls the time of a snapshot, in which none is
/// executed; so a state of `S` bytes that is written at a rate of `R` bytes a second holds calls up for about `S / R` each time. After a
/// failure the service's start, its restoration, and at most `requests` executions (and those of the calls that come while a
/// checkpoint is under way) lie between the new primary's view and its first reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// So many requests.
    pub requests: u64,
    /// So many bytes of their arguments.
    pub bytes: usize,
    /// The first of them is so old.
    pub interval: Duration,
}

impl Checkpoints {
    /// What can be: at least one request, byte and millisecond, and no more than half of what a log may have, so that a
    /// checkpoint is done before calls are refused.
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

/// What this node's replica of a cold passive group keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Requests that are in no checkpoint.
    pub requests: u64,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// Bytes of the last checkpoint, with its sessions.
    pub checkpoint_bytes: usize,
    /// When that came, by this node's clock. `None`: there was none since this replica joined.
    pub checkpointed: Option<Time>,
    /// Its service runs here.
    pub runs: bool,
}
