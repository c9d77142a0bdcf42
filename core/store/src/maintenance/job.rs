//! A job beside the log's end, and what waits for one.

use alloc::vec::Vec;

use wire::Payload;
use wire::ordered::Place;

use crate::api::{RecordId, Strand};
use crate::format::FileName;

/// A job, at the step that the disk is busy with.
#[derive(Debug)]
pub(super) enum Job {
    /// A file for the log to go on in.
    Segment { number: u64, size: u64, step: Making },
    /// A snapshot's file.
    Snapshot { waiting: Waiting, number: u64, step: Taking },
    /// A new manifest.
    Manifest { step: Naming, told: Change },
    /// A file that is no longer needed; `spare`: it is kept as one.
    Removal { file: FileName, spare: bool },
    /// The remains of a file that found no room are deleted.
    Clearing { file: FileName },
    /// A segment of an earlier life gives back the room behind its last batch.
    Shrink { number: u64, size: u64 },
    /// The reserve is made.
    Reserve,
    /// It is given up, for what needs the room.
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Making {
    Create,
    Reuse,
    SyncFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Create,
    /// The head; then pieces from here on in the state, at this offset in the file, after this
    /// check.
    Head,
    Piece {
        from: usize,
        offset: u64,
        check: u32,
    },
    Sync,
    SyncFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Create,
    Write,
    Rename,
    SyncFolder,
}

/// A snapshot that waits for the disk, or, without a state, a strand that is forgotten.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub strand: Strand,
    pub covers: RecordId,
    pub place: Place,
    pub state: Option<Payload>,
}

/// The changes that take effect when a manifest is on the disk.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// A segment that it names for the first time, with its size.
    pub named: Option<(u64, u64)>,
    /// Files that it no longer names; those that can be used again.
    pub doomed: Vec<(FileName, bool)>,
    /// Snapshots that it names for the first time.
    pub stored: Vec<(Strand, RecordId)>,
    /// Strands that it says are forgotten.
    pub forgotten: Vec<(Strand, RecordId)>,
}
