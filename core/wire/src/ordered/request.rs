//! A call, as the ring orders it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::identity::Identity;
use super::nested::{Origin, nested_client, nested_parts};
use crate::codec::at_most;
use crate::limits::{MAX_BODY, MAX_MERGE, MAX_NESTED_DEPTH};
use crate::system::MERGE;
use crate::{ClientId, GroupId, Malformed, MethodId, Payload, Time};

/// A call, with the time and the seed that make its execution the same at every replica.
///
/// ```text
///  0      1       2       3   4        8       16       24       32           40     48     56       64         68
/// +------+-------+-------+---+--------+-------+--------+--------+------------+------+------+--------+----------+------
/// | kind | flags | depth | c | method | group | client | number | unanswered | time | seed | proven | timeout | body
/// |  1   |       |       |   |        |       |        |        |            |      |      |        |          |
/// +------+-------+-------+---+--------+-------+--------+--------+------------+------+------+--------+----------+------
/// flags  bit 0: the body is JSON, and so shall the reply be (calls by hand)
///        bit 1: a read that its group has ordered: it changes nothing
///        bit 2: its session compares what it asks with what its number asked before
///        bit 3, with bit 2: its client names it by a key, and repeats it after a long time, too
/// c      priority: larger is more critical
/// depth  0: a client's call. Otherwise a nested call, whose body follows its origin:
///        | the parent's client 8 | groups: depth times 8, the caller last |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The group that is called.
    pub group: GroupId,
    /// The method that is called.
    pub method: MethodId,
    /// Body and reply are JSON instead of postcard.
    pub json: bool,
    /// It changes nothing. It is ordered because its group's options order even reads.
    pub read: bool,
    /// The client that calls.
    pub client: ClientId,
    /// The number of the client's call, from 1.
    pub number: u64,
    /// The client has the replies to all calls below this number, so they need not be kept.
    pub unanswered: u64,
    /// The primary's clock, nanoseconds since the Unix epoch.
    pub time: Time,
    /// Seed of the handler's random numbers.
    pub seed: u64,
    /// How many of the group's calls a replica has executed. The others may execute them too.
    pub proven: u64,
    /// Microseconds until the deadline, when the call was ordered. The limit for its nested calls.
    pub timeout_us: u32,
    /// The priority. Its nested calls inherit it.
    pub priority: u8,
    /// How its session knows it again.
    pub identity: Identity,
    /// The origin of a nested call: its client and number derive from the parent's.
    pub origin: Option<Box<Origin>>,
    /// The arguments.
    pub body: Bytes,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RequestHeader {
    kind: u8,
    flags: u8,
    depth: u8,
    priority: u8,
    method: U32,
    group: U64,
    client: U64,
    number: U64,
    unanswered: U64,
    time: U64,
    seed: U64,
    proven: U64,
    timeout_us: U32,
}

const JSON: u8 = 1;
const READ: u8 = 2;
const COMPARED: u8 = 4;
const KEYED: u8 = 8;

fn identity_flags(identity: Identity) -> u8 {
    match identity {
        Identity::Number => 0,
        Identity::Call => COMPARED,
        Identity::Key => COMPARED | KEYED,
    }
}

fn identity_of(flags: u8) -> Result<Identity, Malformed> {
    match flags & (COMPARED | KEYED) {
        0 => Ok(Identity::Number),
        COMPARED => Ok(Identity::Call),
        KEYED => Err(Malformed::Field("request flags")),
        _ => Ok(Identity::Key),
    }
}

impl Request {
    /// The calling groups; empty for a client's call.
    pub fn path(&self) -> &[GroupId] {
        self.origin.as_ref().map_or(&[], |origin| &origin.path)
    }

    /// The payload to multicast.
    pub(super) fn payload(&self) -> Payload {
        let header = RequestHeader {
            kind: 1,
            flags: (u8::from(self.json) * JSON)
                | (u8::from(self.read) * READ)
                | identity_flags(self.identity),
            depth: u8::try_from(self.path().len()).expect("a path is limited"),
            priority: self.priority,
            method: self.method.0.into(),
            group: self.group.0.into(),
            client: self.client.0.into(),
            number: self.number.into(),
            unanswered: self.unanswered.into(),
            time: self.time.0.into(),
            seed: self.seed.into(),
            proven: self.proven.into(),
            timeout_us: self.timeout_us.into(),
        };
        let Some(Origin { client, path }) = self.origin.as_deref() else {
            return Payload::new(header, self.body.clone());
        };
        let mut buffer = Vec::with_capacity(size_of::<RequestHeader>() + 8 + 8 * path.len());
        buffer.extend_from_slice(header.as_bytes());
        buffer.extend_from_slice(&client.0.to_le_bytes());
        path.iter().for_each(|group| buffer.extend_from_slice(&group.0.to_le_bytes()));
        Payload { head: buffer.into(), body: self.body.clone() }
    }

    /// Reads it; its body shares `payload`.
    pub(super) fn decode(payload: &Bytes) -> Result<Request, Malformed> {
        let (header, body) =
            RequestHeader::read_from_prefix(payload).map_err(|_| Malformed::Length)?;
        if header.flags & !(JSON | READ | COMPARED | KEYED) != 0 {
            return Err(Malformed::Field("request flags"));
        }
        if header.number.get() == 0 || header.unanswered.get() > header.number.get() {
            return Err(Malformed::Field("request number"));
        }
        super::check_number(header.proven.get())?;
        let (origin, body) = decode_origin(header.depth.into(), body)?;
        if origin.as_ref().is_some_and(|origin| {
            let (parent, call) = nested_parts(header.number.get());
            let client = nested_client(origin.caller(), origin.client);
            parent == 0 || call == 0 || client.0 != header.client.get()
        }) {
            return Err(Malformed::Field("origin"));
        }
        let method = MethodId(header.method.get());
        let most = if method == MERGE { MAX_MERGE } else { MAX_BODY };
        at_most(body.len(), most, "body")?;
        Ok(Request {
            group: GroupId(header.group.get()),
            method,
            json: header.flags & JSON != 0,
            read: header.flags & READ != 0,
            client: ClientId(header.client.get()),
            number: header.number.get(),
            unanswered: header.unanswered.get(),
            time: Time(header.time.get()),
            seed: header.seed.get(),
            proven: header.proven.get(),
            timeout_us: header.timeout_us.get(),
            priority: header.priority,
            identity: identity_of(header.flags)?,
            origin,
            body: payload.slice_ref(body),
        })
    }
}

/// Takes the origin off the front of what follows the header.
fn decode_origin(depth: usize, rest: &[u8]) -> Result<(Option<Box<Origin>>, &[u8]), Malformed> {
    if depth == 0 {
        return Ok((None, rest));
    }
    at_most(depth, MAX_NESTED_DEPTH, "depth")?;
    let (origin, body) = rest.split_at_checked(8 + 8 * depth).ok_or(Malformed::Length)?;
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("eight bytes"));
    let mut words = origin.chunks_exact(8).map(word);
    let client = ClientId(words.next().expect("the client comes first"));
    let path = words.map(GroupId).collect();
    Ok((Some(Box::new(Origin { client, path })), body))
}
