//! The manifest: which files count, and from where on.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_MANIFEST, MAX_SEGMENTS, MAX_SNAPSHOT, MAX_STRANDS};
use wire::ordered::Place;
use wire::{ClusterId, GroupId, NodeId, RingId};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FORMAT, Owner};
use crate::api::{OpenError, RecordId, Strand};

const MAGIC: [u8; 4] = *b"SFMA";

/// Where the log is cut: what the next batch has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The batch before; 0: there was none.
    pub number: u64,
    /// Its checksum; 0: there was none.
    pub checksum: u32,
    /// The number of the record that comes next.
    pub next: RecordId,
}

impl Link {
    /// Before the first batch of all.
    pub const START: Link = Link { number: 0, checksum: 0, next: RecordId(1) };
}

/// How much of a strand its snapshot covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its records up to this one are not needed any more.
    pub covers: RecordId,
    /// Where in the order it was taken.
    pub place: Place,
    /// The snapshot's number and the bytes of the state in it; `None`: the strand was forgotten.
    pub snapshot: Option<(u64, u64)>,
}

/// Which files of the folder count.
///
/// ```text
///  0      4          8         12       16      24        28     32         40      48           52     56         60
/// +------+----------+---------+--------+-------+---------+------+----------+-------+------------+------+----------+---
/// | SFMA | checksum | version | length | store | cluster | node | number   | next  | checksum   |  0   | segments | ...
/// |      |          |    1    |        |       |         |      | of batch | record| of batch   |      | count    |
/// +------+----------+---------+--------+-------+---------+------+----------+-------+------------+------+----------+---
///
/// checksum  CRC-32C of the bytes 8 to the end           length  of all bytes
/// | strands: count 4 | segments: each its number 8, ascending | strands, ascending: each an entry |
///
/// entry
/// | strand 4 | ring.rep 4 | group 8 | covers 8 | epoch 8 | ring.seq 8 | sequence 8 | snapshot 8 | bytes 8 |
///
/// strand    0: the node's, 1: a group's                 snapshot  its number; 0: none, the strand was forgotten
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The store, drawn at random when it was made.
    pub store: u64,
    /// The owner of the store.
    pub owner: Owner,
    /// The link that the first batch of the first segment follows.
    pub start: Link,
    /// The segments, ascending.
    pub segments: Vec<u64>,
    /// The records of each strand that are covered.
    pub strands: BTreeMap<Strand, Entry>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 4],
    checksum: U32,
    version: U32,
    length: U32,
    store: U64,
    cluster: U32,
    node: U32,
    number: U64,
    next: U64,
    before: U32,
    reserved: U32,
    segments: U32,
    strands: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct EntryBytes {
    strand: U32,
    representative: U32,
    group: U64,
    covers: U64,
    epoch: U64,
    ring: U64,
    sequence: U64,
    snapshot: U64,
    bytes: U64,
}

impl Manifest {
    /// The manifest of a store that has just been made.
    pub fn new(store: u64, owner: Owner) -> Manifest {
        Manifest {
            store,
            owner,
            start: Link::START,
            segments: Vec::new(),
            strands: BTreeMap::new(),
        }
    }

