//! Messages between the nodes of a ring: one message, one datagram.
//!
//! Every datagram starts with the same header (little-endian, as everything here):
//!
//! ```text
//!  0       2         3      4         8        12          16            24
//! +-------+---------+------+---------+--------+-----------+-------------+----
//! | "SF"  | version | kind | cluster | sender | reserved  | incarnation | body
//! |       |    1    |      |         |  node  |     0     |  of sender  |
//! +-------+---------+------+---------+--------+-----------+-------------+----
//! ```
//!
//! | kind | body | who sends it to whom |
//! | --- | --- | --- |
//! | 1 | [`Data`] | the token's holder to every member: ordered messages |
//! | 2 | [`Token`] | the token's holder to the next one |
//! | 3 | [`Ack`] | a member to the holder that asked for it |
//! | 4 | [`Want`] | a member with something to order to every member |
//! | 5 | [`Join`] | a node that gathers a membership to every configured node |
//! | 6 | [`Commit`] | a new ring's representative to its members, and back |
//! | 7 | [`Beacon`] | a node to one that is not in its ring: "here is a ring" |
//! | 9 | [`Stable`] | a member to every member: "all have everything up to here" |
//!
//! Kind 8 is a [`Report`](crate::report::Report), which the ring does not see.

mod membership;

use alloc::vec::Vec;
use core::mem::offset_of;
use core::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::arena::Arena;
use crate::codec::{append, at_most, read};
use crate::limits::{MAX_MEMBERS, MAX_RETRANSMIT_REQUESTS};
use crate::{ClusterId, Incarnation, Malformed, Member, NodeId, PROTOCOL_VERSION, RingId};

pub use membership::{Beacon, Commit, CommitMember, CommitStep, Join, MAX_ENTRIES};
use membership::{checked_beacon, checked_commit, checked_join};

const MAGIC: [u8; 2] = *b"SF";

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 2],
    version: u8,
    pub kind: u8,
    cluster: U32,
    sender: U32,
    reserved: U32,
    incarnation: U64,
}

/// Where in a datagram its kind stands.
pub(crate) const KIND_AT: usize = core::mem::offset_of!(Header, kind);

impl Header {
    pub fn new(cluster: ClusterId, sender: Member, kind: u8) -> Header {
        Header {
            magic: MAGIC,
            version: PROTOCOL_VERSION,
            kind,
            cluster: cluster.0.into(),
            sender: sender.node.0.into(),
            reserved: 0.into(),
            incarnation: sender.incarnation.0.into(),
        }
    }

    pub fn append(&self, buffer: &mut impl BufMut) {
        buffer.put_slice(self.as_bytes());
    }

    /// The header of a datagram of `cluster`, and what follows it.
    pub fn read(cluster: ClusterId, bytes: &[u8]) -> Result<(Header, &[u8]), Malformed> {
        let (header, body) = Header::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        if header.magic != MAGIC {
            return Err(Malformed::Magic);
        }
        if header.version != PROTOCOL_VERSION {
            return Err(Malformed::Version { theirs: header.version });
        }
        if header.cluster.get() != cluster.0 {
            return Err(Malformed::Cluster);
        }
        if header.reserved.get() != 0 {
            return Err(Malformed::Field("reserved"));
        }
        Ok((header, body))
    }

    pub fn member(&self) -> Member {
        Member { node: NodeId(self.sender.get()), incarnation: Incarnation(self.incarnation.get()) }
    }
}

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
    /// The receiver is to answer with an [`Ack`] at once.
    pub ack_wanted: bool,
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

