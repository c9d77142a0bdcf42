//! Frames between a node and a program that serves a replica in a process of its own, over a Unix
//! socket.
//!
//! Programs may be written in any language, so all of it is fixed and little-endian: nothing here needs a
//! library. `docs/protocol/attach.md` tells the whole of it.
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
//! | 1 | [`Hello`] | program to node, first on the stream |
//! | 2 | [`Welcome`] | node to program, the answer |
//! | 3 | [`Execute`] | node to program |
//! | 4 | [`Snapshot`](Frame::Snapshot) | node to program: give the state |
//! | 5 | [`Restore`](Frame::Restore): a [`Piece`] | node to program: a piece of the state to take on |
//! | 6 | [`Reset`](Frame::Reset) | node to program: begin anew; the only command without an answer |
//! | 7 | [`Answer`] | program to node, to kind 3 |
//! | 8 | [`State`](Frame::State): a [`Piece`] | program to node, to kind 4 |
//! | 9 | [`Failed`] | program to node, to kind 4 or to a whole kind 5: it cannot be done |
//! | 10 | [`Restored`](Frame::Restored) | program to node, to a whole kind 5 |
//! | 11 | [`Farewell`](Frame::Farewell) | both ways, before the stream is closed |
//! | 12 | [`Ask`](Frame::Call) | program to node, while it executes a kind 3: call this group |
//! | 13 | [`Told`](Frame::Called) | node to program, to kind 12, ahead of commands that wait |

use alloc::string::String;

use bytes::{BufMut, Bytes, BytesMut};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::client::Refusal;
pub use crate::codec::FRAME_OVERHEAD;
use crate::codec::{FrameHeader, at_most, take_frame};
use crate::limits::{ATTACH_PIECE, MAX_NAME, MAX_REASON, MAX_STATE};
use crate::{ClientId, Malformed, MethodId, NodeId, PROTOCOL_VERSION, Time};

mod layout;

use layout::{
    AnswerHeader, AskHeader, ExecuteHeader, HelloHeader, PieceHeader, ToldHeader, WelcomeHeader,
    number_of, split, text,
};

/// Bytes of a token.
pub const TOKEN: usize = 32;

/// The environment variable in which a program finds the path of its node's socket.
pub const SOCKET_VARIABLE: &str = "STEADFAST_ATTACH";

/// The environment variable in which a program finds its token, in hexadecimal digits.
pub const TOKEN_VARIABLE: &str = "STEADFAST_TOKEN";

/// The environment variable in which a program finds the name of its group.
pub const GROUP_VARIABLE: &str = "STEADFAST_GROUP";

/// The environment variable in which a program finds the path of a file. It may write there, at the beginning and in 8 bytes
/// (little-endian), the number of each command before it begins it, and 0 before it says Hello. If it dies, no call that it had not
/// begun is blamed. A program that writes nothing may have begun all that it was given.
pub const BEGINS_VARIABLE: &str = "STEADFAST_BEGINS";

/// The first words of a program.
///
/// ```text
///  0      4         5     8     12      44
/// +------+---------+-----+-----+-------+-------
/// | SFAT | version |0 0 0| pid | token | group
/// +------+---------+-----+-----+-------+-------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol that the program speaks.
    pub version: u8,
    /// Its process.
    pub pid: u32,
    /// What the node gave it in its environment.
    pub token: [u8; TOKEN],
    /// The group that it serves.
    pub group: String,
}

impl Hello {
    /// Tells a program from whatever else may find the socket.
    pub const MAGIC: [u8; 4] = *b"SFAT";

    /// The words of this program, in this version.
    pub fn new(pid: u32, token: [u8; TOKEN], group: &str) -> Self {
        Hello { version: PROTOCOL_VERSION, pid, token, group: group.into() }
    }
}

/// A node's answer to [`Hello`]: the program is let in.
///
/// ```text
///  0         1       4      8
/// +---------+-------+------+---------
/// | version | 0 0 0 | node | cluster
/// +---------+-------+------+---------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol that the node speaks.
    pub version: u8,
    /// Which node this is.
    pub node: NodeId,
    /// The name of its cluster.
    pub cluster: String,
}

