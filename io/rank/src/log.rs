//! A log of messages in shared memory: its sender writes it, its receiver reads it where it lies
//! (`docs/decisions/0063-channels.md`).
//!
//! ```text
//! page 0     words of 8 bytes, each in a line of the cache of its own:
//!              0  magic and version     64  bytes published, ever     128  bytes let go, ever
//! page 1...  a ring of records: head (32 bytes) and bytes, each from a multiple of 32 on; a record
//!            does not go around the end, where number 0 says that the rest is empty
//! ```
//!
//! The reader believes nothing: a peer may be broken. A log is sealed, so nobody takes its memory away,
//! and nobody but its writer can write there.
#![deny(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::atomic::{Ordering, fence};

use channel::Head;

mod memory;

use memory::Memory;

/// The first word of a log.
const MAGIC: u64 = 0x0001_676f_6c66_7473;

const PUBLISHED: usize = 64;
const RELEASED: usize = 128;

/// The header, before the ring.
const HEADER: usize = 4_096;

/// No log has so many bytes, ever.
const FAR: u64 = 1 << 62;

/// Looks for the next message that are made at once.
const TRIES: usize = 4;

/// A record's head; records begin at multiples of it.
const HEAD: usize = 32;

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

/// The receiver's end.
#[derive(Debug)]
pub struct Reader {
    memory: Memory,
    ring: Ring,
    /// Bytes read, ever.
    read: u64,
}

/// A message, where it lies in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The head in its record.
    pub head: Head,
    /// Where its record begins, of all bytes ever.
    from: u64,
}

/// A log that its reader cannot believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a log of messages is broken at byte {0}: its sender is, or its memory")]
pub struct Broken(pub u64);

#[derive(Clone, Copy, Debug)]
struct Ring {
    /// A power of two.
    capacity: u64,
}

impl Ring {
    /// Where this byte lies in the memory, and how many follow until the end of the ring.
    fn at(self, byte: u64) -> (usize, u64) {
        let within = byte & (self.capacity - 1);
        (HEADER + within as usize, self.capacity - within)
    }
}

/// The bytes of a record with so many of a message.
fn record(length: u64) -> Option<u64> {
    length.checked_add(HEAD as u64)?.checked_next_multiple_of(HEAD as u64)
}

impl Writer {
    /// An empty log of so many bytes, rounded up to a power of two. Memory is taken as it is written.
    ///
    /// # Errors
    /// The system has no memory file of this size.
    pub fn new(capacity: usize) -> io::Result<Writer> {
        let capacity = capacity.max(HEADER).next_power_of_two();
        let (memory, file) = Memory::create("steadfast log", HEADER + capacity)?;
        memory.word(0).store(MAGIC, Ordering::Relaxed);
        let ring = Ring { capacity: capacity as u64 };
        Ok(Writer { memory, file, ring, written: 0, published: 0, released: 0 })
    }

    /// The memory, for the receiver.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that the log has now.
    pub fn bytes(&self) -> u64 {
        self.written - self.released
    }

