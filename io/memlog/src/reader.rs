//! The receiver's end of a log.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use channel::Head;

use crate::memory::Memory;
use crate::ring::{
    ASKED, Broken, HEAD, HEADER, MAGIC, PUBLISHED, RELEASED, Ring, is_place, record,
};

/// Looks for the next message that are made at once.
const TRIES: usize = 4;

/// The receiver's end.
#[derive(Debug)]
pub struct Reader {
    log: Arc<Mapped>,
    /// Bytes read, ever.
    read: u64,
}

/// A log that is mapped, as long as somebody has messages of it.
#[derive(Debug)]
struct Mapped {
    memory: Memory,
    ring: Ring,
}

/// A message, where it lies in its log.
#[derive(Clone, Debug)]
pub struct Found {
    /// The head in its record.
    pub head: Head,
    /// Where its record begins, of all bytes ever.
    from: u64,
    log: Arc<Mapped>,
}

impl Found {
    /// Copies its bytes from this one on, a multiple of 8: as many as there is room for. False: it was
    /// let go meanwhile, and they are nothing.
    pub fn copy(&self, from: usize, to: &mut [u8]) -> bool {
        let many = to.len().min((self.head.length as usize).saturating_sub(from));
        let (at, _) = self.log.ring.at(self.from);
        self.log.memory.read(at + HEAD + from, &mut to[..many]);
        fence(Ordering::Acquire);
        self.log.word(RELEASED).is_some_and(|released| released <= self.from)
    }
}

impl Mapped {
    /// A word of the header, as it is now, if it makes sense.
    fn word(&self, at: usize) -> Option<u64> {
        // Only relaxed loads are defined where the memory cannot be written.
        let word = self.memory.word(at).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        Some(word).filter(|word| is_place(*word))
    }
}

impl Reader {
    /// The log in this memory, from the oldest message on.
    ///
    /// # Errors
    /// It is none, or its memory could be taken away.
    pub fn open(file: &File) -> io::Result<Reader> {
        let memory = Memory::open(file)?;
        let capacity = memory.length().saturating_sub(HEADER);
        if capacity < HEADER
            || !capacity.is_power_of_two()
            || memory.word(0).load(Ordering::Relaxed) != MAGIC
        {
            let why = "the memory is no log of messages of this version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let ring = Ring { capacity: capacity as u64 };
        Ok(Reader { log: Arc::new(Mapped { memory, ring }), read: 0 })
    }

    /// The bytes that the log has room for.
    pub fn capacity(&self) -> u64 {
        self.log.ring.capacity
    }

    /// Bytes read or passed over, ever.
    pub fn place(&self) -> u64 {
        self.read
    }

    fn word(&self, at: usize) -> Result<u64, Broken> {
        self.log.word(at).ok_or(Broken(self.read))
    }

    /// All before this place was let go.
    ///
    /// # Errors
    /// The log makes no sense.
    pub fn released(&self) -> Result<u64, Broken> {
        self.word(RELEASED)
    }

    /// Something was published that is not read, or the log makes no sense.
    pub fn has_more(&self) -> bool {
        self.word(PUBLISHED).map_or(true, |published| published > self.read)
    }

    /// The writer wants something kept that is not read.
    pub fn is_asked(&self) -> bool {
        self.word(ASKED).map_or(true, |asked| asked > self.read)
    }

    /// Where what was published begins that is not read, and how many bytes that are.
    fn unread(&mut self) -> Result<u64, Broken> {
        self.read = self.read.max(self.word(RELEASED)?);
        Ok(self.word(PUBLISHED)?.saturating_sub(self.read))
    }

    /// The next message, if there is one. Those that were let go are passed over.
    ///
    /// # Errors
    /// The log makes no sense.
    pub fn advance(&mut self) -> Result<Option<Found>, Broken> {
        // The second time behind the end of the ring; again if the writer lets go meanwhile.
        for _ in 0..TRIES {
            let unread = self.unread()?;
            if unread == 0 {
                return Ok(None);
            }
            let broken = Broken(self.read);
            if unread > self.log.ring.capacity {
                // The writer may have let go between the two looks.
                if self.word(RELEASED)? > self.read {
                    continue;
                }
                return Err(broken);
            }
            let (at, left) = self.log.ring.at(self.read);
            let head = self.log.memory.head(at);
            // The head is read before this word: else it could be one that was written since.
            fence(Ordering::Acquire);
            if self.word(RELEASED)? > self.read {
                continue;
            }
            let record = match head.number {
                0 => left,
                _ => record(head.length).filter(|record| *record <= left).ok_or(broken)?,
            };
            // A mirror may have the first part of it.
            if record > unread {
                return Ok(None);
            }
            if head.number == 0 {
                self.read += left;
                continue;
            }
            let from = self.read;
            self.read += record;
            return Ok(Some(Found { head, from, log: self.log.clone() }));
        }
        Ok(None)
    }

    /// Copies what comes next in the ring, whatever it is, at most so many bytes: for a
    /// [mirror](crate::Mirror). Returns where it begins, and what the log has let go by then; `None`:
    /// there is nothing now.
    ///
    /// # Errors
    /// The log makes no sense.
    pub fn copy_next(
        &mut self,
        most: usize,
        to: &mut Vec<u8>,
    ) -> Result<Option<(u64, u64)>, Broken> {
        for _ in 0..TRIES {
            let unread = self.unread()?;
            if unread == 0 {
                return Ok(None);
            }
            let (at, left) = self.log.ring.at(self.read);
            let many = unread.min(left).min((most - most % HEAD) as u64);
            to.resize(many as usize, 0);
            self.log.memory.read(at, to);
            fence(Ordering::Acquire);
            let released = self.word(RELEASED)?;
            if released > self.read {
                continue;
            }
            // A mirror has no room for more.
            if self.read + unread - released > self.log.ring.capacity {
                return Err(Broken(self.read));
            }
            let from = self.read;
            self.read += many;
            return Ok(Some((from, released)));
        }
        Ok(None)
    }
}
