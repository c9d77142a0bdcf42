//! The content of a store: records of strands, and the snapshots that stand for them.

use core::fmt;

use bytes::Bytes;
use wire::ordered::Place;
use wire::{GroupId, Payload};

#[cfg(doc)]
use super::Config;

/// The number of a record in a store's log, from 1 without gaps. A record not reported as persisted
/// when a life ended may be gone, and its number be given to another record.
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

/// The owner of a record: all strands share one log, each has snapshots of its own.
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
    /// The strand of the record.
    pub strand: Strand,
    /// The kind of the record. Its writer gives numbers their meaning; the store has none of its
    /// own.
    pub kind: u8,
    /// Where in the order it was delivered.
    pub place: Place,
    /// Its content, at most [`MAX_RECORD`](wire::limits::MAX_RECORD) bytes, and what a batch holds
    /// ([`Config::batch`]).
    pub bytes: Bytes,
}

/// The state of a strand, which stands for its records so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The strand of the state.
    pub strand: Strand,
    /// Its records up to this one are in the state. None later may be.
    pub covers: RecordId,
    /// Where in the order it was taken.
    pub place: Place,
    /// The state, at most [`MAX_SNAPSHOT`](wire::limits::MAX_SNAPSHOT) bytes.
    pub state: Payload,
}
