//! Frames between a client and a node, over a stream.
//!
//! ```text
//!  0        4      5      8
//! +--------+------+------+------
//! | length | kind | 0 0 0| body      length: bytes of the body, at most MAX_FRAME
//! +--------+------+------+------
//! ```
//!
//! | kind | body | direction |
//! | --- | --- | --- |
//! | 1 | [`Hello`] | client to node, first on the stream |
//! | 2 | [`Welcome`] | node to client, the answer |
//! | 3 | [`Bind`] | client to node: where is this group? |
//! | 4 | [`Bound`] | node to client: there |
//! | 5 | [`Request`] | client to node |
//! | 6 | [`Reply`] | node to client |
//! | 7 | [`Farewell`] | node to client, before it closes the stream |

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::{Buf, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::codec::{append, at_most, read};
use crate::limits::{MAX_FRAME, MAX_NAME, MAX_REASON, MAX_REPLICAS};
use crate::{ClientId, GroupId, Malformed, MethodId, NodeId, PROTOCOL_VERSION, ViewNumber};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FrameHeader {
    length: U32,
    kind: u8,
    reserved: [u8; 3],
}

/// Bytes of a frame before its body.
pub const FRAME_OVERHEAD: usize = size_of::<FrameHeader>();

/// The first words of a client. | magic "SFCL" | version | client |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Must be [`Hello::MAGIC`].
    pub magic: [u8; 4],
    /// The protocol that the client speaks.
    pub version: u8,
    /// The client's session.
    pub client: ClientId,
}

impl Hello {
    /// Tells a client from a browser or a port scanner.
    pub const MAGIC: [u8; 4] = *b"SFCL";

    /// The words of this client, in this version.
    pub fn new(client: ClientId) -> Self {
        Hello { magic: Self::MAGIC, version: PROTOCOL_VERSION, client }
    }
}

/// A node's answer to [`Hello`]. | version | node | cluster |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol that the node speaks.
    pub version: u8,
    /// Which node this is.
    pub node: NodeId,
    /// The name of its cluster.
    pub cluster: String,
}

/// Asks for a group by name. | name |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The group's name.
    pub name: String,
}

/// Where a group is. | group | outcome: tag, (view, targets: count, each (node, address)) |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The group that was asked for.
    pub group: GroupId,
    /// Its targets, or `None` if the cluster has no such group.
    pub targets: Option<Targets>,
}

/// The ranked list of nodes to turn to, first to last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Targets {
    /// The view that they are taken from: a larger one replaces a smaller one.
    pub view: ViewNumber,
    /// The primary's node first. Empty: no replica has the state now.
    pub nodes: Vec<Target>,
}

/// One node to turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Which node.
    pub node: NodeId,
    /// Where its clients connect.
    pub address: SocketAddr,
}

/// A call.
///
/// ```text
///  0       8        16       24           32     40       44         48      49   52
/// +-------+--------+--------+------------+------+--------+----------+-------+----+------
/// | group | client | number | unanswered | view | method | patience | flags | 0  | body
/// |       |        |        |            |      |        |  in µs   |       |    |
/// +-------+--------+--------+------------+------+--------+----------+-------+----+------
/// flags  bit 0: the body is JSON, and so shall the reply be
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
    /// What is left of the deadline, in microseconds. Nobody waits for a reply after it.
    pub patience_us: u32,
    /// Body and reply are JSON instead of postcard.
    pub json: bool,
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
    patience_us: U32,
    flags: u8,
    reserved: [u8; 3],
}

/// Why a node did not do what a client asked. The numbers never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Refusal {
    /// A limit is reached; try again later.
    Busy = 1,
    /// The request is larger than a limit.
    TooLarge = 2,
    /// The service has no such method.
    NoSuchMethod = 3,
    /// The arguments are not what the method takes.
    BadArguments = 4,
    /// The service failed in this request (it panicked) and says nothing more.
    Failed = 5,
    /// The request's number is below the session's window: the client broke its own order.
    Stale = 6,
    /// The service's reply is larger than a limit.
    ReplyTooLarge = 7,
}

impl Refusal {
    fn from_number(number: u8) -> Option<Self> {
        use Refusal::*;
        [Busy, TooLarge, NoSuchMethod, BadArguments, Failed, Stale, ReplyTooLarge]
            .into_iter()
            .find(|refusal| *refusal as u8 == number)
    }
}

/// How a call ended, or why it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Executed: the method's result.
    Ok(Bytes),
    /// Executed: the service's own error.
    Service(Bytes),
    /// Not executed: why, in words with the remedy.
    Refused(Refusal, String),
    /// Not executed here: this node is not the primary. The reply's targets say who is.
    NotPrimary,
    /// Not executed: the cluster has no such group.
    NoSuchGroup,
    /// Not executed: no replica with the group's state can be reached, or the quorum is lost.
    NoReplica,
}

