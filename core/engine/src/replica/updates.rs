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
    pub(super) pieces: Pieces<(Place, u64)>,
}

/// Puts the pieces of a message together. `K` names the message.
#[derive(Clone, Debug)]
pub(super) struct Pieces<K>(Option<Incoming<K>>);

/// The pieces so far.
#[derive(Clone, Debug)]
struct Incoming<K> {
    key: K,
    next: u32,
    bytes: Vec<u8>,
}

impl<K> Default for Pieces<K> {
    fn default() -> Pieces<K> {
        Pieces(None)
    }
}

impl<K: PartialEq> Pieces<K> {
    /// Nothing of what came is still to be completed.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// The piece of this index comes, and none may follow. With the last piece: the whole, or nothing
    /// if not all of it came here.
    pub(super) fn put(
        &mut self,
        key: K,
        (index, last): (u32, bool),
        bytes: &Bytes,
    ) -> Option<Bytes> {
        if index == 0 && last {
            self.0 = None;
            return Some(bytes.clone());
        }
        if index == 0 {
            self.0 = Some(Incoming { key, next: 0, bytes: Vec::new() });
            return self.append(bytes, last);
        }
        let fits = self.0.as_ref().is_some_and(|incoming| {
            (incoming.next == index && incoming.key == key)
                && incoming.bytes.len() + bytes.len() <= MAX_UPDATE
        });
        fits.then(|| self.append(bytes, last)).flatten()
    }

    fn append(&mut self, bytes: &Bytes, last: bool) -> Option<Bytes> {
        let mut incoming = self.0.take()?;
        incoming.bytes.extend_from_slice(bytes);
        incoming.next += 1;
        if last {
            return Some(incoming.bytes.into());
        }
        self.0 = Some(incoming);
        None
    }
}

impl Pieces<(Place, u64)> {
    /// The same for a piece of a primary's.
    pub(super) fn put_primary(&mut self, chunk: &PrimaryChunk) -> Option<Bytes> {
        self.put((chunk.since, chunk.number), (chunk.index, chunk.last), &chunk.bytes)
    }
}
