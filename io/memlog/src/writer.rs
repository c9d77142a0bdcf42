//! The sender's end of a log.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use channel::Head;

use crate::memory::Memory;
use crate::ring::{ASKED, Broken, HEAD, HEADER, MAGIC, PUBLISHED, RELEASED, Ring};
use crate::ring::{impossible, is_place, possible, record};

/// The most bytes of a log that is in memory, if there is a disk for it.
pub const IN_MEMORY: u64 = 256 << 20;

/// Why a message does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It will, when the receiver needs older ones no more.
    Now,
    /// It never will: a log takes messages of half its size.
    Ever,
}

/// The sender's end.
#[derive(Debug)]
pub struct Writer {
    memory: Memory,
    file: File,
    ring: Ring,
    /// Bytes written, published and let go, ever.
    written: u64,
    published: u64,
    released: u64,
}

impl Writer {
    /// An empty log of so many bytes, rounded up to a power of two. Memory is taken as it is written.
    /// One of more than [`IN_MEMORY`] bytes is on the disk with this folder, if that has room for it.
    ///
    /// # Errors
    /// The system has no memory file of this size.
    pub fn new(capacity: usize, spill: Option<&Path>) -> io::Result<Writer> {
        Writer::beginning_at(capacity, 0, spill)
    }

    /// One whose first byte has this number, a multiple of 32.
    pub(crate) fn beginning_at(
        capacity: usize,
        at: u64,
        spill: Option<&Path>,
    ) -> io::Result<Writer> {
        let capacity = capacity.max(HEADER).next_power_of_two();
        let length = HEADER + capacity;
        let spill = spill.filter(|_| capacity as u64 > IN_MEMORY);
        let on_disk = spill.and_then(|folder| Memory::create_on_disk(folder, length).ok());
        let (memory, file) = on_disk.map_or_else(|| Memory::create("steadfast log", length), Ok)?;
        Ok(Writer::of((memory, file), at))
    }

    /// An empty log in this memory, whose first byte has this number.
    pub(crate) fn of((memory, file): (Memory, File), at: u64) -> Writer {
        memory.word(0).store(MAGIC, Ordering::Relaxed);
        let ring = Ring { capacity: (memory.length() - HEADER) as u64 };
        let mut writer = Writer { memory, file, ring, written: at, published: 0, released: 0 };
        writer.release(at);
        writer
    }

    /// The memory, for the receiver.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that the log has now.
    pub fn bytes(&self) -> u64 {
        self.written - self.released
    }

    /// Bytes that it has room for.
    pub fn capacity(&self) -> u64 {
        self.ring.capacity
    }

    /// Bytes written, ever.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// A message of so many bytes has room now.
    pub fn has_room(&self, length: u64) -> bool {
        let (_, left) = self.ring.at(self.written);
        let fits = |record: u64| {
            let skipped = if record > left { left } else { 0 };
            record <= self.ring.capacity / 2
                && self.bytes() + skipped + record <= self.ring.capacity
        };
        record(length).is_some_and(fits)
    }

    /// Writes a message of two parts: the first has a multiple of 8 bytes, or the second none. It is to
    /// be seen when it is [published](Writer::publish). Returns the place behind it.
    ///
    /// # Errors
    /// There is no room for it.
    ///
    /// # Panics
    /// The first part has another length.
    pub fn push(
        &mut self,
        (number, tag, check): (u64, u32, u32),
        [first, second]: [&[u8]; 2],
    ) -> Result<u64, Full> {
        assert!(first.len().is_multiple_of(8) || second.is_empty(), "the second part is aligned");
        let length = first.len() as u64 + second.len() as u64;
        let record = record(length).filter(|it| *it <= self.ring.capacity / 2);
        let record = record.ok_or(Full::Ever)?;
        let (mut at, left) = self.ring.at(self.written);
        let skipped = if record > left { left } else { 0 };
        if self.bytes() + skipped + record > self.ring.capacity {
            return Err(Full::Now);
        }
        if skipped > 0 {
            self.memory.word(at).store(0, Ordering::Relaxed);
            (at, _) = self.ring.at(self.written + skipped);
        }
        let mark = u64::from(tag) | u64::from(check) << 32;
        for (place, word) in [number, mark, length].into_iter().enumerate() {
            self.memory.word(at + 8 * place).store(word, Ordering::Relaxed);
        }
        self.memory.write(at + HEAD, first);
        if !second.is_empty() {
            self.memory.write(at + HEAD + first.len(), second);
        }
        self.written += skipped + record;
        Ok(self.written)
    }

