//! The messages between a program and its node, as values.

use alloc::string::String;

use bytes::Bytes;

use crate::client::Refusal;
use crate::ordered::StateDigest;
use crate::versions::{ATTACH, VersionRange};
use crate::{ClientId, Lane, MethodId, NodeId, Time};

/// Bytes of a token.
pub const TOKEN: usize = 32;

/// The first words of a program.
///
/// ```text
///  0      4          5       6       8     12      44
/// +------+----------+-------+-------+-----+-------+-------+-----------
/// | SFAT | greatest | least | group | pid | token | group | extension: flags, newer ones
/// +------+----------+-------+-------+-----+-------+-------+-----------
/// greatest, least  the versions that the program speaks; least 0: the greatest alone
/// group            bytes of the group's name; 0: all that follows is the name
/// flags            bit 0: the service merges states of histories that have parted
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The versions that the program speaks.
    pub speaks: VersionRange,
    /// Its process.
    pub pid: u32,
    /// The token that the node gave it in its environment.
    pub token: [u8; TOKEN],
    /// The group that it serves.
    pub group: String,
    /// Its service merges states of histories that have parted: it takes
    /// [`Merge`](super::Frame::Merge).
    pub merges: bool,
}

impl Hello {
    /// Tells a program from whatever else may find the socket.
    pub const MAGIC: [u8; 4] = *b"SFAT";

    /// The words of this program, in its versions.
    pub fn new(pid: u32, token: [u8; TOKEN], group: &str) -> Self {
        Hello { speaks: ATTACH, pid, token, group: group.into(), merges: false }
    }
}

/// A node's answer to [`Hello`]: the program is let in.
///
/// ```text
///  0         1       2         4      8
/// +---------+-------+---------+------+---------+-----------
/// | version | flags | cluster | node | cluster | extension
/// +---------+-------+---------+------+---------+-----------
/// flags    bit 0: the group orders its calls, and wants them answered in that order
/// cluster  bytes of the cluster's name; 0, as every node of version 1 writes: all that follows
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak on this stream.
    pub version: u8,
    /// The group orders its calls, and wants them answered in that order. Else only the calls of
    /// one lane have an order.
    pub ordered: bool,
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
///        bits 2 and 3: the lane: 0 normal, 1 critical, 2 alarm
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execute {
    /// To be handed back with the answer. Grows by one with every command that is answered.
    pub number: u64,
    /// Ordered time: the same at every replica, never running backwards.
    pub now: Time,
    /// Seed of the handler's random numbers.
    pub seed: u64,
    /// The client that made the call.
    pub client: ClientId,
    /// Which of the client's calls.
    pub call: u64,
    /// The method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// It may change nothing: other replicas do not execute it.
    pub read: bool,
    /// Its lane.
    pub lane: Lane,
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
/// | number | method | timeout | flags | 0 | length | group | body
/// +--------+--------+----------+-------+---+--------+-------+------
/// timeout  microseconds        length  bytes of the group's name
/// flags     bit 0: the body is JSON, and so shall the reply be
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The command that is being executed.
    pub number: u64,
    /// The method.
    pub method: MethodId,
    /// How long it may take, in microseconds; no longer than the command itself may.
    pub timeout_us: u32,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The group's name.
    pub group: String,
    /// The arguments.
    pub body: Bytes,
}

/// The result of an [`Ask`].
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

/// The command cannot be carried out. | number 8 | reason |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The command's.
    pub number: u64,
    /// Why, in words.
    pub reason: String,
}

/// A program's own word about its state. Nodes of before this frame skip it.
///
/// ```text
///  0      1               8
/// +------+---------------+------
/// | code | 0 0 0 0 0 0 0 | text      at most MAX_REASON bytes of UTF-8
/// +------+---------------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The meaning.
    pub code: NoticeCode,
    /// The reason, or the fields.
    pub text: String,
}

/// A digest of a program's state, for a comparison with other replicas'. Nodes of before this frame
/// do not ask for it.
///
/// ```text
///  0        8      16
/// +--------+------+-------
/// | number | form | value
/// +--------+------+-------
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digested {
    /// The number of the question.
    pub number: u64,
    /// The digest.
    pub state: StateDigest,
}

/// The meaning of a [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeCode {
    /// 1: the state cannot be given, or would not be read back as it is. The text has the reason.
    Unreadable,
    /// 2: all is well with the state again.
    Well,
    /// 3: the state that was read has fields that the program does not know, and it dropped them. The
    /// text lists them.
    Dropped,
    /// Any other number: the word of a newer program, which is ignored.
    Other(u8),
}

impl NoticeCode {
    /// Its number in the frame.
    pub fn number(self) -> u8 {
        match self {
            NoticeCode::Unreadable => 1,
            NoticeCode::Well => 2,
            NoticeCode::Dropped => 3,
            NoticeCode::Other(number) => number,
        }
    }
}

impl From<u8> for NoticeCode {
    fn from(number: u8) -> NoticeCode {
        match number {
            1 => NoticeCode::Unreadable,
            2 => NoticeCode::Well,
            3 => NoticeCode::Dropped,
            number => NoticeCode::Other(number),
        }
    }
}