    /// The file.
    pub fn encode(&self) -> Bytes {
        let lists = 8 * self.segments.len() + size_of::<EntryBytes>() * self.strands.len();
        let length = size_of::<Head>() + lists;
        let head = Head {
            magic: MAGIC,
            checksum: 0.into(),
            version: FORMAT.into(),
            length: (length as u32).into(),
            store: self.store.into(),
            cluster: self.owner.cluster.0.into(),
            node: self.owner.node.0.into(),
            number: self.start.number.into(),
            next: self.start.next.0.into(),
            before: self.start.checksum.into(),
            reserved: 0.into(),
            segments: (self.segments.len() as u32).into(),
            strands: (self.strands.len() as u32).into(),
        };
        let mut buffer = Vec::with_capacity(length);
        buffer.extend_from_slice(head.as_bytes());
        for &segment in &self.segments {
            buffer.extend_from_slice(U64::from(segment).as_bytes());
        }
        for (&strand, entry) in &self.strands {
            buffer.extend_from_slice(entry_bytes(strand, entry).as_bytes());
        }
        assert!(buffer.len() <= MAX_MANIFEST, "lists have their limits");
        let checksum = crc32c::crc32c(&buffer[8..]);
        buffer[4..8].copy_from_slice(&checksum.to_le_bytes());
        buffer.into()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`OpenError::Version`] and [`OpenError::Manifest`] say what to do.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, OpenError> {
        let (head, _) = Head::read_from_prefix(bytes).map_err(|_| OpenError::Manifest)?;
        if head.magic != MAGIC {
            return Err(OpenError::Manifest);
        }
        let whole = head.checksum.get() == crc32c::crc32c(&bytes[8..]);
        // A checksum that fits vouches for the version; one of another version may be elsewhere.
        if head.version.get() != FORMAT {
            let theirs = head.version.get();
            return Err(if whole { OpenError::Version { theirs } } else { OpenError::Manifest });
        }
        if !whole || head.length.get() as usize != bytes.len() {
            return Err(OpenError::Manifest);
        }
        lists(&head, &bytes[size_of::<Head>()..]).ok_or(OpenError::Manifest)
    }
}

fn lists(head: &Head, mut rest: &[u8]) -> Option<Manifest> {
    let (segments, strands) = (head.segments.get() as usize, head.strands.get() as usize);
    if segments > MAX_SEGMENTS || strands > MAX_STRANDS || head.next.get() == 0 {
        return None;
    }
    let owner = Owner { cluster: ClusterId(head.cluster.get()), node: NodeId(head.node.get()) };
    let mut manifest = Manifest::new(head.store.get(), owner);
    let (number, checksum) = (head.number.get(), head.before.get());
    manifest.start = Link { number, checksum, next: RecordId(head.next.get()) };
    for _ in 0..segments {
        let (segment, after) = U64::read_from_prefix(rest).ok()?;
        if manifest.segments.last().is_some_and(|&last| last >= segment.get()) {
            return None;
        }
        manifest.segments.push(segment.get());
        rest = after;
    }
    for _ in 0..strands {
        let (bytes, after) = EntryBytes::read_from_prefix(rest).ok()?;
        let (strand, entry) = entry(&bytes)?;
        if manifest.strands.last_key_value().is_some_and(|(&last, _)| last >= strand) {
            return None;
        }
        manifest.strands.insert(strand, entry);
        rest = after;
    }
    rest.is_empty().then_some(manifest)
}

fn entry_bytes(strand: Strand, entry: &Entry) -> EntryBytes {
    let (strand, group) = match strand {
        Strand::Node => (0, 0),
        Strand::Group(group) => (1, group.0),
    };
    let (snapshot, bytes) = entry.snapshot.unwrap_or_default();
    EntryBytes {
        strand: strand.into(),
        representative: entry.place.ring.representative.0.into(),
        group: group.into(),
        covers: entry.covers.0.into(),
        epoch: entry.place.epoch.into(),
        ring: entry.place.ring.sequence.into(),
        sequence: entry.place.sequence.into(),
        snapshot: snapshot.into(),
        bytes: bytes.into(),
    }
}

fn entry(bytes: &EntryBytes) -> Option<(Strand, Entry)> {
    let strand = match (bytes.strand.get(), bytes.group.get()) {
        (0, 0) => Strand::Node,
        (1, group) => Strand::Group(GroupId(group)),
        _ => return None,
    };
    let ring =
        RingId { sequence: bytes.ring.get(), representative: NodeId(bytes.representative.get()) };
    let snapshot = match (bytes.snapshot.get(), bytes.bytes.get()) {
        (0, 0) => None,
        (0, _) => return None,
        (_, long) if long > MAX_SNAPSHOT as u64 => return None,
        snapshot => Some(snapshot),
    };
    let place = Place { epoch: bytes.epoch.get(), ring, sequence: bytes.sequence.get() };
    Some((strand, Entry { covers: RecordId(bytes.covers.get()), place, snapshot }))
}
