//! The store's requests to its disk, and the disk's answers.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;

use crate::format::FileName;

/// Which of the disk's two hands does something. Each does one thing at a time, and none waits for
/// the other: a snapshot's sync does not hold up the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Writes batches to the log.
    Log,
    /// Everything else.
    Maintenance,
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
    /// Make the file anew, with so many bytes of zeros that are written, not only promised, and
    /// synced. Its name is not.
    Create {
        /// This file.
        file: FileName,
        /// So large.
        size: u64,
    },
    /// Give the file room for so many bytes, and make it if there is none. Its content stays.
    /// Nothing need be written to it, or synced.
    Allocate {
        /// This file.
        file: FileName,
        /// So large.
        size: u64,
    },
    /// Cut the file to so many bytes. Nothing need be synced.
    Shrink {
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
            Op::Shrink { file, size } => write!(f, "shrink {file} to {size} bytes"),
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

/// The result of the disk's operation.
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
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The system's words, with what was tried.
    pub text: String,
}

/// The kinds of failures, by their consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// There is no such file to read.
    Missing,
    /// The disk is full: nothing was synced, and it may be tried again.
    Full,
    /// Anything else before a sync.
    Refused,
    /// A sync failed. Its data may be gone from the disk although it can still be read, so the sync
    /// must not be tried again.
    Unsynced,
}
