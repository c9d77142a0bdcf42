//! What goes into a [`Store`](crate::Store) and what comes out of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use wire::ordered::Place;
use wire::{Duration, GroupId};

use crate::format::{FileName, Owner, RECORD_HEAD, padded};
use crate::log::space;
use wire::limits::{MAX_BATCH, MAX_RECORD, MAX_SEGMENT, MAX_SEGMENTS, MAX_STATE};

/// The number of a record in a store's log, from 1 without gaps. What was not said to be persisted when a life ended may
/// be gone, and its number be given to another record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordId(pub u64);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a record belongs to: all strands share one log, each has snapshots of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strand {
    /// The node itself: components, its table of groups.
    Node,
    /// One group.
    Group(GroupId),
}

/// Something to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it belongs to.
    pub strand: Strand,
    /// What it is. Whoever appends gives numbers their meaning; the store has none of its own.
    pub kind: u8,
    /// Where in the order it was delivered.
    pub place: Place,
    /// Its content, at most [`MAX_RECORD`] bytes, and what a batch holds ([`Config::batch`]).
    pub bytes: Bytes,
}

/// The state of a strand, which stands for its records so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Whose state.
    pub strand: Strand,
    /// Its records up to this one are in the state. None later may be.
    pub covers: RecordId,
    /// Where in the order it was taken.
    pub place: Place,
    /// The state, at most [`MAX_STATE`] bytes.
    pub state: Bytes,
}

/// A store's knobs.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Whose store it is. One of another owner is refused.
    pub owner: Owner,
    /// Names the store, if it is made now: a random number.
    pub seed: u64,
    /// Bytes of a segment, in whole blocks.
    pub segment: u64,
    /// Bytes of the records of one batch, heads included. A record that fits into none is refused.
    pub batch: usize,
    /// How long a record may wait for others before it is written, if the disk is idle. Zero writes at once; those that
    /// come while the disk is busy share the next write in any case.
    pub delay: Duration,
    /// After so long without a record the log is told that all of it is on the disk: what rots afterwards, even of the
    /// last batch, is known to be missing.
    pub mark_after: Duration,
    /// Bytes kept free for snapshots and manifests on a disk that is full. As much as the largest state, and at least a
    /// segment.
    pub reserve: u64,
    /// With more segments than this, snapshots of the strands that hold the oldest are asked for.
    pub keep: usize,
    /// How long a disk that is full is left alone.
    pub retry: Duration,
    /// The planted bug.
    #[cfg(feature = "planted-bugs")]
    pub bug: Option<crate::Bug>,
}

impl Config {
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
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }

    /// The longest record that a batch holds.
    pub fn longest_record(&self) -> usize {
        MAX_RECORD.min(self.batch - RECORD_HEAD)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if !(RECORD_HEAD + 1..=MAX_BATCH).contains(&self.batch) {
            return Err(ConfigError::Batch);
        }
        let smallest = padded(space(self.batch, self)) as u64;
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
        /// What the largest record may take.
        smallest: u64,
    },
    /// See [`Config::reserve`].
    #[error("reserve: give at least the bytes of a segment, and better those of the largest state")]
    Reserve,
    /// See [`Config::keep`].
    #[error("keep: give at least 1 segment, and fewer than {MAX_SEGMENTS}")]
    Keep,
}

/// Which of the disk's two hands does something. Each does one thing at a time, and none waits for the other: a snapshot's
/// sync does not hold up the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Writes batches to the log.
    Log,
    /// Everything else.
    House,
}