/// A call to be executed.
///
/// ```text
///  0        8     16     24       32     40       44      45      48
/// +--------+-----+------+--------+------+--------+-------+-------+------
/// | number | now | seed | client | call | method | flags | 0 0 0 | body
/// +--------+-----+------+--------+------+--------+-------+-------+------
/// flags  bit 0: the body is JSON, and so shall the answer be
///        bit 1: a read: a method that may change the state is to be refused ([`Refusal::NotReadOnly`])
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// To be handed back with the answer. Grows by one with every command that is answered.
    pub number: u64,
    /// Ordered time: the same at every replica, never running backwards.
    pub now: Time,
    /// Seed of the handler's random numbers.
    pub seed: u64,
    /// Whose call it is.
    pub client: ClientId,
    /// Which of the client's calls.
    pub call: u64,
    /// The method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// It may change nothing: other replicas do not execute it.
    pub read: bool,
    /// The arguments.
    pub body: Bytes,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The method's result.
    Ok(Bytes),
    /// The service's own error.
    Error(Bytes),
    /// It could not be executed: the same reason at every replica.
    Refused(Refusal, String),
}

/// The answer to [`Execute`].
///
/// ```text
///  0        8         9         10      11   12
/// +--------+---------+---------+-------+----+--------------
/// | number | outcome | refusal | flags | 0  | bytes or text
/// +--------+---------+---------+-------+----+--------------
/// outcome  1 ok  2 the service's own error  3 refused
/// flags    bit 0: the handler failed in a way that it should not (a panic)
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The command's.
    pub number: u64,
    /// The handler panicked.
    pub panicked: bool,
    /// How the call ended.
    pub outcome: Outcome,
}

/// A call that the handler of the command that is being executed makes of another group.
///
/// ```text
///  0        8        12         16      17  18       20      20 + length
/// +--------+--------+----------+-------+---+--------+-------+------
/// | number | method | patience | flags | 0 | length | group | body
/// +--------+--------+----------+-------+---+--------+-------+------
/// patience  microseconds        length  bytes of the group's name
/// flags     bit 0: the body is JSON, and so shall the reply be
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The command that is being executed.
    pub number: u64,
    /// The method.
    pub method: MethodId,
    /// How long it may take, in microseconds; no longer than the command itself may.
    pub patience_us: u32,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The group's name.
    pub group: String,
    /// The arguments.
    pub body: Bytes,
}

/// What came of an [`Ask`].
///
/// ```text
///  0        8         9         10      11   12
/// +--------+---------+---------+-------+----+--------------
/// | number | outcome | refusal | error | 0  | bytes or text
/// +--------+---------+---------+-------+----+--------------
/// outcome  1 ok  2 the called service's own error  3 refused
/// error    0 but where there is no reply at all; outcome is 3 then, and the text says it:
///          1 deadline  2 no replica  3 no such group  4 diverged  5 cycle  6 too deep  7 too many
///          8 too large  9 void: what the handler does now is forgotten  10 unable
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The command that is being executed.
    pub number: u64,
    /// Why there is no reply; 0: there is.
    pub error: u8,
    /// How the call ended.
    pub outcome: Outcome,
}

/// A piece of a state: in order, none empty but the only one of an empty state.
///
/// ```text
///  0        8       16
/// +--------+-------+------
/// | number | total | bytes     total: bytes of the whole state; bytes: at most ATTACH_PIECE
/// +--------+-------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The command's, the same for all pieces.
    pub number: u64,
    /// Bytes of the whole state.
    pub total: u64,
    /// This part of it.
    pub bytes: Bytes,
}

/// What was asked for cannot be done. | number 8 | reason |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The command's.
    pub number: u64,
    /// Why, in words.
    pub reason: String,
}

/// Any frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A program introduces itself.
    Hello(Hello),
    /// A node lets it in.
    Welcome(Welcome),
    /// Execute this.
    Execute(Execute),
    /// Give the state as it is after all commands so far. | number 8 |
    Snapshot(u64),
    /// Replace the state, once all pieces are there.
    Restore(Piece),
    /// Begin anew, as at the start.
    Reset,
    /// A call was executed.
    Answer(Answer),
    /// The state.
    State(Piece),
    /// The state cannot be given, or cannot be read.
    Failed(Failed),
    /// The state was replaced. | number 8 |
    Restored(u64),
    /// The stream ends. From a node without a reason: all is as it should be, it needs the replica no more.
    /// | reason |
    Farewell(String),
    /// A handler calls another group.
    Call(Ask),
    /// The handler goes on.
    Called(Told),
}

