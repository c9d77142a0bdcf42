//! The inputs and outputs of a [`Store`](crate::Store).

mod config;
mod disk;
mod errors;
mod record;

use alloc::string::String;

pub use config::{Config, ConfigError};
pub use disk::{Done, Failure, FailureKind, Lane, Op};
pub use errors::{AppendError, OpenError, SnapshotError};
pub use record::{Record, RecordId, Snapshot, Strand};

/// A request or report of a store, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The disk is to do this, and [`Store::handle_done`](crate::Store::handle_done) is to be told.
    Disk(Lane, Op),
    /// While it opens: the state of a strand. Comes before the strand's records.
    Restored(Snapshot),
    /// While it opens: a record that its strand's snapshot does not cover. All come in their order.
    Replayed(RecordId, Record),
    /// It is open: what was restored and replayed is on the disk, and records may be appended.
    Opened(Opened),
    /// It cannot be opened, and what was restored and replayed is worth nothing. The last output.
    NotOpened(OpenError),
    /// All records up to this one are on the disk.
    Persisted(RecordId),
    /// This strand's snapshot is on the disk, up to this record.
    SnapshotStored(Strand, RecordId),
    /// This strand's snapshot, or that it is to be forgotten, found no room, and is given up.
    SnapshotRefused(Strand),
    /// The oldest segment can go when this strand has a newer snapshot. It is asked for once more
    /// if the snapshot was refused ([`SnapshotError::Busy`], [`Output::SnapshotRefused`]) or does
    /// not cover enough.
    SnapshotWanted(Strand),
    /// That this strand is forgotten, up to this record, is on the disk.
    Forgotten(Strand, RecordId),
    /// There is no room for another segment, or not even for what was taken: appends will be
    /// refused. Free some of the disk.
    Full(String),
    /// There is room again.
    Room,
    /// It is closed: as it was told to, or because the disk failed. The last output.
    Closed(Result<(), Broken>),
}

/// How a store was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// It was made just now.
    pub fresh: bool,
    /// Snapshots restored.
    pub snapshots: usize,
    /// Records replayed.
    pub replayed: u64,
    /// The number of the next record.
    pub next: RecordId,
    /// The last write was cut short: normal after a crash, nobody was told that it was done.
    pub torn: bool,
}

/// The disk failed a store: it is closed, and what was not said to be persisted may be gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the store is closed because its disk failed ({0}): look after the disk, then start the node again; it goes on with \
     what the disk has"
)]
pub struct Broken(pub String);
