//! Kept replies, in the order of their requests, and their bytes.

use alloc::collections::BTreeMap;

use wire::ClientId;

/// The replies that sessions of one kind keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    places: BTreeMap<u64, (ClientId, u64)>,
    bytes: usize,
}

impl Kept {
    /// The reply to the request at this place is kept.
    pub(super) fn add(&mut self, place: u64, call: (ClientId, u64), size: usize) {
        self.places.insert(place, call);
        self.bytes += size;
    }

    /// It is not needed any more. One that was shed is not counted; false for such a one.
    pub(super) fn remove(&mut self, place: u64, size: usize) -> bool {
        let counted = self.places.remove(&place).is_some();
        if counted {
            self.bytes -= size;
        }
        counted
    }

    /// A reply becomes another one.
    pub(super) fn amend(&mut self, place: u64, before: usize, after: usize) {
        if self.places.contains_key(&place) {
            self.bytes = self.bytes - before + after;
        }
    }

    /// The oldest, if there are more bytes than `limit`. Its size is still counted.
    pub(super) fn beyond(&mut self, limit: usize) -> Option<(u64, (ClientId, u64))> {
        let (place, call) = self.places.first_key_value().filter(|_| self.bytes > limit)?;
        Some((*place, *call))
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = &(ClientId, u64)> {
        self.places.values()
    }
}
