//! The layout of a log.

use std::io;

/// The first word of a log.
pub(crate) const MAGIC: u64 = 0x0001_676f_6c66_7473;

pub(crate) const PUBLISHED: usize = 64;
pub(crate) const RELEASED: usize = 128;
/// All before this byte is to be kept soon.
pub(crate) const ASKED: usize = 192;
/// In a kept log: bytes on the disk, and the last message on all disks.
pub(crate) const WHOLE: usize = 256;
pub(crate) const LAST: usize = 320;

/// The header, before the ring.
pub(crate) const HEADER: usize = 4_096;

/// A record's head; records begin at multiples of it.
pub(crate) const HEAD: usize = 32;

/// There can be a log of this capacity and with this first byte.
pub(crate) fn possible(capacity: u64, at: u64) -> bool {
    capacity.is_power_of_two() && capacity >= HEADER as u64 && is_place(at)
}

/// A record may begin or end at this byte of all bytes ever.
pub(crate) fn is_place(at: u64) -> bool {
    at.is_multiple_of(HEAD as u64) && at < 1 << 62
}

/// The error for a log that there cannot be.
pub(crate) fn impossible() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "there is no such log")
}

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