/// What an old message was, when a new ring's recovery sends it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The ring that it was first sent on.
    pub ring: RingId,
    /// Who sent it first.
    pub sender: Member,
    /// Its sequence number there.
    pub sequence: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct DataHeader {
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
struct OriginHeader {
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

/// Room that is made for what has lists; a longer one makes its buffer grow.
const LONGEST: usize = 1_024;

const ACK_WANTED: u8 = 1;
const RECOVERED: u8 = 2;
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
    /// When, besides, every member of the configuration is known to have it: each will deliver it
    /// too, unless it fails.
    Safe,
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
    let length = u16::try_from(bytes.len()).expect("a chunk fits in a datagram");
    let safe = level == Level::Safe;
    let part = (u8::from(first) * FIRST) | (u8::from(last) * LAST) | (u8::from(safe) * SAFE);
    let header = ChunkHeader { length: length.into(), part, reserved: 0 };
    body.put_slice(header.as_bytes());
    body.put_slice(bytes);
}

impl Data {
    /// The chunks, in order. [`Datagram::decode`] has checked that they fill the body exactly.
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
        sender: Member,
        mut draft: BytesMut,
    ) -> (Data, Bytes) {
        let overhead = self.overhead();
        let mut room = &mut draft[..overhead];
        Header::new(cluster, sender, 1).append(&mut room);
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

    fn header(&self) -> DataHeader {
        let recovered = u8::from(self.origin.is_some()) * RECOVERED;
        DataHeader {
            ring_sequence: self.ring.sequence.into(),
            representative: self.ring.representative.0.into(),
            flags: (u8::from(self.ack_wanted) * ACK_WANTED) | recovered,
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
    fn header(&self) -> OriginHeader {
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

/// The right to send, and what the ring knows of itself. Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | hop | seq | arus: count, each | done | received | wants | home | missing: count, each | following |
/// ```
///
/// Beyond the paper's token: it carries every member's own all-received-up-to instead of their
/// minimum, so that it may skip members (see docs/protocol/ring.md, "parking").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The ring whose token this is.
    pub ring: RingId,
    /// How often the token has been passed. One that is not larger than the last seen is a copy.
    pub hop: u64,
    /// The last sequence number given out.
    pub sequence: u64,
    /// For each member, in ring order: it has everything up to here.
    pub arus: Vec<u64>,
    /// Recovery: bit i is set when member i has sent again all that it holds of its old ring.
    pub done: u64,
    /// Recovery: bit i is set when member i has found all bits of `done` set and has everything
    /// that was sent. With all bits set, whoever sees this may install the ring.
    pub received: u64,
    /// Bit i is set when member i waits for the token.
    pub wants: u64,
    /// Index of the member that sent last: where an idle token rests.
    pub home: u8,
    /// Sequence numbers that somebody misses and whoever has them is to send again.
    pub missing: Vec<u64>,
    /// So many of the last numbers given out leave after the token (the accelerated ring): who
    /// lacks one of them at the token's arrival does not miss it yet.
    pub following: u16,
}

/// "I have everything up to `aru`, and miss these." Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep | hop | aru | missing: count, each |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// The largest hop that the sender has seen: also the receipt for a token.
    pub hop: u64,
    /// Everything up to here has arrived.
    pub aru: u64,
    /// What is missing beyond, as far as known.
    pub missing: Vec<u64>,
}

/// "I have something to order." Postcard, fields in this order.
///
/// ```text
/// | ring.seq | rep |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The ring whose token is wanted.
    pub ring: RingId,
}

/// "Every member has everything up to here": what safe messages wait for, when no data follows that
/// would say it. From a member that knows less than its receiver it is a question, which is answered
/// by the same. Postcard, in this order.
///
/// ```text
/// | ring.seq | rep | hop | stable |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stable {
    /// The ring that is spoken of.
    pub ring: RingId,
    /// The largest hop that the sender has seen.
    pub hop: u64,
    /// Every member has everything up to here, as far as the sender knows.
    pub stable: u64,
}

/// What a datagram says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Ordered messages.
    Data(Data),
    /// The right to send.
    Token(Token),
    /// What has arrived.
    Ack(Ack),
    /// The token is wanted.
    Want(Want),
    /// A proposal of a membership.
    Join(Join),
    /// The commit token.
    Commit(Commit),
    /// A ring shows itself.
    Beacon(Beacon),
    /// What every member has.
    Stable(Stable),
}

/// A message with its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The cluster of the sender.
    pub cluster: ClusterId,
    /// Who sent it.
    pub sender: Member,
    /// What it says.
    pub message: Message,
}

