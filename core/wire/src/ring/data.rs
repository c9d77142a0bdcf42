//! Ordered messages and their parts, laid out for a cast instead of a parse.

use core::mem::offset_of;
use core::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::Header;
use crate::{ClusterId, Incarnation, Malformed, Member, NodeId, RingId};

/// Ordered messages, or parts of them, under one sequence number.
///
/// ```text
///  0          8      12      13        16    24    32       40
/// +----------+------+-------+---------+-----+-----+--------+--------------------
/// | ring.seq | rep  | flags | 0  0  0 | hop | seq | stable | [origin] chunk ...
/// +----------+------+-------+---------+-----+-----+--------+--------------------
///
/// flags   bit 0: please acknowledge (Ack) at once
///         bit 1: recovered; an origin follows
///         bit 2: the sender has everything up to this
/// origin  old message that is sent again while a ring is being formed (32 bytes)
///         | old ring.seq 8 | old rep 4 | sender 4 | sender's incarnation 8 | old seq 8 |
/// chunk   | length 2 | part 1 | 0 | bytes |
/// part    bit 0: a message begins here      bit 1: a message ends here
///         bit 2: the message is safe        the same in all chunks of a datagram
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The ring that gave the sequence number.
    pub ring: RingId,
    /// The receiver is to answer with an [`Ack`](super::Ack) at once.
    pub ack_wanted: bool,
    /// Its sender has everything up to here: a receiver knows this of two members at once.
    pub complete: bool,
    /// How often the token had been passed when this was sent.
    pub hop: u64,
    /// Place in the ring's total order, from 1, without gaps.
    pub sequence: u64,
    /// Every member has everything up to here, as far as the sender knows.
    pub stable: u64,
    /// Set when this carries a message of an older ring.
    pub origin: Option<Origin>,
    /// The chunks, laid out as drawn. Walk them with [`Data::chunks`].
    pub body: Bytes,
}

/// The origin of an old message that a new ring's recovery sends again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The ring that it was first sent on.
    pub ring: RingId,
    /// The first sender.
    pub sender: Member,
    /// Its sequence number there.
    pub sequence: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DataHeader {
    ring_sequence: U64,
    representative: U32,
    flags: u8,
    reserved: [u8; 3],
    hop: U64,
    sequence: U64,
    stable: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct OriginHeader {
    ring_sequence: U64,
    representative: U32,
    sender: U32,
    incarnation: U64,
    sequence: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ChunkHeader {
    length: U16,
    part: u8,
    reserved: u8,
}

const ACK_WANTED: u8 = 1;
const RECOVERED: u8 = 2;
const COMPLETE: u8 = 4;
const FIRST: u8 = 1;
const LAST: u8 = 2;
const SAFE: u8 = 4;

/// Bytes of a datagram before the chunks of a first transmission.
pub const DATA_OVERHEAD: usize = size_of::<Header>() + size_of::<DataHeader>();
/// Further bytes when the data is recovered from an older ring.
pub const ORIGIN_OVERHEAD: usize = size_of::<OriginHeader>();
/// Bytes before each chunk's own.
pub const CHUNK_OVERHEAD: usize = size_of::<ChunkHeader>();

/// When a message of the total order is delivered. The order is one, whatever the levels.
///
/// Source: Totem (TOCS 13(4), 1995), section 2; `docs/protocol/ring.md`, "Two levels".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// When everything before it has been.
    #[default]
    Agreed,
    /// The same; and its sender is told as soon as can be who holds it. On the wire it is agreed:
    /// the difference is its sender's.
    Held,
    /// When, besides, every member of the configuration is known to have it: each will deliver it
    /// too, unless it fails.
    Safe,
}

impl Level {
    /// The level that receivers see: the wait for holders concerns the sender alone.
    pub fn seen(self) -> Level {
        if self == Level::Held { Level::Agreed } else { self }
    }
}

/// A message, or a part of one that is larger than a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The message begins with this chunk.
    pub first: bool,
    /// The message ends with this chunk.
    pub last: bool,
    /// The message's level.
    pub level: Level,
    /// The bytes.
    pub bytes: Bytes,
}

/// Appends a chunk to the body of a [`Data`], all of whose chunks have the same level.
///
/// # Panics
/// If `bytes` is longer than 65,535.
pub fn push_chunk(body: &mut impl BufMut, first: bool, last: bool, level: Level, bytes: &[u8]) {
    push_pieces(body, first, last, level, [bytes, &[]]);
}

/// The same, of a chunk that lies in two pieces.
///
/// # Panics
/// As [`push_chunk`].
pub fn push_pieces(
    body: &mut impl BufMut,
    first: bool,
    last: bool,
    level: Level,
    pieces: [&[u8]; 2],
) {
    let length = pieces[0].len() + pieces[1].len();
    let length = u16::try_from(length).expect("a chunk fits in a datagram");
    let safe = level == Level::Safe;
    let part = (u8::from(first) * FIRST) | (u8::from(last) * LAST) | (u8::from(safe) * SAFE);
    let header = ChunkHeader { length: length.into(), part, reserved: 0 };
    body.put_slice(header.as_bytes());
    pieces.iter().for_each(|piece| body.put_slice(piece));
}

