//! A snapshot: the state of one strand, in a file of its own.

use alloc::vec::Vec;

use bytes::Bytes;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::FORMAT;

const MAGIC: [u8; 4] = *b"SFSN";

/// Bytes of the state in one piece of the file.
pub const PIECE: usize = 256 << 10;

/// Bytes before the first piece.
pub const SNAPSHOT_HEAD: usize = size_of::<Head>();

/// Bytes before each piece.
const PIECE_HEAD: usize = size_of::<PieceHead>();

/// The identity of a snapshot. The manifest has the rest.
///
/// ```text
///  0      4          8         12    16      24       32       40
/// +------+----------+---------+-----+-------+--------+--------+----------------
/// | SFSN | checksum | version |  0  | store | number | length | pieces
/// +------+----------+---------+-----+-------+--------+--------+----------------
///
/// checksum  CRC-32C of the bytes 8 to 39            length  bytes of the state
/// piece     | length 4 | check 4 | bytes |          at most PIECE bytes, and at least one
/// check     CRC-32C of length and bytes, begun with the check of the piece before (checksum)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHead {
    /// The store.
    pub store: u64,
    /// The snapshot's number.
    pub number: u64,
    /// Bytes of the state.
    pub length: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    checksum: U32,
    version: U32,
    reserved: U32,
    store: U64,
    number: U64,
    length: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PieceHead {
    length: U32,
    check: U32,
}

impl SnapshotHead {
    /// The file's beginning, and its checksum.
    pub fn encode(&self) -> (Bytes, u32) {
        let mut head = Head {
            magic: MAGIC,
            checksum: 0.into(),
            version: FORMAT.into(),
            reserved: 0.into(),
            store: self.store.into(),
            number: self.number.into(),
            length: self.length.into(),
        };
        let checksum = crc32c::crc32c(&head.as_bytes()[8..]);
        head.checksum = checksum.into();
        (Bytes::copy_from_slice(head.as_bytes()), checksum)
    }
}

/// A piece as it stands in the file, and its check. Its bytes are in two parts.
///
/// # Panics
/// If there are no bytes, or more than [`PIECE`].
pub fn piece(parts: [&[u8]; 2], before: u32) -> (Bytes, u32) {
    let count = parts[0].len() + parts[1].len();
    assert!((1..=PIECE).contains(&count), "a piece has its limits");
    let length = U32::from(count as u32);
    let mut buffer = Vec::with_capacity(PIECE_HEAD + count);
    buffer.extend_from_slice(PieceHead { length, check: 0.into() }.as_bytes());
    parts.iter().for_each(|part| buffer.extend_from_slice(part));
    let check = check(before, length, &buffer[PIECE_HEAD..]);
    buffer[..PIECE_HEAD].copy_from_slice(PieceHead { length, check: check.into() }.as_bytes());
    (buffer.into(), check)
}

fn check(before: u32, length: U32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(before, length.as_bytes()), bytes)
}

/// Reads a snapshot's file as it comes in from the disk.
#[derive(Debug)]
pub struct SnapshotReader {
    expected: SnapshotHead,
    check: Option<u32>,
    rest: Vec<u8>,
    state: Vec<u8>,
}

/// The file is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl SnapshotReader {
    /// Reads this snapshot.
    pub fn new(expected: SnapshotHead) -> SnapshotReader {
        SnapshotReader { expected, check: None, rest: Vec::new(), state: Vec::new() }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// `Damaged`, and nothing more is to be given.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Damaged> {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        if self.check.is_none() && self.rest.len() >= SNAPSHOT_HEAD {
            let (head, checksum) = self.expected.encode();
            if self.rest[..SNAPSHOT_HEAD] != head[..] {
                return Err(Damaged);
            }
            self.check = Some(checksum);
            at = SNAPSHOT_HEAD;
        }
        let Some(mut before) = self.check else { return Ok(()) };
        while let Ok((head, after)) = PieceHead::read_from_prefix(&self.rest[at..]) {
            let length = head.length.get() as usize;
            if !(1..=PIECE).contains(&length) {
                return Err(Damaged);
            }
            let Some(bytes) = after.get(..length) else { break };
            if check(before, head.length, bytes) != head.check.get() {
                return Err(Damaged);
            }
            if (self.state.len() + length) as u64 > self.expected.length {
                return Err(Damaged);
            }
            self.state.extend_from_slice(bytes);
            before = head.check.get();
            at += PIECE_HEAD + length;
        }
        self.check = Some(before);
        self.rest.drain(..at);
        Ok(())
    }

    /// The state, when the whole file has been given.
    ///
    /// # Errors
    /// `Damaged` if it is shorter or longer than it should be.
    pub fn finish(self) -> Result<Bytes, Damaged> {
        let whole = self.check.is_some()
            && self.rest.is_empty()
            && self.state.len() as u64 == self.expected.length;
        if whole { Ok(self.state.into()) } else { Err(Damaged) }
    }
}
