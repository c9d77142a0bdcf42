//! The state of a history that was given up, for the group that goes on
//! (`docs/protocol/group.md`, "Merges").

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Identity, Request};
use crate::codec::at_most;
use crate::limits::{MAX_DEADLINE, UPDATE_CHUNK};
use crate::system::MERGE;
use crate::{ClientId, GroupId, Malformed, Payload, Time, ViewNumber};

/// A piece of the state of a history that was given up. The group's replicas merge the whole with
/// theirs, as a call of [`MERGE`], at the place of the last piece. All pieces have to be ordered in
/// one view of the group. From level [`WHOLE`](crate::versions::WHOLE) on.
///
/// ```text
///  0      1      2        4       8       16     24       32
/// +------+------+--------+-------+-------+------+--------+------
/// | kind | last |   0    | index | group | view | parted | bytes     at most UPDATE_CHUNK
/// |  38  | 0, 1 |        |       |       |      |        |
/// +------+------+--------+-------+-------+------+--------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeChunk {
    /// Which group.
    pub group: GroupId,
    /// The group's view when the first piece was sent.
    pub view: ViewNumber,
    /// Which history was given up: the client of the call. Replicas that had it alike name it alike.
    pub parted: ClientId,
    /// Index of the piece, from 0.
    pub index: u32,
    /// No piece follows.
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
    view: U64,
    parted: U64,
}

impl MergeChunk {
    /// The payload to multicast.
    pub(super) fn payload(&self) -> Payload {
        let header = ChunkHeader {
            kind: 38,
            last: u8::from(self.last),
            reserved: 0.into(),
            index: self.index.into(),
            group: self.group.0.into(),
            view: self.view.0.into(),
            parted: self.parted.0.into(),
        };
        Payload::new(header, self.bytes.clone())
    }

    /// Reads it; its bytes share `payload`.
    pub(super) fn decode(payload: &Bytes) -> Result<MergeChunk, Malformed> {
        let (header, bytes) =
            ChunkHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        if header.last > 1 || header.reserved.get() != 0 {
            return Err(Malformed::Field("merge flags"));
        }
        at_most(bytes.len(), UPDATE_CHUNK, "bytes")?;
        Ok(MergeChunk {
            group: GroupId(header.group.get()),
            view: ViewNumber(header.view.get()),
            parted: ClientId(header.parted.get()),
            index: header.index.get(),
            last: header.last == 1,
            bytes: payload.slice(size_of::<ChunkHeader>()..),
        })
    }

    /// The call at the place of the last piece, with the whole state.
    pub fn call(&self, state: Bytes) -> Request {
        Request {
            group: self.group,
            method: MERGE,
            json: false,
            read: false,
            client: self.parted,
            number: 1,
            unanswered: 1,
            time: Time::ZERO,
            seed: 0,
            proven: 0,
            timeout_us: MAX_DEADLINE.as_micros() as u32,
            priority: 0,
            // Its session lives as long as those of keys: another replica may merge the same late.
            identity: Identity::Key,
            origin: None,
            body: state,
        }
    }
}