/// The answer to a request.
///
/// ```text
///  0        8       16     24        25        26  28
/// +--------+-------+------+---------+---------+---+---------+--------------
/// | number | group | view | outcome | refusal | 0 | targets | bytes or text
/// |        |       |      |         |         |   | length 4| then targets
/// +--------+-------+------+---------+---------+---+---------+--------------
/// outcome  1 ok  2 service  3 refused  4 not primary  5 no such group  6 no replica
/// targets  postcard (view, nodes) at the end, of that many bytes; 0: the client's are right
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request's number.
    pub number: u64,
    /// The group that was called.
    pub group: GroupId,
    /// The group's view at the node that answers.
    pub view: ViewNumber,
    /// Sent when the request's view is older than the node's.
    pub targets: Option<Targets>,
    /// How the call ended.
    pub outcome: Outcome,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ReplyHeader {
    number: U64,
    group: U64,
    view: U64,
    outcome: u8,
    refusal: u8,
    reserved: [u8; 2],
    targets: U32,
}

/// Why a node closes a stream. | version | reason |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The protocol that the node speaks.
    pub version: u8,
    /// The reason, with the remedy.
    pub reason: String,
}

/// Any frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A client introduces itself.
    Hello(Hello),
    /// A node answers.
    Welcome(Welcome),
    /// Where is this group?
    Bind(Bind),
    /// There.
    Bound(Bound),
    /// A call.
    Request(Request),
    /// Its answer.
    Reply(Reply),
    /// The stream ends.
    Farewell(Farewell),
}

const JSON: u8 = 1;

impl Frame {
    /// The bytes to write, header included.
    pub fn encode(&self) -> Bytes {
        let start = || alloc::vec![0; FRAME_OVERHEAD];
        let (kind, mut buffer) = match self {
            Frame::Hello(hello) => (1, append(start(), hello)),
            Frame::Welcome(welcome) => (2, append(start(), welcome)),
            Frame::Bind(bind) => (3, append(start(), bind)),
            Frame::Bound(bound) => (4, append(start(), bound)),
            Frame::Request(request) => (5, encode_request(start(), request)),
            Frame::Reply(reply) => (6, encode_reply(start(), reply)),
            Frame::Farewell(farewell) => (7, append(start(), farewell)),
        };
        let length = u32::try_from(buffer.len() - FRAME_OVERHEAD).expect("bodies are limited");
        let header = FrameHeader { length: length.into(), kind, reserved: [0; 3] };
        buffer[..FRAME_OVERHEAD].copy_from_slice(header.as_bytes());
        buffer.into()
    }

    /// Takes the next whole frame out of what a stream has brought, or `None` if more must come.
    ///
    /// # Errors
    /// [`Malformed`]: the stream cannot be trusted any more and is to be closed. A frame that is
    /// too long is refused by its header, before its body arrives.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let Ok((header, rest)) = FrameHeader::read_from_prefix(buffer) else {
            return Ok(None);
        };
        let length = header.length.get() as usize;
        if length > MAX_FRAME {
            return Err(Malformed::Length);
        }
        if header.reserved != [0; 3] {
            return Err(Malformed::Field("reserved"));
        }
        if !(1..=7).contains(&header.kind) {
            return Err(Malformed::Kind(header.kind));
        }
        if rest.len() < length {
            return Ok(None);
        }
        buffer.advance(FRAME_OVERHEAD);
        let body = buffer.split_to(length).freeze();
        Frame::decode_body(header.kind, body).map(Some)
    }

    fn decode_body(kind: u8, body: Bytes) -> Result<Frame, Malformed> {
        Ok(match kind {
            1 => Frame::Hello(checked_hello(read(&body)?)?),
            2 => Frame::Welcome(checked_welcome(read(&body)?)?),
            3 => Frame::Bind(checked_bind(read(&body)?)?),
            4 => Frame::Bound(checked_bound(read(&body)?)?),
            5 => Frame::Request(decode_request(body)?),
            6 => Frame::Reply(decode_reply(body)?),
            7 => Frame::Farewell(checked_farewell(read(&body)?)?),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}

fn encode_request(mut buffer: Vec<u8>, request: &Request) -> Vec<u8> {
    let header = RequestHeader {
        group: request.group.0.into(),
        client: request.client.0.into(),
        number: request.number.into(),
        unanswered: request.unanswered.into(),
        view: request.view.0.into(),
        method: request.method.0.into(),
        patience_us: request.patience_us.into(),
        flags: u8::from(request.json) * JSON,
        reserved: [0; 3],
    };
    buffer.reserve(size_of::<RequestHeader>() + request.body.len());
    buffer.extend_from_slice(header.as_bytes());
    buffer.extend_from_slice(&request.body);
    buffer
}

fn decode_request(body: Bytes) -> Result<Request, Malformed> {
    let (header, _) = RequestHeader::read_from_prefix(&body).map_err(|_| Malformed::Length)?;
    if header.flags & !JSON != 0 || header.reserved != [0; 3] {
        return Err(Malformed::Field("request flags"));
    }
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
        patience_us: header.patience_us.get(),
        json: header.flags & JSON != 0,
        body: body.slice(size_of::<RequestHeader>()..),
    })
}

