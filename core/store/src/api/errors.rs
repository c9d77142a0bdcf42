//! Why a store is not opened, or does not take something.

use alloc::string::String;

use wire::limits::MAX_SNAPSHOT;

use super::RecordId;
use crate::format::{FileName, Owner};

/// A single file of an older copy has forgotten what was acknowledged since, and so has an older
/// folder.
const REMEDY: &str = "Bring back the whole folder, never a single file of it, from a copy that was taken since the node \
    stopped, or move the folder away and start the node: it gets its groups from the others, if enough of them have theirs";

/// Why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store is of another cluster or node.
    #[error(
        "the store in this folder is of {found}, not of {wanted}: give every node a folder of its own (data_dir)"
    )]
    Owner {
        /// The owner found.
        found: Owner,
        /// The owner expected.
        wanted: Owner,
    },
    /// A program of another version wrote it.
    #[error(
        "the store's format is version {theirs}, this program reads version 1: use the program that wrote it"
    )]
    Version {
        /// Its version.
        theirs: u32,
    },
    /// The manifest is not what was written.
    #[error("the store's manifest is damaged: nobody can say what else is there. {REMEDY}")]
    Manifest,
    /// There are parts of a store, but no manifest.
    #[error("{file} is there, but the store's manifest is not. {REMEDY}")]
    NoManifest {
        /// One of the parts.
        file: FileName,
    },
    /// The manifest is an older one than that which was there last: records were acknowledged
    /// behind all that it names.
    #[error(
        "the store's manifest is an old copy: it does not name {file}, where acknowledged records are. {REMEDY}"
    )]
    OldManifest {
        /// One of the segments that it should name.
        file: FileName,
    },
    /// A part of the log is not what was written, and what comes after it is.
    #[error(
        "the log is damaged at byte {offset} of {file}: records from {from} to {to} that were acknowledged are lost, {after} \
         whole records behind them cannot be used without. {REMEDY}"
    )]
    Damaged {
        /// Where.
        file: FileName,
        /// Bytes from its beginning.
        offset: u64,
        /// The first record that is lost.
        from: RecordId,
        /// The last one, as far as the log tells.
        to: RecordId,
        /// Records that were found behind them.
        after: u64,
    },
    /// A file that the manifest names is missing, or is not what was written.
    #[error("{file} is missing or damaged, and with it {lost}. {REMEDY}")]
    Lost {
        /// Which file.
        file: FileName,
        /// The lost data.
        lost: String,
    },
    /// The disk has no room for what it takes to begin.
    #[error(
        "the disk is full, and the reserve is used up ({0}): free some room, then start the node again"
    )]
    Full(String),
    /// The disk did not do what was asked.
    #[error("the disk failed: {0}")]
    Disk(String),
}

/// Why a record is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The store is not open yet, or not any more.
    #[error("the store is not open")]
    NotOpen,
    /// It is longer than [`Config::longest_record`](crate::Config::longest_record).
    #[error("a record of {length} bytes is too long: at most {longest} are kept at a time")]
    TooLong {
        /// Its bytes.
        length: usize,
        /// The limit.
        longest: usize,
    },
    /// Too much waits for the disk, or the next segment is not ready yet.
    #[error("too much waits for the disk: try again when some of it is there")]
    Busy,
    /// The disk is full, or the log as long as it may be.
    #[error("the store has no room: free some of the disk, or let snapshots cut the log")]
    Full,
}

/// Why a snapshot is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The store is not open yet, or not any more.
    #[error("the store is not open")]
    NotOpen,
    /// It is larger than [`MAX_SNAPSHOT`].
    #[error("a state of {0} bytes is too large: at most {MAX_SNAPSHOT} are kept")]
    TooLarge(usize),
    /// It covers records that were never appended, or fewer than the last one.
    #[error("a snapshot up to {0} is older than the last one, or covers what is not there")]
    Misplaced(RecordId),
    /// Too many wait for the disk, or one of this strand does.
    #[error("too many snapshots wait for the disk: try again when one is there")]
    Busy,
    /// There are too many strands.
    #[error("too many strands have snapshots")]
    TooManyStrands,
}
