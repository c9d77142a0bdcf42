//! A batch: the records of one write, made durable by one sync.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_BATCH, MAX_RECORD};
use wire::ordered::Place;
use wire::{GroupId, NodeId, RingId};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK, FORMAT};
use crate::api::{Record, RecordId, Strand};

/// Size of a batch's head.
pub const BATCH_HEAD: usize = size_of::<Head>();

/// Size of a record's head.
pub(crate) const RECORD_HEAD: usize = size_of::<RecordHead>();

const MAGIC: [u8; 4] = *b"SFLB";

/// Bit of `flags`: the batch repeats the last batch of the node's previous life.
const REPEAT: u16 = 1;

/// The segment that a batch belongs to. A batch with another identity is stale, or of another
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The store's id, drawn at random when the store was created.
    pub store: u64,
    /// The segment's number.
    pub segment: u64,
}

/// Records under a common head, written at once.
///
/// ```text
///  0      4          8         10      12     16      24        32       40       48      52       56       60     64
/// +------+----------+---------+-------+------+-------+---------+--------+--------+-------+--------+--------+------+---------
/// | SFLB | checksum | version | flags |  0   | store | segment | number | first  | count | length | before | body | records
/// +------+----------+---------+-------+------+-------+---------+--------+--------+-------+--------+--------+------+---------
///
/// checksum  CRC-32C of bytes 8 to 63
/// flags     bit 0: repeat
/// number    the batch's, from 1; in a mark, the marked batch's
/// first     number of the first record, from 1; in a mark, of the next record
/// count     number of records; 0: a mark
/// length    bytes of the records
/// before    checksum of the previous batch; in a mark, of the marked batch
/// body      check of the last record; in a mark 0
///
/// record
///  0        4       8      9        10     12         16      24      32         40         48
/// +--------+-------+------+--------+------+----------+-------+-------+----------+----------+-------
/// | length | check | kind | strand |  0   | ring.rep | group | epoch | ring.seq | sequence | bytes
/// +--------+-------+------+--------+------+----------+-------+-------+----------+----------+-------
///
/// check     CRC-32C of bytes 0 to 3 and 8 to the end; it starts from the check of the previous
///           record in the batch, the first one from 0
/// strand    0: the node's, and group is 0; 1: a group's
/// ```
///
/// A batch begins at a block's boundary. Zeros fill the rest of its last block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The batch's number in the log, from 1 without gaps; in a mark, the marked batch's number.
    pub number: u64,
    /// The number of the first record; in a mark, of the next record.
    pub first: RecordId,
    /// The checksum of the previous batch; in a mark, of the marked batch.
    pub before: u32,
    /// The batch repeats the last batch of the node's previous life.
    pub repeat: bool,
    /// Empty in a mark, which only confirms that the marked batch is on the disk.
    pub records: Vec<Record>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    checksum: U32,
    version: U16,
    flags: U16,
    reserved: U32,
    store: U64,
    segment: U64,
    number: U64,
    first: U64,
    count: U32,
    length: U32,
    before: U32,
    body: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RecordHead {
    length: U32,
    check: U32,
    kind: u8,
    strand: u8,
    reserved: U16,
    representative: U32,
    group: U64,
    epoch: U64,
    ring: U64,
    sequence: U64,
}

/// Rounds a number of bytes up to whole blocks.
pub fn padded(bytes: usize) -> usize {
    bytes.div_ceil(BLOCK) * BLOCK
}

/// The result of reading at a place where a batch may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A batch, with its checksum and the bytes of its blocks.
    Whole(Batch, u32, usize),
    /// A batch of this segment with this number: the head is valid, the records are not.
    Torn(u64),
    /// No batch of this segment.
    Nothing,
}

impl Batch {
    /// Whether this is a mark: no records, a confirmation that the batch `number` is on the disk.
    pub fn is_mark(&self) -> bool {
        self.records.is_empty()
    }

    /// The number of the first record after this batch.
    pub fn next(&self) -> RecordId {
        RecordId(self.first.0.saturating_add(self.records.len() as u64))
    }

    /// Bytes of the batch on the disk, in whole blocks.
    pub fn size(&self) -> usize {
        padded(self.records.iter().fold(BATCH_HEAD, |sum, record| sum + size_of_record(record)))
    }

    /// The batch's bytes in whole blocks, and its checksum.
    ///
    /// # Panics
    /// If a record or the batch is longer than its limit.
    pub(crate) fn encode(&self, identity: Identity) -> (Bytes, u32) {
        let mut buffer = Vec::with_capacity(self.size());
        buffer.resize(BATCH_HEAD, 0);
        let mut check = 0;
        for record in &self.records {
            check = append(&mut buffer, record, check);
        }
        let length = u32::try_from(buffer.len() - BATCH_HEAD).expect("MAX_BATCH fits");
        let mut head = Head {
            magic: MAGIC,
            checksum: 0.into(),
            version: (FORMAT as u16).into(),
            flags: if self.repeat { REPEAT.into() } else { 0.into() },
            reserved: 0.into(),
            store: identity.store.into(),
            segment: identity.segment.into(),
            number: self.number.into(),
            first: self.first.0.into(),
            count: (self.records.len() as u32).into(),
            length: length.into(),
            before: self.before.into(),
            body: check.into(),
        };
        let checksum = crc32c::crc32c(&head.as_bytes()[8..]);
        head.checksum = checksum.into();
        buffer[..BATCH_HEAD].copy_from_slice(head.as_bytes());
        buffer.resize(padded(buffer.len()), 0);
        (buffer.into(), checksum)
    }