impl Datagram {
    /// The bytes to send.
    pub fn encode(&self) -> Bytes {
        self.encode_in(&mut Arena::new(0))
    }

    /// The bytes to send, written into `arena`.
    pub fn encode_in(&self, arena: &mut Arena) -> Bytes {
        let header = |arena: &mut Arena, kind, room| {
            let buffer = arena.room(size_of::<Header>() + room);
            Header::new(self.cluster, self.sender, kind).append(buffer);
        };
        match &self.message {
            Message::Data(data) => {
                header(arena, 1, DATA_OVERHEAD + ORIGIN_OVERHEAD + data.body.len());
                let buffer = arena.written();
                buffer.put_slice(data.header().as_bytes());
                if let Some(origin) = data.origin {
                    buffer.put_slice(origin.header().as_bytes());
                }
                buffer.put_slice(&data.body);
                return arena.take();
            }
            Message::Token(_) => header(arena, 2, LONGEST),
            Message::Ack(_) => header(arena, 3, LONGEST),
            Message::Want(_) => header(arena, 4, 32),
            Message::Join(_) => header(arena, 5, LONGEST),
            Message::Commit(_) => header(arena, 6, LONGEST),
            Message::Beacon(_) => header(arena, 7, 32),
            Message::Stable(_) => header(arena, 9, 64),
        }
        let tail = Tail(arena.written());
        match &self.message {
            Message::Data(_) => unreachable!("done above"),
            Message::Token(token) => append(tail, token),
            Message::Ack(ack) => append(tail, ack),
            Message::Want(want) => append(tail, want),
            Message::Join(join) => append(tail, join),
            Message::Commit(commit) => append(tail, commit),
            Message::Beacon(beacon) => append(tail, beacon),
            Message::Stable(stable) => append(tail, stable),
        };
        arena.take()
    }

    /// Reads a datagram that belongs to `cluster`. The body of a [`Data`] shares `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong; the datagram is to be counted and dropped.
    pub fn decode(cluster: ClusterId, bytes: &Bytes) -> Result<Datagram, Malformed> {
        let (header, body) = Header::read(cluster, bytes)?;
        let message = match header.kind {
            1 => Message::Data(decode_data(bytes.slice(size_of::<Header>()..))?),
            2 => Message::Token(checked_token(read(body)?)?),
            3 => Message::Ack(checked_ack(read(body)?)?),
            4 => Message::Want(read(body)?),
            5 => Message::Join(checked_join(read(body)?)?),
            6 => Message::Commit(checked_commit(read(body)?)?),
            7 => Message::Beacon(checked_beacon(read(body)?)?),
            9 => Message::Stable(read(body)?),
            kind => return Err(Malformed::Kind(kind)),
        };
        Ok(Datagram { cluster, sender: header.member(), message })
    }
}

/// The end of a buffer, for postcard.
struct Tail<'a>(&'a mut BytesMut);

impl Extend<u8> for Tail<'_> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        bytes.into_iter().for_each(|byte| self.0.put_u8(byte));
    }
}

fn decode_data(bytes: Bytes) -> Result<Data, Malformed> {
    let (header, rest) = DataHeader::read_from_prefix(&bytes).map_err(|_| Malformed::Length)?;
    if header.flags & !(ACK_WANTED | RECOVERED) != 0 || header.reserved != [0; 3] {
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

fn checked_token(token: Token) -> Result<Token, Malformed> {
    at_most(token.arus.len(), MAX_MEMBERS, "arus")?;
    at_most(token.missing.len(), MAX_RETRANSMIT_REQUESTS, "missing")?;
    if token.arus.is_empty() || usize::from(token.home) >= token.arus.len() {
        return Err(Malformed::Field("home"));
    }
    Ok(token)
}

fn checked_ack(ack: Ack) -> Result<Ack, Malformed> {
    at_most(ack.missing.len(), MAX_RETRANSMIT_REQUESTS, "missing")?;
    Ok(ack)
}
