//! A log at another host.

use std::fs::File;
use std::io;

use crate::ring::{Broken, impossible, is_place, possible};
use crate::writer::Writer;

/// The ring of a log, byte for byte, for a reader at another host. It is as full as the log is, so
/// it is never full before it.
#[derive(Debug)]
pub struct Mirror(Writer);

impl Mirror {
    /// The mirror of a log of this capacity, a power of two, from this byte on.
    ///
    /// # Errors
    /// There can be no such log, or the system has no memory file of this size.
    pub fn new(capacity: u64, at: u64) -> io::Result<Mirror> {
        let length = usize::try_from(capacity).ok().filter(|_| possible(capacity, at));
        let capacity = length.ok_or_else(impossible)?;
        Writer::beginning_at(capacity, at, None).map(Mirror)
    }

    /// The memory, for the receiver.
    pub fn file(&self) -> &File {
        self.0.file()
    }

    /// The next bytes of the log, as its reader [copied](crate::Reader::copy_next) them.
    ///
    /// # Errors
    /// They are not the next ones, or there is no room for them.
    pub fn push(&mut self, at: u64, bytes: &[u8]) -> Result<(), Broken> {
        if at != self.0.written() || !self.0.push_raw(bytes) {
            return Err(Broken(at));
        }
        self.0.publish(self.0.written());
        Ok(())
    }

    /// The number of the last message that is here as a whole; 0: there is none.
    pub fn last(&self) -> u64 {
        let (released, written) = self.0.place();
        self.0.last_within(released, written).map_or(0, |(head, _)| head.number)
    }

    /// The log has let go all before this place, which may not have come.
    pub fn release(&mut self, until: u64) {
        if is_place(until) {
            self.0.pass_over(until);
            self.0.release(until);
        }
    }
}