    /// Reads the batch at the beginning of `bytes`. Its records share them.
    pub(crate) fn decode(bytes: &Bytes, identity: Identity) -> Found {
        let Some(head) = head_of(bytes, identity) else { return Found::Nothing };
        let number = head.number.get();
        let length = head.length.get() as usize;
        let Some(end) = BATCH_HEAD.checked_add(length).filter(|&end| end <= bytes.len()) else {
            return Found::Torn(number);
        };
        let mut rest = bytes.slice(BATCH_HEAD..end);
        let mut records = Vec::new();
        let mut check = 0;
        while !rest.is_empty() {
            match take(&mut rest, check) {
                Some((record, next)) => {
                    check = next;
                    records.push(record);
                }
                None => return Found::Torn(number),
            }
        }
        if records.len() != head.count.get() as usize || check != head.body.get() {
            return Found::Torn(number);
        }
        let batch = Batch {
            number,
            first: RecordId(head.first.get()),
            before: head.before.get(),
            repeat: head.flags.get() == REPEAT,
            records,
        };
        Found::Whole(batch, head.checksum.get(), padded(end))
    }
}

fn head_of(bytes: &[u8], identity: Identity) -> Option<Head> {
    let (head, _) = Head::read_from_prefix(bytes).ok()?;
    let ours = head.magic == MAGIC
        && head.checksum.get() == crc32c::crc32c(&bytes[8..BATCH_HEAD])
        && u32::from(head.version.get()) == FORMAT
        && head.flags.get() <= REPEAT
        && head.reserved.get() == 0
        && head.store.get() == identity.store
        && head.segment.get() == identity.segment
        && head.length.get() as usize <= MAX_BATCH
        && head.number.get() > 0
        && head.first.get() > 0
        && (head.count.get() > 0 || head.length.get() == 0);
    ours.then_some(head)
}

/// Size of a record with its head.
pub(crate) fn size_of_record(record: &Record) -> usize {
    RECORD_HEAD + record.bytes.len()
}

/// Appends a record, and returns its check. `before` is the check of the previous record.
fn append(buffer: &mut Vec<u8>, record: &Record, before: u32) -> u32 {
    assert!(record.bytes.len() <= MAX_RECORD, "longer ones are refused at the door");
    let (strand, group) = match record.strand {
        Strand::Node => (0, 0),
        Strand::Group(group) => (1, group.0),
    };
    let mut head = RecordHead {
        length: (record.bytes.len() as u32).into(),
        check: 0.into(),
        kind: record.kind,
        strand,
        reserved: 0.into(),
        representative: record.place.ring.representative.0.into(),
        group: group.into(),
        epoch: record.place.epoch.into(),
        ring: record.place.ring.sequence.into(),
        sequence: record.place.sequence.into(),
    };
    let check = check(before, head.as_bytes(), &record.bytes);
    head.check = check.into();
    buffer.extend_from_slice(head.as_bytes());
    buffer.extend_from_slice(&record.bytes);
    check
}

fn check(before: u32, head: &[u8], bytes: &[u8]) -> u32 {
    let length = crc32c::crc32c_append(before, &head[..4]);
    crc32c::crc32c_append(crc32c::crc32c_append(length, &head[8..]), bytes)
}

/// Takes a record off the front, and returns it with its check; `None` if it is not valid.
fn take(rest: &mut Bytes, before: u32) -> Option<(Record, u32)> {
    let (head, _) = RecordHead::read_from_prefix(rest).ok()?;
    let length = head.length.get() as usize;
    if length > MAX_RECORD || RECORD_HEAD + length > rest.len() {
        return None;
    }
    let whole = rest.split_to(RECORD_HEAD + length);
    let bytes = whole.slice(RECORD_HEAD..);
    if check(before, head.as_bytes(), &bytes) != head.check.get() || head.reserved.get() != 0 {
        return None;
    }
    let strand = match (head.strand, head.group.get()) {
        (0, 0) => Strand::Node,
        (1, group) => Strand::Group(GroupId(group)),
        _ => return None,
    };
    let ring =
        RingId { sequence: head.ring.get(), representative: NodeId(head.representative.get()) };
    let place = Place { epoch: head.epoch.get(), ring, sequence: head.sequence.get() };
    Some((Record { strand, kind: head.kind, place, bytes }, head.check.get()))
}
