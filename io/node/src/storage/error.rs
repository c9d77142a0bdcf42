//! The errors of a store on a folder.

use std::io;
use std::path::PathBuf;

use store::{AppendError, Broken, ConfigError, OpenError, RecordId, SnapshotError};

/// An error of a store on a folder, and its remedy.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The folder cannot be used.
    #[error("{}: {source}; the node must be able to create and write files there", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk has no hand.
    #[error(
        "the system gives the store no thread ({0}): raise the limit of processes, or stop some"
    )]
    Thread(io::Error),
    /// Two processes want it.
    #[error("{} is in use by another process: give each node a folder of its own", .0.display())]
    Taken(PathBuf),
    /// The knobs are not possible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot continue from the folder's contents.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The record is not taken.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The snapshot is not taken.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// Nobody can wait for a record that was never appended.
    #[error("{0} was never appended to this store, so it never comes to the disk")]
    Unknown(RecordId),
    /// The disk failed.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The disk is full: what waits will be there when there is room.
    #[error("the disk is full ({0}): free some room")]
    Full(String),
}
