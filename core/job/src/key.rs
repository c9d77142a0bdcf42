//! A start of a rank, by its numbers.

use serde::{Deserialize, Serialize};

/// A start of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// The start.
    pub start: u64,
}
