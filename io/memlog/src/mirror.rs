//! A log at another host.

use std::fs::File;
use std::io;

use crate::ring::{Broken, HEAD};
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
        let fits = capacity.is_power_of_two() && at.is_multiple_of(HEAD as u64) && at < 1 << 62;
        let capacity = usize::try_from(capacity).ok().filter(|_| fits);
        let Some(capacity) = capacity else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is no such log"));
        };
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

    /// The log has let go all before this place, which may not have come.
    pub fn release(&mut self, until: u64) {
        if until.is_multiple_of(HEAD as u64) && until < 1 << 62 {
            self.0.pass_over(until);
            self.0.release(until);
        }
    }
}
