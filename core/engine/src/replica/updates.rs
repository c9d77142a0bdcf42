//! What the backup of a warm passive group does with its primary's updates.

mod acting;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::limits::MAX_UPDATE;
use wire::ordered::{Place, PrimaryChunk};

/// The updates that a replica has taken, and the one that is coming in.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// So many are in the group's history, as far as it is known here.
    pub(super) taken: u64,
    /// Ordered time by what is in them, and was ordered before: as all have it. The primary's own
    /// goes on with what it executes.
    pub(super) clock: Time,
    pub(super) pieces: Pieces,
}

/// Puts together what a primary tells in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces(Option<Incoming>);

/// What has come of it so far.
#[derive(Debug)]
struct Incoming {
    since: Place,
    number: u64,
    next: u32,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Nothing of what came is still to be completed.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// With the last piece: the whole, or nothing if not all of it came here.
    pub(super) fn put(&mut self, chunk: &PrimaryChunk) -> Option<Bytes> {
        if chunk.index == 0 && chunk.last {
            self.0 = None;
            return Some(chunk.bytes.clone());
        }
        if chunk.index == 0 {
            let (since, number, bytes) = (chunk.since, chunk.number, Vec::new());
            self.0 = Some(Incoming { since, number, next: 0, bytes });
        }
        let fits = |incoming: &mut Incoming| {
            let expected = (incoming.since, incoming.number, incoming.next);
            expected == (chunk.since, chunk.number, chunk.index)
                && incoming.bytes.len() + chunk.bytes.len() <= MAX_UPDATE
        };
        let mut incoming = self.0.take_if(fits)?;
        incoming.bytes.extend_from_slice(&chunk.bytes);
        incoming.next += 1;
        if chunk.last {
            return Some(incoming.bytes.into());
        }
        self.0 = Some(incoming);
        None
    }
}
