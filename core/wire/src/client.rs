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
//! | 8 | [`Watch`] | client to node: tell me of this group's newer views |
//! | 9 | [`News`](Frame::News) | node to client: there is one; a [`Bound`] |
//!
//! Frames of kinds from [`FIRST_OPTIONAL_FRAME`] on are skipped by a program that does not know them.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes;

pub use crate::codec::{FIRST_OPTIONAL_FRAME, FRAME_OVERHEAD};
use crate::codec::{FrameHeader, append, at_most, read, take_frame};
use crate::limits::{MAX_HELLO_EXTENSION, MAX_NAME, MAX_REASON};
use crate::path::Path;
use crate::versions::{CLIENT, VersionRange};
use crate::{ClientId, Extension, GroupId, Malformed, NodeId, Payload, ViewNumber};

mod reply;
mod request;
mod targets;

pub use reply::{Outcome, Refusal, Reply};
pub use request::{Access, Request};
pub use targets::{Target, Targets};

/// The first words of a client. Its form is frozen.
///
/// ```text
/// | magic "SFCL" | speaks: least, greatest | client | extension |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Must be [`Hello::MAGIC`].
    pub magic: [u8; 4],
    /// The versions that the client speaks.
    pub speaks: VersionRange,
    /// The client's session.
    pub client: ClientId,
    /// The cell that the client calls, if it is another than the node's own, as postcard has text;
    /// then bytes that a newer program adds.
    pub extension: Extension,
}

impl Hello {
    /// Tells a client from a browser or a port scanner.
    pub const MAGIC: [u8; 4] = *b"SFCL";

    /// The words of this client, in this program's versions.
    pub fn new(client: ClientId) -> Self {
        let (magic, extension) = (Self::MAGIC, Extension::default());
        Hello { magic, speaks: CLIENT, client, extension }
    }

    /// The same, for calls to this cell. A node that does not carry calls takes no notice of it:
    /// its welcome names its own cluster.
    pub fn to(client: ClientId, cell: &Path) -> Self {
        let text = postcard::to_allocvec(cell).expect("a path is plain text");
        Hello { extension: Extension(text), ..Hello::new(client) }
    }

    /// The cell that is called.
    ///
    /// # Errors
    /// The bytes are none's path.
    pub fn cell(&self) -> Result<Option<Path>, Malformed> {
        if self.extension.0.is_empty() {
            return Ok(None);
        }
        let taken = postcard::take_from_bytes::<Path>(&self.extension.0);
        taken.map(|(path, _)| Some(path)).map_err(|_| Malformed::Field("cell"))
    }

    /// The versions are the node's to compare: it answers with a farewell that names both.
    fn checked(self) -> Result<Hello, Malformed> {
        if self.magic != Hello::MAGIC {
            return Err(Malformed::Magic);
        }
        self.speaks.checked()?;
        at_most(self.extension.0.len(), MAX_HELLO_EXTENSION, "extension")?;
        Ok(self)
    }
}

/// A node's answer to [`Hello`]. Its form is frozen. | version | node | cluster | extension |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both speak on this stream.
    pub version: u8,
    /// Which node this is.
    pub node: NodeId,
    /// The name of its cluster.
    pub cluster: String,
    /// Bytes that a newer program adds.
    pub extension: Extension,
}

impl Welcome {
    fn checked(self) -> Result<Welcome, Malformed> {
        at_most(self.cluster.len(), MAX_NAME, "cluster")?;
        self.extension.check()?;
        Ok(self)
    }
}

/// Asks for a group by name. | name |
///
/// A path and a colon, such as `line-a.porto:`, is no group: it asks for the nodes at which clients
/// of this cell call that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    /// The group's name.
    pub name: String,
}

impl Bind {
    fn checked(self) -> Result<Bind, Malformed> {
        at_most(self.name.len(), MAX_NAME, "name")?;
        Ok(self)
    }
}

/// Where a group is. | group | outcome: tag, (view, style, targets: count, each (node, address)) |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The group that was asked for.
    pub group: GroupId,
    /// Its targets, or `None` if the cluster has no such group.
    pub targets: Option<Targets>,
}