fn encode_reply(mut buffer: Vec<u8>, reply: &Reply) -> Vec<u8> {
    let targets =
        reply.targets.as_ref().map_or_else(Vec::new, |targets| append(Vec::new(), targets));
    let (outcome, refusal, bytes) = match &reply.outcome {
        Outcome::Ok(bytes) => (1, 0, &bytes[..]),
        Outcome::Service(bytes) => (2, 0, &bytes[..]),
        Outcome::Refused(refusal, reason) => (3, *refusal as u8, reason.as_bytes()),
        Outcome::NotPrimary => (4, 0, &[][..]),
        Outcome::NoSuchGroup => (5, 0, &[][..]),
        Outcome::NoReplica => (6, 0, &[][..]),
    };
    let header = ReplyHeader {
        number: reply.number.into(),
        group: reply.group.0.into(),
        view: reply.view.0.into(),
        outcome,
        refusal,
        reserved: [0; 2],
        targets: u32::try_from(targets.len()).expect("targets are limited").into(),
    };
    buffer.reserve(size_of::<ReplyHeader>() + bytes.len() + targets.len());
    buffer.extend_from_slice(header.as_bytes());
    buffer.extend_from_slice(bytes);
    buffer.extend_from_slice(&targets);
    buffer
}

fn decode_reply(body: Bytes) -> Result<Reply, Malformed> {
    let (header, rest) = ReplyHeader::read_from_prefix(&body).map_err(|_| Malformed::Length)?;
    if header.reserved != [0; 2] {
        return Err(Malformed::Field("reserved"));
    }
    let targets_length = header.targets.get() as usize;
    let bytes_length = rest.len().checked_sub(targets_length).ok_or(Malformed::Length)?;
    let start = size_of::<ReplyHeader>();
    let bytes = body.slice(start..start + bytes_length);
    let targets = match targets_length {
        0 => None,
        _ => Some(checked_targets(read(&body[start + bytes_length..])?)?),
    };
    let bare = |outcome| {
        if bytes.is_empty() { Ok(outcome) } else { Err(Malformed::Length) }
    };
    if header.outcome != 3 && header.refusal != 0 {
        return Err(Malformed::Field("refusal"));
    }
    let outcome = match header.outcome {
        1 => Outcome::Ok(bytes),
        2 => Outcome::Service(bytes),
        3 => {
            at_most(bytes.len(), MAX_REASON, "reason")?;
            let refusal =
                Refusal::from_number(header.refusal).ok_or(Malformed::Field("refusal"))?;
            let reason = core::str::from_utf8(&bytes).map_err(|_| Malformed::Field("reason"))?;
            Outcome::Refused(refusal, reason.into())
        }
        4 => bare(Outcome::NotPrimary)?,
        5 => bare(Outcome::NoSuchGroup)?,
        6 => bare(Outcome::NoReplica)?,
        _ => return Err(Malformed::Field("outcome")),
    };
    Ok(Reply {
        number: header.number.get(),
        group: GroupId(header.group.get()),
        view: ViewNumber(header.view.get()),
        targets,
        outcome,
    })
}

fn checked_hello(hello: Hello) -> Result<Hello, Malformed> {
    // The version is the node's to check: it answers with a farewell that names both.
    if hello.magic == Hello::MAGIC { Ok(hello) } else { Err(Malformed::Magic) }
}

fn checked_welcome(welcome: Welcome) -> Result<Welcome, Malformed> {
    at_most(welcome.cluster.len(), MAX_NAME, "cluster")?;
    Ok(welcome)
}

fn checked_bind(bind: Bind) -> Result<Bind, Malformed> {
    at_most(bind.name.len(), MAX_NAME, "name")?;
    Ok(bind)
}

fn checked_targets(targets: Targets) -> Result<Targets, Malformed> {
    at_most(targets.nodes.len(), MAX_REPLICAS, "targets")?;
    Ok(targets)
}

fn checked_bound(bound: Bound) -> Result<Bound, Malformed> {
    if let Some(targets) = &bound.targets {
        at_most(targets.nodes.len(), MAX_REPLICAS, "targets")?;
    }
    Ok(bound)
}

fn checked_farewell(farewell: Farewell) -> Result<Farewell, Malformed> {
    at_most(farewell.reason.len(), MAX_REASON, "reason")?;
    Ok(farewell)
}