impl Data {
    /// The chunks, in order. [`Datagram::decode`](super::Datagram::decode) has checked that they
    /// fill the body exactly.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> + '_ {
        let mut at = 0;
        core::iter::from_fn(move || {
            let (part, place) = chunk_at(&self.body, at).ok().flatten()?;
            at = place.end;
            let (first, last) = (part & FIRST != 0, part & LAST != 0);
            Some(Chunk { first, last, level: level_of(part), bytes: self.body.slice(place) })
        })
    }

    /// Makes a datagram of `draft`, which ends with the body: before it there is room, of whatever
    /// content, for what comes first ([`Data::overhead`]). The body of what is returned shares it.
    ///
    /// # Panics
    /// If there is not so much room.
    pub fn finish(
        mut self,
        cluster: ClusterId,
        version: u8,
        sender: Member,
        mut draft: BytesMut,
    ) -> (Data, Bytes) {
        let overhead = self.overhead();
        let mut room = &mut draft[..overhead];
        Header::new(cluster, version, sender, 1).append(&mut room);
        room.put_slice(self.header().as_bytes());
        if let Some(origin) = self.origin {
            room.put_slice(origin.header().as_bytes());
        }
        let datagram = draft.freeze();
        self.body = datagram.slice(overhead..);
        (self, datagram)
    }

    /// Bytes of its datagram before the body.
    pub fn overhead(&self) -> usize {
        DATA_OVERHEAD + if self.origin.is_some() { ORIGIN_OVERHEAD } else { 0 }
    }

    pub(super) fn header(&self) -> DataHeader {
        let recovered = u8::from(self.origin.is_some()) * RECOVERED;
        DataHeader {
            ring_sequence: self.ring.sequence.into(),
            representative: self.ring.representative.0.into(),
            flags: (u8::from(self.ack_wanted) * ACK_WANTED)
                | (u8::from(self.complete) * COMPLETE)
                | recovered,
            reserved: [0; 3],
            hop: self.hop.into(),
            sequence: self.sequence.into(),
            stable: self.stable.into(),
        }
    }

    /// The level of all messages in it.
    pub fn level(&self) -> Level {
        level_of(self.body.get(offset_of!(ChunkHeader, part)).copied().unwrap_or_default())
    }
}

impl Origin {
    pub(super) fn header(&self) -> OriginHeader {
        OriginHeader {
            ring_sequence: self.ring.sequence.into(),
            representative: self.ring.representative.0.into(),
            sender: self.sender.node.0.into(),
            incarnation: self.sender.incarnation.0.into(),
            sequence: self.sequence.into(),
        }
    }
}

fn level_of(part: u8) -> Level {
    if part & SAFE == 0 { Level::Agreed } else { Level::Safe }
}

/// The header of the chunk that starts at `at`, and where its bytes are; `None` at the body's end.
fn chunk_at(body: &[u8], at: usize) -> Result<Option<(u8, Range<usize>)>, Malformed> {
    let rest = &body[at..];
    if rest.is_empty() {
        return Ok(None);
    }
    let (header, after) = ChunkHeader::ref_from_prefix(rest).map_err(|_| Malformed::Length)?;
    let length = usize::from(header.length.get());
    if length > after.len() {
        return Err(Malformed::Length);
    }
    if header.part & !(FIRST | LAST | SAFE) != 0 || header.reserved != 0 {
        return Err(Malformed::Field("chunk part"));
    }
    let start = at + CHUNK_OVERHEAD;
    Ok(Some((header.part, start..start + length)))
}

pub(super) fn decode_data(bytes: Bytes) -> Result<Data, Malformed> {
    let (header, rest) = DataHeader::read_from_prefix(&bytes).map_err(|_| Malformed::Length)?;
    if header.flags & !(ACK_WANTED | RECOVERED | COMPLETE) != 0 || header.reserved != [0; 3] {
        return Err(Malformed::Field("data flags"));
    }
    let mut start = size_of::<DataHeader>();
    let origin = if header.flags & RECOVERED == 0 {
        None
    } else {
        let (origin, _) = OriginHeader::read_from_prefix(rest).map_err(|_| Malformed::Length)?;
        start += size_of::<OriginHeader>();
        let ring = RingId {
            sequence: origin.ring_sequence.get(),
            representative: NodeId(origin.representative.get()),
        };
        let sender = Member {
            node: NodeId(origin.sender.get()),
            incarnation: Incarnation(origin.incarnation.get()),
        };
        Some(Origin { ring, sender, sequence: origin.sequence.get() })
    };
    if header.sequence.get() == 0 || origin.is_some_and(|origin| origin.sequence == 0) {
        return Err(Malformed::Field("sequence"));
    }
    let body = bytes.slice(start..);
    let ring = RingId {
        sequence: header.ring_sequence.get(),
        representative: NodeId(header.representative.get()),
    };
    let data = Data {
        ring,
        ack_wanted: header.flags & ACK_WANTED != 0,
        complete: header.flags & COMPLETE != 0,
        hop: header.hop.get(),
        sequence: header.sequence.get(),
        stable: header.stable.get(),
        origin,
        body,
    };
    let (level, mut at) = (data.level(), 0);
    while let Some((part, place)) = chunk_at(&data.body, at)? {
        if level_of(part) != level {
            return Err(Malformed::Field("chunk level"));
        }
        at = place.end;
    }
    Ok(data)
}
