//! A log on a disk.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use channel::Head;

use crate::memory::Memory;
use crate::ring::{Broken, HEAD, HEADER, LAST, MAGIC, PUBLISHED, RELEASED, Ring, WHOLE};
use crate::ring::{impossible, is_place, possible, record};
use crate::writer::Writer;

#[cfg(test)]
mod tests;

/// The ring of a log, byte for byte, in a file with a name. It says how far it is on the disk, and
/// readers see of it what they are shown.
#[derive(Debug)]
pub struct Kept {
    writer: Writer,
    disk: File,
    /// All before this byte is on the disk.
    whole: u64,
    /// Where the messages end that were shown, and the number of the last of these.
    shown: u64,
    last: u64,
}

/// The word of a kept log that says which of its messages are on all disks.
#[derive(Debug)]
pub struct LastKept(Memory);

impl Kept {
    /// That of a log of this capacity, a power of two, from this byte on. Its name is new.
    ///
    /// # Errors
    /// There can be no such log, or the disk has no room for it.
    pub fn create(path: &Path, capacity: u64, at: u64) -> io::Result<Kept> {
        let length = usize::try_from(capacity).ok().filter(|_| possible(capacity, at));
        let length = HEADER + length.ok_or_else(impossible)?;
        let (memory, disk) = Memory::create_named(path, length)?;
        let readers = File::open(path).inspect_err(|_| _ = fs::remove_file(path))?;
        let writer = Writer::of((memory, readers), at);
        Ok(Kept { writer, disk, whole: at, shown: at, last: 0 })
    }

    /// The memory, for readers.
    pub fn file(&self) -> &File {
        self.writer.file()
    }

    /// Bytes that the log has room for.
    pub fn capacity(&self) -> u64 {
        self.writer.capacity()
    }

    /// The next bytes of the log, as its reader [copied](crate::Reader::copy_next) them.
    ///
    /// # Errors
    /// They are not the next ones, there is no room for them, or the disk has failed: the log is of no
    /// use any more.
    pub fn push(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let place = self.writer.room_for_raw(bytes.len()).filter(|_| at == self.writer.written());
        let place = place.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, Broken(at)))?;
        // To write there is quicker than to have each page mapped once more after each flush. Readers
        // have the same memory.
        self.disk.write_all_at(bytes, place as u64)?;
        self.writer.pass_over(at + bytes.len() as u64);
        Ok(())
    }

    /// The log has let go all before this place. The disk hears of it before other bytes are there:
    /// else a loss of power would leave a log that begins in the middle of a message.
    ///
    /// # Errors
    /// The disk's own.
    pub fn release(&mut self, until: u64) -> io::Result<()> {
        let (released, _) = self.writer.place();
        if until <= released || !is_place(until) {
            return Ok(());
        }
        self.writer.pass_over(until);
        self.writer.release(until);
        self.shown = self.shown.max(until);
        self.flush().map(drop)
    }

    /// Something was written that is not on the disk.
    pub fn is_dirty(&self) -> bool {
        self.whole < self.writer.written()
    }

    /// Has the disk take all that was written. Returns the place behind it.
    ///
    /// # Errors
    /// The disk's own: what was written since the last time may be lost.
    pub fn flush(&mut self) -> io::Result<u64> {
        let (released, written) = self.writer.place();
        self.disk.sync_data()?;
        // The disk has this word from the next time on. Until then checksums say what is whole, from the
        // last message on of which it is known: so one must be.
        let known = self.writer.word(WHOLE).swap(written, Ordering::Relaxed);
        if known <= released && written > released {
            self.disk.sync_data()?;
        }
        self.whole = written;
        Ok(written)
    }

    /// All before this place is on the disk.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Shows what is before this place to readers. Returns the number of the last message there.
    pub fn show(&mut self, until: u64) -> u64 {
        let until = until.min(self.whole);
        if let Some((head, end)) = self.writer.last_within(self.shown, until) {
            (self.last, self.shown) = (head.number, end);
        }
        self.writer.publish(until);
        self.writer.word(LAST).store(self.last, Ordering::Release);
        self.last
    }
}

impl LastKept {
    /// That of the kept log in this memory.
    ///
    /// # Errors
    /// It is none, or its memory could be taken away.
    pub fn open(file: &File) -> io::Result<LastKept> {
        Memory::open(file).map(LastKept)
    }

    /// The last message that is on all disks. The log does not know those that were let go before.
    pub fn number(&self) -> u64 {
        self.0.word(LAST).load(Ordering::Relaxed)
    }
}

/// A log that an earlier process has left in a file.
#[derive(Debug)]
pub struct Found {
    memory: Memory,
    end: u64,
    last: u64,
}

impl Found {
    /// The log in this file, as far as it is whole. Readers that have it see no more than before.
    ///
    /// # Errors
    /// It is no kept log.
    pub fn open(path: &Path) -> io::Result<Found> {
        let memory = Memory::open_named(path)?;
        let capacity = memory.length().saturating_sub(HEADER) as u64;
        let word = |at: usize| memory.word(at).load(Ordering::Relaxed);
        let (released, whole) = (word(RELEASED), word(WHOLE));
        if word(0) != MAGIC || !possible(capacity, released) {
            return Err(impossible());
        }
        let ring = Ring { capacity };
        let (mut at, mut end, mut before) = (released, released, None::<Head>);
        while at - released < capacity {
            let (place, left) = ring.at(at);
            let head = memory.head(place);
            if head.number == 0 {
                // The rest of the ring is empty. What was never written is zeros as well.
                at += left;
                continue;
            }
            let length = record(head.length).filter(|length| *length <= left).unwrap_or(u64::MAX);
            let next = at.saturating_add(length);
            if next - released > capacity || !follows(&memory, place, head, (before, next <= whole))
            {
                break;
            }
            (at, end, before) = (next, next, Some(head));
        }
        Ok(Found { memory, end, last: before.map_or(0, |head| head.number) })
    }

    /// The number of its last message; 0: there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Shows all of it to readers. Its process is over, and has shown what had to be on other disks.
    pub fn show(&self) {
        self.memory.word(PUBLISHED).store(self.end, Ordering::Release);
    }
}

/// A record at this place follows on the one before. The first one is believed where the disk is
/// known to have it.
fn follows(memory: &Memory, at: usize, head: Head, (before, known): (Option<Head>, bool)) -> bool {
    let (number, check) = match before {
        Some(before) => (before.number + 1, before.check),
        None if head.number == 1 => (1, 0),
        None => return known,
    };
    let mut bytes = vec![0; head.length as usize];
    memory.read(at + HEAD, &mut bytes);
    head == Head::after(check, number, (head.tag, head.length, crc32c::crc32c(&bytes)))
}
