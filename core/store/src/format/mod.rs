//! The content of the files, byte for byte. Little-endian; every layout is drawn at its type, all
//! of them in `docs/protocol/store.md`.

mod batch;
mod manifest;
mod names;
mod owner;
mod snapshot;

pub(crate) use batch::RECORD_HEAD;
pub use batch::{BATCH_HEAD, Batch, Identity, padded};
pub(crate) use batch::{Found, size_of_record};
pub use manifest::{Entry, Link, Manifest};
pub use names::FileName;
pub use owner::Owner;
pub use snapshot::{Damaged, PIECE, SNAPSHOT_HEAD, SnapshotHead, SnapshotReader, piece};

/// The version of all that this crate writes.
pub const FORMAT: u32 = 1;

/// One write touches only whole blocks, and no acknowledged block is ever written again. A block
/// that is spoilt while power fails does not damage acknowledged records.
pub const BLOCK: usize = 4_096;
