//! The transfer of a replica's state to replicas that have none.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{KeysState, Poison};
use crate::client::Refusal;
use crate::codec::{append, at_most, read_with};
use crate::limits::{
    MAX_KEYED_SESSIONS, MAX_LOGGED_STATE, MAX_POISONED, MAX_SESSION_REPLIES, MAX_SESSIONS,
    STATE_CHUNK,
};
use crate::{ClientId, GroupId, Malformed, Payload, Time, ViewNumber};

/// A chunk of a replica's state, for replicas that have none.
///
/// ```text
///  0      1      2        4       8       16         24
/// +------+------+--------+-------+-------+----------+------
/// | kind | last |   0    | index | group | transfer | bytes      at most STATE_CHUNK
/// |  6   | 0, 1 |        |       |       |          |
/// +------+------+--------+-------+-------+----------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChunk {
    /// Which group.
    pub group: GroupId,
    /// The view at whose installation the state was taken. It identifies the transfer.
    pub transfer: ViewNumber,
    /// Index of the chunk, from 0.
    pub index: u32,
    /// No chunk follows.
    pub last: bool,
    /// The bytes.
    pub bytes: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ChunkHeader {
    kind: u8,
    last: u8,
    reserved: U16,
    index: U32,
    group: U64,
    transfer: U64,
}

impl StateChunk {
    /// The payload to multicast.
    pub(super) fn payload(&self) -> Payload {
        let header = ChunkHeader {
            kind: 6,
            last: u8::from(self.last),
            reserved: 0.into(),
            index: self.index.into(),
            group: self.group.0.into(),
            transfer: self.transfer.0.into(),
        };
        Payload::new(header, self.bytes.clone())
    }

    /// Reads it; its bytes share `payload`.
    pub(super) fn decode(payload: &Bytes) -> Result<StateChunk, Malformed> {
        let (header, bytes) =
            ChunkHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        if header.last > 1 || header.reserved.get() != 0 {
            return Err(Malformed::Field("chunk flags"));
        }
        at_most(bytes.len(), STATE_CHUNK, "bytes")?;
        Ok(StateChunk {
            group: GroupId(header.group.get()),
            transfer: ViewNumber(header.transfer.get()),
            index: header.index.get(),
            last: header.last == 1,
            bytes: payload.slice(size_of::<ChunkHeader>()..),
        })
    }
}

/// The sender has a state for replicas that have none. They fetch it by a stream: it is too large to
/// be ordered. | group | transfer | bytes |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateOffer {
    /// Which group.
    pub group: GroupId,
    /// Which transfer, as in a [`StateChunk`].
    pub transfer: ViewNumber,
    /// Bytes of the state.
    pub bytes: u64,
}

impl StateOffer {
    pub(super) fn checked(self) -> Result<StateOffer, Malformed> {
        at_most(usize::try_from(self.bytes).unwrap_or(usize::MAX), MAX_LOGGED_STATE, "bytes")?;
        Ok(self)
    }
}

/// The sender's replica could not fetch the state of this transfer: it asks for chunks.
/// | group | transfer |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDeclined {
    /// Which group.
    pub group: GroupId,
    /// Which transfer.
    pub transfer: ViewNumber,
}

/// A replica's whole state, as a transfer carries it.
///
/// ```text
/// | length of the head 4 | head: executed, asks, updates, clock, sessions, poisoned, keys | the service's own state |
/// session   | client | unanswered | last used | replies: count, each (number, kept) |
///             asked: count, each (number, asked) |
/// keys      a [`KeysState`], only where calls are compared
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// The part that is not the service's.
    pub head: StateHead,
    /// The service's own state.
    pub service: Bytes,
}

/// The part of a replica's state that is not the service's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateHead {
    /// Requests executed in the group's history.
    pub executed: u64,
    /// In a voting group: nested calls that their handlers made since the group votes.
    pub asks: u64,
    /// In a passive group: updates taken in the group's history.
    pub updates: u64,
    /// Ordered time.
    pub clock: Time,
    /// The clients' sessions, in order of client.
    pub sessions: Vec<SessionState>,
    /// The latest poisonous calls, the oldest first.
    pub poisoned: Vec<Poison>,
    /// Digests of clients' calls, and the sessions that are forgotten; `None` where nobody compares
    /// calls.
    #[serde(skip)]
    pub keys: Option<KeysState>,
}

impl StateHead {
    /// Refuses lists that are longer than their limits.
    fn checked(self) -> Result<StateHead, Malformed> {
        at_most(self.sessions.len(), MAX_SESSIONS + MAX_KEYED_SESSIONS, "sessions")?;
        at_most(self.poisoned.len(), MAX_POISONED, "poisoned")?;
        self.poisoned.iter().try_for_each(Poison::check)?;
        for session in &self.sessions {
            at_most(session.replies.len(), MAX_SESSION_REPLIES, "replies")?;
            at_most(session.asked.len(), MAX_SESSION_REPLIES, "asked")?;
        }
        Ok(self)
    }
}

/// One client's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    /// The client.
    pub client: ClientId,
    /// The client has the replies to all calls below this number.
    pub unanswered: u64,
    /// Ordered time of its last request.
    pub last_used: Time,
    /// Replies by number, in order.
    pub replies: Vec<(u64, KeptReply)>,
    /// In the session of a calling group: the hash of each call (see [`asked`](super::asked)), by
    /// number, in order.
    pub asked: Vec<(u64, u64)>,
}

/// A reply that a replica keeps for retries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeptReply {
    /// The method's result.
    Ok(Vec<u8>),
    /// The service's own error.
    Service(Vec<u8>),
    /// The request could not be executed.
    Refused(Refusal, String),
}

impl ReplicaState {
    /// The bytes that a transfer carries. The service's are shared.
    pub fn encode(&self) -> Payload {
        let mut buffer = append(alloc::vec![0; 4], &self.head);
        if let Some(keys) = &self.head.keys {
            buffer = append(buffer, keys);
        }
        let length = u32::try_from(buffer.len() - 4).expect("kept replies are limited");
        buffer[..4].copy_from_slice(&length.to_le_bytes());
        Payload { head: buffer.into(), body: self.service.clone() }
    }

    /// Reads what [`ReplicaState::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<ReplicaState, Malformed> {
        let (length, rest) = U32::read_from_prefix(bytes).map_err(|_| Malformed::Length)?;
        let length = length.get() as usize;
        let head = rest.get(..length).ok_or(Malformed::Length)?;
        let (head, keys) = read_with::<StateHead, KeysState>(head)?;
        let keys = keys.map(KeysState::checked).transpose()?;
        let head = StateHead { keys, ..head.checked()? };
        Ok(ReplicaState { head, service: bytes.slice(4 + length..) })
    }
}
