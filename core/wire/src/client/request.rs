//! A call, as a client sends it.

use alloc::vec::Vec;

use bytes::Bytes;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::payload::pieces;
use crate::{ClientId, GroupId, Malformed, MethodId, ViewNumber};

const JSON: u8 = 1;
const READ: u8 = 2;
const STALE: u8 = 4;
const BESIDE: u8 = 8;
const KEY: u8 = 16;

/// The effect of a call on the service's state, and so how it is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// It may change it: it is ordered, and executed once by every replica that its group's style
    /// names.
    #[default]
    Change,
    /// It changes nothing: one replica executes it, without ordering, and answers what was true at
    /// some moment between the call and its answer (linearizable).
    Read,
    /// It changes nothing: one replica executes it at once, if it knows that it has all that was
    /// answered this long ago.
    Stale {
        /// The bound, in milliseconds, from 1.
        max_age_ms: u16,
    },
}

impl Access {
    /// The call changes nothing.
    pub fn reads(self) -> bool {
        self != Access::Change
    }

    fn flags(self) -> u8 {
        match self {
            Access::Change => 0,
            Access::Read => READ,
            Access::Stale { .. } => READ | STALE,
        }
    }

    fn decode(flags: u8, max_age_ms: u16) -> Option<Access> {
        match (flags & (READ | STALE), max_age_ms) {
            (0, 0) => Some(Access::Change),
            (READ, 0) => Some(Access::Read),
            (both, max_age_ms) if both == READ | STALE && max_age_ms > 0 => {
                Some(Access::Stale { max_age_ms })
            }
            _ => None,
        }
    }
}

/// A call.
///
/// ```text
///  0       8        16       24           32     40       44         48      49   50        52
/// +-------+--------+--------+------------+------+--------+----------+-------+----+---------+------
/// | group | client | number | unanswered | view | method | timeout | flags | cr | max age | body
/// |       |        |        |            |      |        |  in µs   |       |    |  in ms  |
/// +-------+--------+--------+------------+------+--------+----------+-------+----+---------+------
/// flags    bit 0: the body is JSON, and so shall the reply be
///          bit 1: a read: it changes nothing and is not ordered
///          bit 2, with bit 1: it may be answered from what was true so long ago
///          bit 3: another node may answer it, too
///          bit 4: its caller named it by a key; from version 2 on
/// cr       priority: larger is more critical
/// max age  of such a read, from 1; of all others 0
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The group that is called.
    pub group: GroupId,
    /// The caller's session.
    pub client: ClientId,
    /// Which of its calls, from 1. A retry has the number of the first attempt.
    pub number: u64,
    /// The client has the replies to all calls below this number.
    pub unanswered: u64,
    /// The view by which the client chose this node.
    pub view: ViewNumber,
    /// The method that is called.
    pub method: MethodId,
    /// The time left until the deadline, in microseconds. Nobody waits for a reply after it.
    pub timeout_us: u32,
    /// Body and reply are JSON instead of postcard.
    pub json: bool,
    /// The client waits for another node's answer to it as well, or has one.
    pub beside: bool,
    /// A program counts its client's calls, and may repeat it long after its deadline. Nodes know
    /// of it from version [`KEYS`](crate::versions::KEYS) on.
    pub has_key: bool,
    /// Its effect on the state.
    pub access: Access,
    /// Where not all calls can be taken, those with the largest number are taken.
    pub priority: u8,
    /// The arguments.
    pub body: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RequestHeader {
    group: U64,
    client: U64,
    number: U64,
    unanswered: U64,
    view: U64,
    method: U32,
    timeout_us: U32,
    flags: u8,
    priority: u8,
    max_age_ms: U16,
}

impl Request {
    /// Its body, behind what `start` gives with room for so many bytes; and its arguments, unless
    /// they are there already.
    pub(super) fn append(&self, start: impl FnOnce(usize) -> Vec<u8>) -> (Vec<u8>, Bytes) {
        let header = RequestHeader {
            group: self.group.0.into(),
            client: self.client.0.into(),
            number: self.number.into(),
            unanswered: self.unanswered.into(),
            view: self.view.0.into(),
            method: self.method.0.into(),
            timeout_us: self.timeout_us.into(),
            flags: (u8::from(self.json) * JSON)
                | (u8::from(self.beside) * BESIDE)
                | (u8::from(self.has_key) * KEY)
                | self.access.flags(),
            priority: self.priority,
            max_age_ms: match self.access {
                Access::Stale { max_age_ms } => max_age_ms.into(),
                Access::Change | Access::Read => 0.into(),
            },
        };
        let (copied, shared) = pieces(&self.body);
        let mut buffer = start(size_of::<RequestHeader>() + copied.len());
        buffer.extend_from_slice(header.as_bytes());
        buffer.extend_from_slice(copied);
        (buffer, shared)
    }

    /// Reads a body, which the arguments share.
    pub(super) fn decode(body: &Bytes) -> Result<Request, Malformed> {
        let (header, _) = RequestHeader::read_from_prefix(body).map_err(|_| Malformed::Length)?;
        if header.flags & !(JSON | READ | STALE | BESIDE | KEY) != 0 {
            return Err(Malformed::Field("request flags"));
        }
        let access = Access::decode(header.flags, header.max_age_ms.get())
            .ok_or(Malformed::Field("request flags"))?;
        if header.number.get() == 0 || header.unanswered.get() > header.number.get() {
            return Err(Malformed::Field("request number"));
        }
        // The body's own limit is the node's to check: it can answer with a reason.
        Ok(Request {
            group: GroupId(header.group.get()),
            client: ClientId(header.client.get()),
            number: header.number.get(),
            unanswered: header.unanswered.get(),
            view: ViewNumber(header.view.get()),
            method: MethodId(header.method.get()),
            timeout_us: header.timeout_us.get(),
            json: header.flags & JSON != 0,
            beside: header.flags & BESIDE != 0,
            has_key: header.flags & KEY != 0,
            access,
            priority: header.priority,
            body: body.slice(size_of::<RequestHeader>()..),
        })
    }
}
