//! A log at another host.

use std::fs::File;
use std::io;

use crate::ring::{Broken, impossible, is_place, possible};
use crate::writer::Writer;

/// The ring of a log, byte for byte, for a reader at another host. It is as full as the log is, so
/// it is never full before it.
#[derive(Debug)]
pub struct Mirror {
    writer: Writer,
    /// Where the messages end that were counted, and the number of the last of these.
    counted: u64,
    last: u64,
}

impl Mirror {
    /// The mirror of a log of this capacity, a power of two, from this byte on.
    ///
    /// # Errors
    /// There can be no such log, or the system has no memory file of this size.
    pub fn new(capacity: u64, at: u64) -> io::Result<Mirror> {
        let length = usize::try_from(capacity).ok().filter(|_| possible(capacity, at));
        let capacity = length.ok_or_else(impossible)?;
        let writer = Writer::beginning_at(capacity, at, None)?;
        Ok(Mirror { writer, counted: at, last: 0 })
    }

    /// The memory, for the receiver.
    pub fn file(&self) -> &File {
        self.writer.file()
    }

    /// The next bytes of the log, as its reader [copied](crate::Reader::copy_next) them.
    ///
    /// # Errors
    /// They are not the next ones, or there is no room for them.
    pub fn push(&mut self, at: u64, bytes: &[u8]) -> Result<(), Broken> {
        if at != self.writer.written() || !self.writer.push_raw(bytes) {
            return Err(Broken(at));
        }
        self.writer.publish(self.writer.written());
        Ok(())
    }

    /// The number of the last message that is here as a whole; 0: there was none.
    pub fn last(&mut self) -> u64 {
        let (released, written) = self.writer.place();
        self.counted = self.counted.max(released);
        if let Some((head, end)) = self.writer.last_within(self.counted, written) {
            (self.last, self.counted) = (head.number, end);
        }
        self.last
    }

    /// The log has let go all before this place, which may not have come.
    pub fn release(&mut self, until: u64) {
        if is_place(until) {
            self.writer.pass_over(until);
            self.writer.release(until);
        }
    }
}