/// Something that the disk is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Tell the store's files in the folder, others left out. [`Done::Listed`]
    List,
    /// Read so many bytes from an offset, less at the file's end. [`Done::Read`]
    Read {
        /// From this file.
        file: FileName,
        /// From here on.
        offset: u64,
        /// So many.
        length: usize,
    },
    /// Make the file anew, with so many bytes of zeros that are written, not only promised, and synced. Its name is not.
    Create {
        /// This file.
        file: FileName,
        /// So large.
        size: u64,
    },
    /// Make the file anew, with room for so many bytes. Nothing need be written to it, or synced.
    Allocate {
        /// This file.
        file: FileName,
        /// So large.
        size: u64,
    },
    /// Write to a file. Nothing need be synced.
    Write {
        /// To this file.
        file: FileName,
        /// From here on.
        offset: u64,
        /// This.
        bytes: Bytes,
    },
    /// Write to a file, and sync it.
    Append {
        /// To this file.
        file: FileName,
        /// From here on.
        offset: u64,
        /// This.
        bytes: Bytes,
    },
    /// Put what was written to the file on the disk.
    Sync {
        /// This file.
        file: FileName,
    },
    /// Give a file another name, which loses the file that had it.
    Rename {
        /// This one,
        from: FileName,
        /// to this name.
        to: FileName,
    },
    /// Remove a file; if there is none, all is well.
    Remove {
        /// This file.
        file: FileName,
    },
    /// Put names that were given, changed and removed on the disk.
    SyncFolder,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::List => f.write_str("list the folder"),
            Op::Read { file, offset, length } => {
                write!(f, "read {file} at {offset}, {length} bytes")
            }
            Op::Create { file, size } => write!(f, "create {file}, {size} bytes"),
            Op::Allocate { file, size } => write!(f, "allocate {file}, {size} bytes"),
            Op::Write { file, offset, bytes } => {
                write!(f, "write {file} at {offset}, {} bytes", bytes.len())
            }
            Op::Append { file, offset, bytes } => {
                write!(f, "write and sync {file} at {offset}, {} bytes", bytes.len())
            }
            Op::Sync { file } => write!(f, "sync {file}"),
            Op::Rename { from, to } => write!(f, "rename {from} to {to}"),
            Op::Remove { file } => write!(f, "remove {file}"),
            Op::SyncFolder => f.write_str("sync the folder"),
        }
    }
}

/// What the disk did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// For [`Op::List`].
    Listed(Vec<FileName>),
    /// For [`Op::Read`].
    Read(Bytes),
    /// For all others.
    Well,
}

/// Why the disk did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What follows from it.
    pub kind: FailureKind,
    /// The system's words, with what was tried.
    pub text: String,
}

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such file to read.
    Missing,
    /// The disk is full: nothing was synced, and it may be tried again.
    Full,
    /// Anything else before a sync.
    Refused,
    /// A sync failed. What it should have put on the disk may be gone although it can still be read, so it must not be tried
    /// again.
    Unsynced,
}

/// What a store wants or says, in order.
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
    /// This strand's snapshot found no room, and is given up.
    SnapshotRefused(Strand),
    /// The oldest segment can go when this strand has a newer snapshot.
    SnapshotWanted(Strand),
    /// There is no room for another segment: appends will be refused. Free some of the disk.
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

/// Why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store is of another cluster or node.
    #[error(
        "the store in this folder is of {found:?}, not of {wanted:?}: give every node a folder of its own (data_dir)"
    )]
    Owner {
        /// Whose it is.
        found: Owner,
        /// Who wanted it.
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
    #[error(
        "the store's manifest is damaged: nobody can say what else is there. Bring it back from a copy, or move the folder \
         away and start the node: it gets its groups from the others, if enough of them have theirs"
    )]
    Manifest,
    /// There are parts of a store, but no manifest.
    #[error(
        "{file} is there, but the store's manifest is not: bring it back from a copy, or move the folder away and start \
         the node: it gets its groups from the others, if enough of them have theirs"
    )]
    NoManifest {
        /// One of the parts.
        file: FileName,
    },
    /// A part of the log is not what was written, and what comes after it is.
    #[error(
        "the log is damaged at byte {offset} of {file}: records from {from} to {to} that were acknowledged are lost, {after} \
         whole records behind them cannot be used without. Bring the file back from a copy, or move the folder away and \
         start the node: it gets its groups from the others, if enough of them have theirs"
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
    #[error(
        "{file} is missing or damaged, and with it {lost}. Bring it back from a copy, or move the folder away and start \
         the node: it gets its groups from the others, if enough of them have theirs"
    )]
    Lost {
        /// Which file.
        file: FileName,
        /// What is lost.
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
    /// It is longer than [`Config::longest_record`].
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
    /// It is larger than [`MAX_STATE`].
    #[error("a state of {0} bytes is too large: at most {MAX_STATE} are kept")]
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
