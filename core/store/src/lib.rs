//! Stable storage (`docs/protocol/store.md`): one append-only log for all durable groups of a node,
//! in segments; snapshots that cut it; recovery that tells a write cut short from one that has
//! rotted.
//!
//! [`Store`] is a machine like the others: it requests disk operations ([`Op`]) and receives their
//! results ([`Store::handle_done`]); it has no clock, no file and no thread. Its driver has two
//! workers ([`Lane`]), each of which does one operation at a time, in order.
//!
//! 1. [`Store::open`], and the disk's answers, bring [`Output::Restored`] and [`Output::Replayed`],
//!    then [`Output::Opened`].
//! 2. [`Store::append`] numbers a record; [`Output::Persisted`] reports up to which number all are
//!    on the disk. Records that come while a sync is under way share the next (group commit).
//! 3. [`Store::snapshot`] stands for a strand's records so far. Segments that nobody needs any more
//!    go.
//! 4. A sync that fails closes the store for good: what the system still shows may not be on the
//!    disk, and a second sync would say nothing about it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod api;
pub mod backup;
mod bug;
pub mod format;
mod log;
mod maintenance;
mod opening;
pub mod segment;
mod store;

pub use api::{
    AppendError, Broken, Config, ConfigError, Done, Failure, FailureKind, Lane, Op, OpenError,
    Opened, Output, Record, RecordId, Snapshot, SnapshotError, Strand,
};
#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use format::{FileName, Owner};
pub use store::Store;