    /// The receiver may see all before this place.
    pub fn publish(&mut self, until: u64) {
        self.published = self.published.max(until.min(self.written));
        self.memory.word(PUBLISHED).store(self.published, Ordering::Release);
    }

    /// All that may be seen is to be on a disk soon.
    pub fn ask_to_keep(&self) {
        self.memory.word(ASKED).store(self.published, Ordering::Release);
    }

    /// Nobody needs what is before this place.
    pub fn release(&mut self, until: u64) {
        self.released = self.released.max(until.min(self.written));
        self.publish(self.released);
        self.memory.word(RELEASED).store(self.released, Ordering::Release);
        // Before anything is written there: a reader that finds new bytes finds this word as well.
        fence(Ordering::SeqCst);
    }

    /// Copies of the ring what lies there from this byte on, for an image.
    ///
    /// # Panics
    /// They are not in the ring, or the place is not a word's.
    pub fn copy_ring(&self, from: usize, to: &mut [u8]) {
        self.memory.read(HEADER + from, to);
    }

    /// Copies the bytes of a message that ends at this place and has so many bytes.
    pub fn copy(&self, end: u64, to: &mut [u8]) {
        let begin = end - record(to.len() as u64).expect("it was written");
        let (at, _) = self.ring.at(begin);
        self.memory.read(at + HEAD, to);
    }

    /// Bytes let go and written, ever.
    pub fn place(&self) -> (u64, u64) {
        (self.released, self.written)
    }

    /// A log with this ring and these bytes let go and written. Nothing is published.
    ///
    /// # Errors
    /// There is no such ring, or no memory for it.
    pub fn restored(
        ring: &[u8],
        (released, written): (u64, u64),
        spill: Option<&Path>,
    ) -> io::Result<Writer> {
        let capacity = ring.len() as u64;
        let fits = written.checked_sub(released).is_some_and(|bytes| bytes <= capacity);
        if !fits || !possible(capacity, released) || !is_place(written) {
            return Err(impossible());
        }
        let mut writer = Writer::beginning_at(ring.len(), released, spill)?;
        writer.memory.write(HEADER, ring);
        writer.written = written;
        Ok(writer)
    }

    /// The messages in the log, each with the place behind it.
    ///
    /// # Errors
    /// A restored one makes no sense.
    pub fn records(&self) -> Result<Vec<(Head, u64)>, Broken> {
        let (mut at, mut records) = (self.released, Vec::new());
        while at < self.written {
            let (head, end) = self.record(at)?;
            if end > self.written || head.is_none() && end == self.written {
                return Err(Broken(end));
            }
            at = end;
            records.extend(head.map(|head| (head, end)));
        }
        Ok(records)
    }

    /// The message that begins here, or none where the rest of the ring is empty; and the place behind.
    fn record(&self, at: u64) -> Result<(Option<Head>, u64), Broken> {
        let (place, left) = self.ring.at(at);
        let head = self.memory.head(place);
        if head.number == 0 {
            return Ok((None, at + left));
        }
        let length = record(head.length).filter(|length| *length <= left).ok_or(Broken(at))?;
        Ok((Some(head), at + length))
    }

    /// The last message that lies between two places as a whole, with the place behind it. `None`:
    /// there is none, or it makes no sense.
    pub(crate) fn last_within(&self, mut from: u64, to: u64) -> Option<(Head, u64)> {
        let mut last = None;
        while let Ok((head, end)) = self.record(from)
            && end <= to
        {
            (from, last) = (end, head.map(|head| (head, end)).or(last));
        }
        last
    }

    /// A word of the header.
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        self.memory.word(at)
    }

    /// The next bytes are not before this place.
    pub(crate) fn pass_over(&mut self, until: u64) {
        self.written = self.written.max(until);
    }

    /// Where a piece of another log's ring lies in the memory that comes next, if it fits.
    pub(crate) fn room_for_raw(&self, length: usize) -> Option<usize> {
        let ((at, left), bytes) = (self.ring.at(self.written), length as u64);
        let fits = bytes <= left && self.bytes() + bytes <= self.ring.capacity;
        (fits && length.is_multiple_of(HEAD)).then_some(at)
    }

    /// Writes such a piece.
    pub(crate) fn push_raw(&mut self, bytes: &[u8]) -> bool {
        let Some(at) = self.room_for_raw(bytes.len()) else { return false };
        self.memory.write(at, bytes);
        self.written += bytes.len() as u64;
        true
    }

    /// Other words in the header: published and let go.
    #[cfg(test)]
    pub(crate) fn forge(&self, (published, released): (u64, u64)) {
        self.memory.word(PUBLISHED).store(published, Ordering::Release);
        self.memory.word(RELEASED).store(released, Ordering::Release);
    }
}
