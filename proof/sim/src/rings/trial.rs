//! The rings are put to a trial: all is well, and one bound of docs/protocol/ring.md is tried.

mod in_rings;

use wire::{Duration, Time};

use crate::trial::Trial;

/// The stages of a trial.
pub(super) enum Stage {
    /// Somebody has something to say.
    Say,
    /// The fault strikes.
    Strike,
    /// The ways change their mind, so many times more.
    Turn(u64),
    /// A node starts.
    Boot(usize),
    /// It is judged.
    Judge,
}

/// The trial that is under way.
pub(super) struct Course {
    trial: Trial,
    /// Since when its fault is there.
    since: Option<Time>,
    victim: usize,
    /// Those who have all that they can send.
    greedy: usize,
    said: usize,
    over: bool,
}

/// A network settles within this, or what it does then it does for ever.
const SETTLING: Duration = Duration::from_secs(4);

/// And is watched for so long more.
const SETTLED: Duration = Duration::from_secs(2);

/// How often a link flaps in a trial.
const FLAPS: u64 = 40;

/// Bytes of a message that leaves room for no other in its datagram.
const FULL: usize = 1_200;