    /// Writes a message. It is to be seen when it is [published](Writer::publish). Returns the place
    /// behind it.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn push(
        &mut self,
        (number, tag, check): (u64, u32, u32),
        bytes: &[u8],
    ) -> Result<u64, Full> {
        let record = record(bytes.len() as u64).filter(|it| *it <= self.ring.capacity / 2);
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
        for (place, word) in [number, mark, bytes.len() as u64].into_iter().enumerate() {
            self.memory.word(at + 8 * place).store(word, Ordering::Relaxed);
        }
        self.memory.write(at + HEAD, bytes);
        self.written += skipped + record;
        Ok(self.written)
    }

    /// The receiver may see all before this place.
    pub fn publish(&mut self, until: u64) {
        self.published = self.published.max(until.min(self.written));
        self.memory.word(PUBLISHED).store(self.published, Ordering::Release);
    }

    /// Nobody needs what is before this place.
    pub fn release(&mut self, until: u64) {
        self.released = self.released.max(until.min(self.written));
        self.publish(self.released);
        self.memory.word(RELEASED).store(self.released, Ordering::Release);
        // Before anything is written there: a reader that finds new bytes finds this word as well.
        fence(Ordering::SeqCst);
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
        if !capacity.is_power_of_two() || memory.word(0).load(Ordering::Relaxed) != MAGIC {
            let why = "the memory is no log of messages of this version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let ring = Ring { capacity: capacity as u64 };
        Ok(Reader { memory, ring, read: 0 })
    }

    /// A word of the header, as it is now.
    fn word(&self, at: usize) -> Result<u64, Broken> {
        // Only relaxed loads are defined where the memory cannot be written.
        let word = self.memory.word(at).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let fits = word.is_multiple_of(HEAD as u64) && word < FAR;
        if fits { Ok(word) } else { Err(Broken(self.read)) }
    }

    /// The next message, if there is one. Those that were let go are passed over.
    ///
    /// # Errors
    /// The log makes no sense.
    pub fn advance(&mut self) -> Result<Option<Found>, Broken> {
        // The second time behind the end of the ring; again if the writer lets go meanwhile.
        for _ in 0..TRIES {
            self.read = self.read.max(self.word(RELEASED)?);
            let published = self.word(PUBLISHED)?;
            if published <= self.read {
                return Ok(None);
            }
            let (at, left) = self.ring.at(self.read);
            let head = self.head(at);
            // The head is read before this word: else it could be one that was written since.
            fence(Ordering::Acquire);
            if self.word(RELEASED)? > self.read {
                continue;
            }
            let broken = Broken(self.read);
            if published - self.read > self.ring.capacity {
                return Err(broken);
            }
            if head.number == 0 {
                self.read += left;
                if self.read >= published {
                    return Err(broken);
                }
                continue;
            }
            let record = record(head.length).filter(|record| *record <= left).ok_or(broken)?;
            if record > published - self.read {
                return Err(broken);
            }
            let from = self.read;
            self.read += record;
            return Ok(Some(Found { head, from }));
        }
        Ok(None)
    }

    fn head(&self, at: usize) -> Head {
        let word = |place: usize| self.memory.word(at + place).load(Ordering::Relaxed);
        let (number, mark, length) = (word(0), word(8), word(16));
        // Little-endian: the tag comes first.
        Head { number, tag: mark as u32, check: (mark >> 32) as u32, length }
    }

    /// Copies the bytes of a message, as many as there is room for. False: it was let go meanwhile, and
    /// they are nothing.
    pub fn copy(&self, found: Found, to: &mut [u8]) -> bool {
        let many = to.len().min(found.head.length as usize);
        let (at, _) = self.ring.at(found.from);
        self.memory.read(at + HEAD, &mut to[..many]);
        fence(Ordering::Acquire);
        self.word(RELEASED).is_ok_and(|released| released <= found.from)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn bytes(number: u64) -> Vec<u8> {
        let length = number.wrapping_mul(0x9e37_79b9) % 3_000;
        (0..length).map(|at| (at ^ number) as u8).collect()
    }

    #[test]
    fn messages_go_around_the_ring_as_they_were_sent() {
        let mut writer = Writer::new(1 << 14).unwrap();
        let mut reader = Reader::open(writer.file()).unwrap();
        assert_eq!(reader.advance(), Ok(None));
        let mut ends = std::collections::VecDeque::new();
        for number in 1..2_000 {
            let message = bytes(number);
            while let Err(full) = writer.push((number, 7, 3), &message) {
                assert_eq!(full, Full::Now);
                writer.release(ends.pop_front().unwrap());
            }
            let end = writer.push((number + 10_000, 7, 3), &[]).unwrap_or(writer.written);
            let mark = writer.written;
            writer.publish(mark);
            ends.push_back(end);
            while let Some(found) = reader.advance().unwrap() {
                if found.head.number > 10_000 {
                    continue;
                }
                let head = Head { number, tag: 7, check: 3, length: message.len() as u64 };
                assert_eq!(found.head, head);
                let mut copy = vec![0; message.len()];
                assert!(reader.copy(found, &mut copy));
                assert_eq!(copy, message);
            }
        }
    }

    #[test]
    fn a_later_reader_begins_with_the_oldest_message_that_is_kept() {
        let mut writer = Writer::new(1 << 14).unwrap();
        let first = writer.push((1, 0, 0), b"one").unwrap();
        let second = writer.push((2, 0, 0), b"two").unwrap();
        writer.publish(second);
        writer.release(first);
        let mut reader = Reader::open(writer.file()).unwrap();
        assert_eq!(reader.advance().unwrap().unwrap().head.number, 2);
        assert_eq!(reader.advance(), Ok(None));
        assert_eq!(writer.bytes(), 64);
        assert_eq!(writer.push((3, 0, 0), &vec![0; 1 << 14]), Err(Full::Ever));
    }

    #[test]
    fn what_is_not_published_is_not_seen() {
        let mut writer = Writer::new(1 << 14).unwrap();
        let first = writer.push((1, 0, 0), b"one").unwrap();
        let second = writer.push((2, 0, 0), b"two").unwrap();
        let mut reader = Reader::open(writer.file()).unwrap();
        assert_eq!(reader.advance(), Ok(None));
        writer.publish(first);
        assert_eq!(reader.advance().unwrap().unwrap().head.number, 1);
        assert_eq!(reader.advance(), Ok(None));
        writer.publish(second);
        assert_eq!(reader.advance().unwrap().unwrap().head.number, 2);
    }

    #[test]
    fn threads_see_whole_messages() {
        let mut writer = Writer::new(1 << 16).unwrap();
        let mut reader = Reader::open(writer.file()).unwrap();
        let (told, taken) = std::sync::mpsc::channel();
        let body = move || {
            for number in 1..4_000 {
                let found = loop {
                    match reader.advance().unwrap() {
                        Some(found) => break found,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(found.head.number, number);
                let mut copy = vec![0; found.head.length as usize];
                assert!(reader.copy(found, &mut copy));
                assert_eq!(copy, bytes(number));
                told.send(reader.read).unwrap();
            }
        };
        let reads = thread::spawn(body);
        for number in 1..4_000 {
            let message = bytes(number);
            while let Err(full) = writer.push((number, 0, 0), &message) {
                assert_eq!(full, Full::Now);
                writer.release(taken.recv().unwrap());
            }
            let all = writer.written;
            writer.publish(all);
        }
        reads.join().unwrap();
    }

    #[test]
    fn a_log_that_makes_no_sense_is_refused_and_nobody_else_writes_there() {
        use std::io::Write;

        let none = tempfile::tempfile().unwrap();
        none.set_len(8_192).unwrap();
        assert!(Reader::open(&none).is_err(), "its memory could be taken away");
        let writer = Writer::new(1 << 14).unwrap();
        assert!(writer.file().try_clone().unwrap().write(b"x").is_err());
        writer.file().set_len(0).unwrap_err();
        let (published, released) = (writer.memory.word(PUBLISHED), writer.memory.word(RELEASED));
        for forged in [
            (33, 0),
            (1 << 40, 0),
            (64, 0),
            ((1 << 14) + 31, (1 << 14) - 1),
            (u64::MAX - 31, u64::MAX - 63),
            (u64::MAX, 0),
        ] {
            published.store(forged.0, Ordering::Release);
            released.store(forged.1, Ordering::Release);
            let mut reader = Reader::open(writer.file()).unwrap();
            assert!(reader.advance().is_err(), "{forged:?}");
        }
    }

    #[test]
    fn a_reader_passes_over_what_was_let_go() {
        let mut writer = Writer::new(1 << 13).unwrap();
        let mut reader = Reader::open(writer.file()).unwrap();
        let mut found = None;
        for number in 1..100 {
            let end = writer.push((number, 0, 0), &[number as u8; 1_000]).unwrap();
            // The first is not looked at for long.
            found = found.or_else(|| reader.advance().unwrap());
            writer.publish(end);
            if number % 4 == 0 {
                writer.release(end);
            }
        }
        let old = found.unwrap();
        assert_eq!(old.head.number, 1);
        assert!(!reader.copy(old, &mut [0; 1_000]), "it is overwritten");
        assert_eq!(reader.advance().unwrap().unwrap().head.number, 97);
        // One that may not leave yet is let go: nobody needs it.
        let end = writer.push((100, 0, 0), b"gated").unwrap();
        writer.release(end);
        let mut later = Reader::open(writer.file()).unwrap();
        assert_eq!((later.advance(), reader.advance()), (Ok(None), Ok(None)));
    }
}
