//! The layout of a log.

/// The first word of a log.
pub(crate) const MAGIC: u64 = 0x0001_676f_6c66_7473;

pub(crate) const PUBLISHED: usize = 64;
pub(crate) const RELEASED: usize = 128;

/// The header, before the ring.
pub(crate) const HEADER: usize = 4_096;

/// A record's head; records begin at multiples of it.
pub(crate) const HEAD: usize = 32;

/// A log that its reader cannot believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a log of messages is broken at byte {0}: its sender is, or its memory")]
pub struct Broken(pub u64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    /// A power of two.
    pub capacity: u64,
}

impl Ring {
    /// Where this byte lies in the memory, and how many follow until the end of the ring.
    pub fn at(self, byte: u64) -> (usize, u64) {
        let within = byte & (self.capacity - 1);
        (HEADER + within as usize, self.capacity - within)
    }
}

/// The bytes of a record with so many of a message.
pub(crate) fn record(length: u64) -> Option<u64> {
    length.checked_add(HEAD as u64)?.checked_next_multiple_of(HEAD as u64)
}
