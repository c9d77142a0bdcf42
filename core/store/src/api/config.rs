//! A store's knobs.

use wire::Duration;
use wire::limits::{MAX_BATCH, MAX_RECORD, MAX_SEGMENT, MAX_SEGMENTS};

use crate::bug::Planted;
use crate::format::{BATCH_HEAD, BLOCK, Owner, RECORD_HEAD, padded};

/// A store's knobs.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The owner of the store. A store of another owner is refused.
    pub owner: Owner,
    /// Names the store, if it is made now: a random number.
    pub seed: u64,
    /// Bytes of a segment, in whole blocks.
    pub segment: u64,
    /// Bytes of the records of one batch, heads included. A record that fits into none is refused.
    pub batch: usize,
    /// How long a record may wait for others before it is written, if the disk is idle. Zero writes
    /// at once; those that come while the disk is busy share the next write in any case.
    pub delay: Duration,
    /// After so long without a record the log is told that all of it is on the disk: what rots
    /// afterwards, even of the last batch, is known to be missing.
    pub mark_after: Duration,
    /// Bytes kept free for snapshots and manifests on a disk that is full. As much as the largest
    /// state, and at least a segment.
    pub reserve: u64,
    /// With more segments than this, snapshots of the strands that hold the oldest are asked for.
    pub keep: usize,
    /// How long a disk that is full is left alone, at least [`Config::SHORTEST_RETRY`].
    pub retry: Duration,
    /// A mistake to be made.
    pub planted: Planted,
}

impl Config {
    /// Asked more often a full disk would be busy with nothing else.
    pub const SHORTEST_RETRY: Duration = Duration::from_millis(1);

    /// The knobs' defaults: segments and a reserve of 16 and 64 MiB.
    pub fn new(owner: Owner, seed: u64) -> Config {
        Config {
            owner,
            seed,
            segment: 16 << 20,
            batch: MAX_BATCH,
            delay: Duration::ZERO,
            mark_after: Duration::from_secs(1),
            reserve: 64 << 20,
            keep: 8,
            retry: Duration::from_secs(1),
            planted: Planted::default(),
        }
    }

    /// The longest record that a batch holds.
    pub fn longest_record(&self) -> usize {
        MAX_RECORD.min(self.batch.saturating_sub(RECORD_HEAD))
    }

    /// The most bytes that so many bytes of records take in a segment. One of any two batches in a
    /// row is more than half full, except the last two. Each batch has a head, and blocks that are
    /// not full.
    pub(crate) fn space(&self, bytes: usize) -> usize {
        let batches = 2 * bytes / self.batch + 2;
        bytes + batches * (BATCH_HEAD + BLOCK)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(RECORD_HEAD + 1..=MAX_BATCH).contains(&self.batch) {
            return Err(ConfigError::Batch);
        }
        let smallest = padded(self.space(self.batch)) as u64;
        let whole = self.segment == padded(self.segment as usize) as u64;
        if !whole || !(smallest..=MAX_SEGMENT).contains(&self.segment) {
            return Err(ConfigError::Segment { smallest });
        }
        if self.reserve < self.segment {
            return Err(ConfigError::Reserve);
        }
        if !(1..MAX_SEGMENTS).contains(&self.keep) {
            return Err(ConfigError::Keep);
        }
        if self.retry < Config::SHORTEST_RETRY {
            return Err(ConfigError::Retry);
        }
        Ok(())
    }
}

/// Why knobs are not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// See [`Config::batch`].
    #[error("batch: give at most {MAX_BATCH} bytes, and at least room for a record")]
    Batch,
    /// See [`Config::segment`].
    #[error(
        "segment: give whole blocks of 4,096 bytes, from {smallest} (the largest record, on its own) to {MAX_SEGMENT}"
    )]
    Segment {
        /// The room that the largest record may take.
        smallest: u64,
    },
    /// See [`Config::reserve`].
    #[error("reserve: give at least the bytes of a segment, and better those of the largest state")]
    Reserve,
    /// See [`Config::keep`].
    #[error("keep: give at least 1 segment, and fewer than {MAX_SEGMENTS}")]
    Keep,
    /// See [`Config::retry`].
    #[error("retry: give at least a millisecond")]
    Retry,
}