impl Bound {
    fn checked(self) -> Result<Bound, Malformed> {
        let targets = self.targets.map(Targets::checked).transpose()?;
        Ok(Bound { targets, ..self })
    }
}

/// Asks to be told of each view of a group that is newer, as long as the stream lasts. | group |
/// view |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The group.
    pub group: GroupId,
    /// The view that the client knows.
    pub view: ViewNumber,
}

/// Why a node closes a stream. Its form is frozen. | speaks: least, greatest | reason | extension |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The versions that the node speaks.
    pub speaks: VersionRange,
    /// The reason, with the remedy.
    pub reason: String,
    /// Bytes that a newer program adds.
    pub extension: Extension,
}

impl Farewell {
    /// This node's, with the reason.
    pub fn new(reason: impl Into<String>) -> Farewell {
        Farewell { speaks: CLIENT, reason: reason.into(), extension: Extension::default() }
    }

    fn checked(self) -> Result<Farewell, Malformed> {
        self.speaks.checked()?;
        at_most(self.reason.len(), MAX_REASON, "reason")?;
        self.extension.check()?;
        Ok(self)
    }
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
    /// A client wants to know newer views of a group.
    Watch(Watch),
    /// There is one.
    News(Bound),
}

impl Frame {
    /// The bytes to write, header included. Long arguments and results are shared.
    pub fn payload(&self) -> Payload {
        // Those of a call have their whole room from the start: one piece of memory each.
        let start_for = |body: usize| {
            let mut start = Vec::with_capacity(FRAME_OVERHEAD + body);
            start.resize(FRAME_OVERHEAD, 0);
            start
        };
        let start = || start_for(0);
        let alone = |buffer: Vec<u8>| (buffer, Bytes::new());
        let (kind, (mut buffer, body)) = match self {
            Frame::Hello(hello) => (1, alone(append(start(), hello))),
            Frame::Welcome(welcome) => (2, alone(append(start(), welcome))),
            Frame::Bind(bind) => (3, alone(append(start(), bind))),
            Frame::Bound(bound) => (4, alone(append(start(), bound))),
            Frame::Request(request) => (5, request.append(start_for)),
            Frame::Reply(reply) => (6, reply.append(start_for)),
            Frame::Farewell(farewell) => (7, alone(append(start(), farewell))),
            Frame::Watch(watch) => (8, alone(append(start(), watch))),
            Frame::News(bound) => (9, alone(append(start(), bound))),
        };
        let header = FrameHeader::new(buffer.len() - FRAME_OVERHEAD + body.len(), kind);
        buffer[..FRAME_OVERHEAD].copy_from_slice(header.as_bytes());
        Payload { head: buffer.into(), body }
    }

    /// The same in one piece.
    pub fn encode(&self) -> Bytes {
        self.payload().whole()
    }

    /// Takes the next whole frame out of what a stream has brought, or `None` if more must come.
    ///
    /// # Errors
    /// [`Malformed`]: the stream cannot be trusted any more and is to be closed. A frame that is
    /// too long is refused by its header, before its body arrives.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let taken = take_frame(buffer, |kind| (1..=9).contains(&kind))?;
        taken.map(|(kind, body)| Frame::decode_body(kind, body)).transpose()
    }

    fn decode_body(kind: u8, body: Bytes) -> Result<Frame, Malformed> {
        Ok(match kind {
            1 => Frame::Hello(read::<Hello>(&body)?.checked()?),
            2 => Frame::Welcome(read::<Welcome>(&body)?.checked()?),
            3 => Frame::Bind(read::<Bind>(&body)?.checked()?),
            4 => Frame::Bound(read::<Bound>(&body)?.checked()?),
            5 => Frame::Request(Request::decode(&body)?),
            6 => Frame::Reply(Reply::decode(&body)?),
            7 => Frame::Farewell(read::<Farewell>(&body)?.checked()?),
            8 => Frame::Watch(read::<Watch>(&body)?),
            9 => Frame::News(read::<Bound>(&body)?.checked()?),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}
