//! A node's storage, as people and tools read it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a node keeps on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageStatus {
    /// Where.
    pub folder: PathBuf,
    /// Records that earlier lives had left in the log.
    pub recovered: u64,
    /// Records of this life, and their bytes.
    pub records: u64,
    /// See `records`.
    pub bytes: u64,
    /// Snapshots of this life.
    pub snapshots: u64,
    /// Writes to the log, each with one sync.
    pub syncs: u64,
    /// Microseconds that the last of them took.
    pub last_sync_us: u64,
    /// The disk is full, says the system.
    pub full: Option<String>,
}
