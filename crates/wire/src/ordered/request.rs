//! A client's call, on the ring.

use alloc::vec::Vec;

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::codec::at_most;
use crate::limits::MAX_BODY;
use crate::{ClientId, GroupId, Malformed, MethodId, Time};

/// A client's call, with what makes its execution the same everywhere.
///
/// ```text
///  0      1       2        4        8       16       24       32           40     48     56
/// +------+-------+--------+--------+-------+--------+--------+------------+------+------+------
/// | kind | flags |   0    | method | group | client | number | unanswered | time | seed | body
/// |  1   |       |        |        |       |        |        |            |      |      |
/// +------+-------+--------+--------+-------+--------+--------+------------+------+------+------
/// flags  bit 0: the body is JSON, and so shall the reply be (calls by hand)
///        bit 1: a read that its group has ordered: it changes nothing
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The group that is called.
    pub group: GroupId,
    /// The method that is called.
    pub method: MethodId,
    /// Body and reply are JSON instead of postcard.
    pub json: bool,
    /// It changes nothing: its group's options order even reads.
    pub read: bool,
    /// Whose call.
    pub client: ClientId,
    /// Which of its calls, from 1.
    pub number: u64,
    /// The client has the replies to all calls below this number: theirs need not be kept.
    pub unanswered: u64,
    /// The primary's clock, nanoseconds since the Unix epoch.
    pub time: Time,
    /// Seed of the handler's random numbers.
    pub seed: u64,
    /// The arguments.
    pub body: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RequestHeader {
    kind: u8,
    flags: u8,
    reserved: U16,
    method: U32,
    group: U64,
    client: U64,
    number: U64,
    unanswered: U64,
    time: U64,
    seed: U64,
}

const JSON: u8 = 1;
const READ: u8 = 2;

impl Request {
    /// The payload to multicast.
    pub(super) fn encode(&self) -> Vec<u8> {
        let header = RequestHeader {
            kind: 1,
            flags: (u8::from(self.json) * JSON) | (u8::from(self.read) * READ),
            reserved: 0.into(),
            method: self.method.0.into(),
            group: self.group.0.into(),
            client: self.client.0.into(),
            number: self.number.into(),
            unanswered: self.unanswered.into(),
            time: self.time.0.into(),
            seed: self.seed.into(),
        };
        let mut buffer = Vec::with_capacity(size_of::<RequestHeader>() + self.body.len());
        buffer.extend_from_slice(header.as_bytes());
        buffer.extend_from_slice(&self.body);
        buffer
    }

    /// Reads it; its body shares `payload`.
    pub(super) fn decode(payload: &Bytes) -> Result<Request, Malformed> {
        let (header, body) =
            RequestHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        if header.flags & !(JSON | READ) != 0 || header.reserved.get() != 0 {
            return Err(Malformed::Field("request flags"));
        }
        if header.number.get() == 0 || header.unanswered.get() > header.number.get() {
            return Err(Malformed::Field("request number"));
        }
        at_most(body.len(), MAX_BODY, "body")?;
        Ok(Request {
            group: GroupId(header.group.get()),
            method: MethodId(header.method.get()),
            json: header.flags & JSON != 0,
            read: header.flags & READ != 0,
            client: ClientId(header.client.get()),
            number: header.number.get(),
            unanswered: header.unanswered.get(),
            time: Time(header.time.get()),
            seed: header.seed.get(),
            body: payload.slice(size_of::<RequestHeader>()..),
        })
    }
}
