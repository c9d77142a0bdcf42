//! The primary's updates at a backup of a warm passive group.

mod acting;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::limits::MAX_UPDATE;
use wire::ordered::{Place, PrimaryChunk};

/// The updates that a replica has taken, and the one that is coming in.
#[derive(Clone, Debug, Default)]
pub(super) struct Updates {
    /// The number of updates in the group's history, as far as it is known here.
    pub(super) taken: u64,
    /// Ordered time after them and all earlier messages, alike at all replicas. The primary's own
    /// clock goes on with its calls.
    pub(super) clock: Time,
    pub(super) pieces: Pieces,
}

/// Puts the pieces of a primary's message together.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Option<Incoming>);

/// The pieces so far.
#[derive(Clone, Debug)]
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
