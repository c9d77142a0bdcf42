//! Updates and checkpoints, from a passive group's primary to its backups.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{EntryKey, KeptReply, Place, Poison};
use crate::codec::{append, at_most, read_with};
use crate::limits::{MAX_POISONED, MAX_UPDATE_CALLS, UPDATE_CHUNK};
use crate::{ClientId, GroupId, Malformed, NodeId, Payload, RingId, Time};

/// A chunk of an update or a checkpoint, from a passive group's primary to its backups. The place
/// of the whole in the order is that of its last chunk.
///
/// ```text
///  0      1      2      3     4       8       16       24      32         40    44         52
/// +------+------+------+-----+-------+-------+--------+-------+----------+-----+----------+------
/// | kind | last | what |  0  | index | group | number | epoch | ring.seq | rep | sequence | bytes
/// |  12  | 0, 1 | 0, 1 |     |       |       |        |       since: place              |
/// +------+------+------+-----+-------+-------+--------+-------+----------+-----+----------+------
/// what   0: an Update, 1: a checkpoint
/// bytes  at most UPDATE_CHUNK
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryChunk {
    /// Which group.
    pub group: GroupId,
    /// Whether it is part of an update or of a checkpoint.
    pub what: Told,
    /// Where its sender became the group's primary. If it was primary when the component was
    /// installed: that place. The chunk is valid only if this still holds at its place in the
    /// order.
    pub since: Place,
    /// The update's number in the group's history, from 1. For a checkpoint: the number of the last
    /// request that it contains.
    pub number: u64,
    /// Index of the chunk, from 0.
    pub index: u32,
    /// No chunk follows.
    pub last: bool,
    /// The bytes.
    pub bytes: Bytes,
}

/// The two kinds of data that a passive group's primary sends to its backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Told {
    /// In a warm passive group: the executed calls and their effects, an [`Update`].
    Update = 0,
    /// In a cold passive group: the state after a request, a [`ReplicaState`](super::ReplicaState).
    Checkpoint = 1,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ChunkHeader {
    kind: u8,
    last: u8,
    what: u8,
    reserved: u8,
    index: U32,
    group: U64,
    number: U64,
    epoch: U64,
    ring: U64,
    representative: U32,
    sequence: U64,
}

impl PrimaryChunk {
    /// The payload to multicast.
    pub(super) fn payload(&self) -> Payload {
        let header = ChunkHeader {
            kind: 12,
            last: u8::from(self.last),
            what: self.what as u8,
            reserved: 0,
            index: self.index.into(),
            group: self.group.0.into(),
            number: self.number.into(),
            epoch: self.since.epoch.into(),
            ring: self.since.ring.sequence.into(),
            representative: self.since.ring.representative.0.into(),
            sequence: self.since.sequence.into(),
        };
        Payload::new(header, self.bytes.clone())
    }

    /// Reads it; its bytes share `payload`.
    pub(super) fn decode(payload: &Bytes) -> Result<PrimaryChunk, Malformed> {
        let (header, bytes) =
            ChunkHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        let what = match header.what {
            0 => Told::Update,
            1 => Told::Checkpoint,
            _ => return Err(Malformed::Field("what a primary tells")),
        };
        if header.last > 1 || header.reserved != 0 {
            return Err(Malformed::Field("update flags"));
        }
        at_most(bytes.len(), UPDATE_CHUNK, "bytes")?;
        let representative = NodeId(header.representative.get());
        let ring = RingId { sequence: header.ring.get(), representative };
        let (epoch, sequence) = (header.epoch.get(), header.sequence.get());
        Ok(PrimaryChunk {
            group: GroupId(header.group.get()),
            what,
            since: Place { epoch, ring, sequence },
            number: header.number.get(),
            index: header.index.get(),
            last: header.last == 1,
            bytes: payload.slice(size_of::<ChunkHeader>()..),
        })
    }
}

/// Calls that a warm passive primary has executed, and their effects.
///
/// ```text
/// | length of the head 4 | head: clock, entries: count, each, poisoned: count, each, keys | change |
/// entry   | client | number | unanswered | asked | reply |
/// keys    of each entry, only where calls are compared: count, each (identity, asked)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The calls.
    pub head: UpdateHead,
    /// Their effect on the service's state: a [`Change`](super::Change).
    pub change: Bytes,
}

/// The calls of an [`Update`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateHead {
    /// The ordered time of the last of them.
    pub clock: Time,
    /// The calls in the order of their execution.
    pub entries: Vec<UpdateEntry>,
    /// Those of them that are poisonous. The primary refused them.
    pub poisoned: Vec<Poison>,
    /// How each of the calls is known again; none where all are by their numbers alone.
    #[serde(skip)]
    pub keys: Vec<EntryKey>,
}

impl UpdateHead {
    /// How the call of this entry is known again.
    pub fn key(&self, entry: usize) -> EntryKey {
        self.keys.get(entry).copied().unwrap_or_default()
    }
}

/// One executed call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateEntry {
    /// The client that called.
    pub client: ClientId,
    /// The number of the client's call.
    pub number: u64,
    /// The client has the replies to all calls below this number.
    pub unanswered: u64,
    /// The hash of a nested call: see [`asked`](super::asked). 0: a client's call.
    pub asked: u64,
    /// The outcome.
    pub reply: KeptReply,
}

impl Update {
    /// The bytes that the chunks carry.
    pub fn encode(&self) -> Bytes {
        let mut buffer = append(alloc::vec![0; 4], &self.head);
        if !self.head.keys.is_empty() {
            buffer = append(buffer, &self.head.keys);
        }
        let length = u32::try_from(buffer.len() - 4).expect("the calls of an update are limited");
        buffer[..4].copy_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(&self.change);
        buffer.into()
    }

    /// Reads what [`Update::encode`] wrote. The change shares `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<Update, Malformed> {
        let (length, rest) = U32::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        let length = length.get() as usize;
        let head = rest.get(..length).ok_or(Malformed::Length)?;
        let (head, keys) = read_with::<UpdateHead, Vec<EntryKey>>(head)?;
        let calls = head.entries.len();
        if keys.as_ref().is_some_and(|keys| keys.is_empty() || keys.len() != calls) {
            return Err(Malformed::Field("update keys"));
        }
        let head = UpdateHead { keys: keys.unwrap_or_default(), ..head };
        at_most(head.entries.len(), MAX_UPDATE_CALLS, "update entries")?;
        at_most(head.poisoned.len(), MAX_POISONED, "poisoned")?;
        head.poisoned.iter().try_for_each(Poison::check)?;
        Ok(Update { head, change: bytes.slice(4 + length..) })
    }
}
