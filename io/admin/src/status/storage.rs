//! The status of a node's storage.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A node's storage. Counters begin with the node's life.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageStatus {
    /// The folder of the storage.
    pub folder: PathBuf,
    /// Records of earlier lives that the log had at the start.
    pub recovered: u64,
    /// Records written.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Writes to the log, each with one sync.
    pub syncs: u64,
    /// Duration of the last write and sync, in microseconds.
    pub last_sync_us: u64,
    /// The system's error text, if the disk is full.
    pub full: Option<String>,
}