impl Frame {
    /// Appends the bytes to write, header included.
    pub fn append(&self, buffer: &mut BytesMut) {
        match self {
            Frame::Hello(hello) => {
                let head = HelloHeader {
                    magic: Hello::MAGIC,
                    version: hello.version,
                    reserved: [0; 3],
                    pid: hello.pid.into(),
                    token: hello.token,
                };
                put(buffer, 1, &head, hello.group.as_bytes());
            }
            Frame::Welcome(welcome) => {
                let (version, node) = (welcome.version, welcome.node.0.into());
                let head = WelcomeHeader { version, reserved: [0; 3], node };
                put(buffer, 2, &head, welcome.cluster.as_bytes());
            }
            Frame::Execute(execute) => put(buffer, 3, &ExecuteHeader::of(execute), &execute.body),
            Frame::Snapshot(number) => put(buffer, 4, &U64::from(*number), &[]),
            Frame::Restore(piece) => put(buffer, 5, &PieceHeader::of(piece), &piece.bytes),
            Frame::Reset => put(buffer, 6, &[0; 0], &[]),
            Frame::Answer(answer) => {
                let (head, bytes) = AnswerHeader::of(answer);
                put(buffer, 7, &head, bytes);
            }
            Frame::State(piece) => put(buffer, 8, &PieceHeader::of(piece), &piece.bytes),
            Frame::Failed(failed) => {
                put(buffer, 9, &U64::from(failed.number), failed.reason.as_bytes());
            }
            Frame::Restored(number) => put(buffer, 10, &U64::from(*number), &[]),
            Frame::Farewell(reason) => put(buffer, 11, &[0; 0], reason.as_bytes()),
            Frame::Call(ask) => {
                let mut rest = ask.group.clone().into_bytes();
                rest.extend_from_slice(&ask.body);
                put(buffer, 12, &AskHeader::of(ask), &rest);
            }
            Frame::Called(told) => {
                let (head, bytes) = ToldHeader::of(told);
                put(buffer, 13, &head, bytes);
            }
        }
    }

    /// The bytes to write, header included.
    pub fn encode(&self) -> Bytes {
        let mut buffer = BytesMut::new();
        self.append(&mut buffer);
        buffer.freeze()
    }

    /// Takes the next whole frame out of what a stream has brought, or `None` if more must come.
    ///
    /// # Errors
    /// [`Malformed`]: the stream cannot be trusted any more and is to be closed. A frame that is
    /// too long is refused by its header, before its body arrives.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let taken = take_frame(buffer, 1..=13)?;
        taken.map(|(kind, body)| Frame::decode_body(kind, &body)).transpose()
    }

    fn decode_body(kind: u8, body: &Bytes) -> Result<Frame, Malformed> {
        Ok(match kind {
            1 => Frame::Hello(decode_hello(body)?),
            2 => Frame::Welcome(decode_welcome(body)?),
            3 => Frame::Execute(ExecuteHeader::decode(body)?),
            4 => Frame::Snapshot(number_of(body)?),
            5 => Frame::Restore(PieceHeader::decode(body)?),
            6 if body.is_empty() => Frame::Reset,
            6 => return Err(Malformed::Length),
            7 => Frame::Answer(AnswerHeader::decode(body)?),
            8 => Frame::State(PieceHeader::decode(body)?),
            9 => {
                let (number, reason) = split::<U64>(body)?;
                let reason = text(&reason, MAX_REASON, "reason")?;
                Frame::Failed(Failed { number: number.get(), reason })
            }
            10 => Frame::Restored(number_of(body)?),
            11 => Frame::Farewell(text(body, MAX_REASON, "reason")?),
            12 => Frame::Call(AskHeader::decode(body)?),
            13 => Frame::Called(ToldHeader::decode(body)?),
            kind => return Err(Malformed::Kind(kind)),
        })
    }
}

fn put(buffer: &mut BytesMut, kind: u8, head: &(impl IntoBytes + Immutable), rest: &[u8]) {
    let head = head.as_bytes();
    let header = FrameHeader::new(head.len() + rest.len(), kind);
    buffer.reserve(FRAME_OVERHEAD + head.len() + rest.len());
    buffer.put_slice(header.as_bytes());
    buffer.put_slice(head);
    buffer.put_slice(rest);
}

/// The version is the node's to check: it answers with a farewell that names both.
fn decode_hello(body: &Bytes) -> Result<Hello, Malformed> {
    let (head, group) = split::<HelloHeader>(body)?;
    if head.magic != Hello::MAGIC {
        return Err(Malformed::Magic);
    }
    if head.reserved != [0; 3] {
        return Err(Malformed::Field("reserved"));
    }
    let group = text(&group, MAX_NAME, "group")?;
    Ok(Hello { version: head.version, pid: head.pid.get(), token: head.token, group })
}

fn decode_welcome(body: &Bytes) -> Result<Welcome, Malformed> {
    let (head, cluster) = split::<WelcomeHeader>(body)?;
    if head.reserved != [0; 3] {
        return Err(Malformed::Field("reserved"));
    }
    let cluster = text(&cluster, MAX_NAME, "cluster")?;
    Ok(Welcome { version: head.version, node: NodeId(head.node.get()), cluster })
}
