//! Frames between a node and a program that serves a replica in a process of its own, over a Unix
//! socket.
//!
//! Programs may be written in any language, so all of it is fixed and little-endian: nothing here
//! needs a library. `docs/protocol/attach.md` tells the whole of it.
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
//! | 128 | [`Notice`] | program to node, any time after kind 2: about its state |
//! | 129 | [`Compare`](Frame::Compare) | node to program: tell a digest of the state |
//! | 130 | [`Digested`] | program to node, to kind 129, if the program can tell one |
//! | 131 | [`View`] | node to program: the group's view from here on |
//! | 132 | [`Merge`](Frame::Merge): a [`Piece`] | node to program: a piece of the state to merge with |
//!
//! Frames of kinds from [`FIRST_OPTIONAL_FRAME`] on are skipped by programs and nodes that do not
//! know them. No answer to one is awaited.

use alloc::string::String;

use bytes::{BufMut, Bytes, BytesMut};
use zerocopy::little_endian::U64;
use zerocopy::{Immutable, IntoBytes};

pub use crate::codec::{FIRST_OPTIONAL_FRAME, FRAME_OVERHEAD};
use crate::codec::{FrameHeader, take_frame};
use crate::limits::{MAX_EXTENSION, MAX_NAME, MAX_REASON};
use crate::ordered::StateDigest;
use crate::{Malformed, NodeId, VersionRange};

mod layout;
mod messages;
mod view;

use layout::{
    AnswerHeader, AskHeader, ExecuteHeader, HelloHeader, NoticeHeader, ORDERED, PieceHeader,
    ToldHeader, WelcomeHeader, number_of, split, text,
};

pub use messages::{
    Answer, Ask, Digested, Execute, Failed, Hello, Notice, NoticeCode, Outcome, Piece, TOKEN, Told,
    Welcome,
};
pub use view::View;

/// The environment variable in which a program finds the path of its node's socket.
pub const SOCKET_VARIABLE: &str = "STEADFAST_ATTACH";

/// The environment variable that is set to 1 where a node only tries a program: it is given a state, asked
/// for it, and ended. A deployment that sets it to `off` has its program not tried.
pub const TRIAL_VARIABLE: &str = "STEADFAST_TRIAL";

/// The environment variable in which a program finds its token, in hexadecimal digits.
pub const TOKEN_VARIABLE: &str = "STEADFAST_TOKEN";

/// The environment variable in which a program finds the name of its group.
pub const GROUP_VARIABLE: &str = "STEADFAST_GROUP";

/// The environment variable in which a program finds the path of a file. It may write there, at the
/// beginning and in 8 bytes (little-endian), the number of each command before it begins it, and 0
/// before it says Hello. If it dies, no call that it had not begun is blamed. A program that writes
/// nothing may have begun all that it was given.
pub const BEGINS_VARIABLE: &str = "STEADFAST_BEGINS";

/// A flag of a program's extension.
const MERGES: u8 = 1;

/// The kinds of optional frames.
const NOTICE: u8 = FIRST_OPTIONAL_FRAME;
const COMPARE: u8 = FIRST_OPTIONAL_FRAME + 1;
const DIGEST: u8 = FIRST_OPTIONAL_FRAME + 2;
const VIEW: u8 = FIRST_OPTIONAL_FRAME + 3;
const MERGE: u8 = FIRST_OPTIONAL_FRAME + 4;

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
    /// The stream ends. From a node without a reason: all is as it should be, it needs the replica
    /// no more.
    /// | reason |
    Farewell(String),
    /// A handler calls another group.
    Call(Ask),
    /// The handler goes on.
    Called(Told),
    /// A program says something about its state. A node that does not know it skips it.
    Notice(Notice),
    /// Tell a digest of the state as it is after all commands so far. | number 8 |
    Compare(u64),
    /// The digest.
    Digested(Digested),
    /// The group's view from here on.
    View(View),
    /// Merge the state of another history with the own one, once all pieces are there. It is answered as
    /// a call. Only programs whose [`Hello`] says that they merge are given it.
    Merge(Piece),
}

impl Frame {
    /// Appends the bytes to write, header included.
    pub fn append(&self, buffer: &mut BytesMut) {
        match self {
            Frame::Hello(hello) => {
                // Nodes of before the extension take a name alone, too.
                let length = if hello.merges { hello.group.len() as u16 } else { 0 };
                let head = HelloHeader {
                    magic: Hello::MAGIC,
                    greatest: hello.speaks.greatest,
                    least: hello.speaks.least_byte(),
                    group: length.into(),
                    pid: hello.pid.into(),
                    token: hello.token,
                };
                let group = hello.group.as_bytes();
                match hello.merges {
                    true => put(buffer, 1, &head, &[group, &[MERGES]].concat()),
                    false => put(buffer, 1, &head, group),
                }
            }
            Frame::Welcome(welcome) => {
                let (version, node) = (welcome.version, welcome.node.0.into());
                let flags = u8::from(welcome.ordered) * ORDERED;
                let head = WelcomeHeader { version, flags, cluster: 0.into(), node };
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
            Frame::Notice(notice) => {
                let head = NoticeHeader { code: notice.code.number(), reserved: [0; 7] };
                put(buffer, NOTICE, &head, notice.text.as_bytes());
            }
            Frame::Compare(number) => put(buffer, COMPARE, &U64::from(*number), &[]),
            Frame::Digested(Digested { number, state }) => {
                let words = [*number, state.form, state.value].map(U64::from);
                put(buffer, DIGEST, &words, &[]);
            }
            Frame::View(view) => {
                let mut body = BytesMut::new();
                view.append(&mut body);
                put(buffer, VIEW, &[0; 0], &body);
            }
            Frame::Merge(piece) => put(buffer, MERGE, &PieceHeader::of(piece), &piece.bytes),
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
        let taken = take_frame(buffer, |kind| matches!(kind, 1..=13 | NOTICE..=MERGE))?;
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
            NOTICE => {
                let (head, rest) = split::<NoticeHeader>(body)?;
                if head.reserved != [0; 7] {
                    return Err(Malformed::Field("reserved"));
                }
                let text = text(&rest, MAX_REASON, "text")?;
                Frame::Notice(Notice { code: NoticeCode::from(head.code), text })
            }
            COMPARE => Frame::Compare(number_of(body)?),
            DIGEST => {
                let (words, rest) = split::<[U64; 3]>(body)?;
                if !rest.is_empty() {
                    return Err(Malformed::Length);
                }
                let [number, form, value] = words.map(U64::get);
                Frame::Digested(Digested { number, state: StateDigest { form, value } })
            }
            VIEW => Frame::View(View::decode(body)?),
            MERGE => Frame::Merge(PieceHeader::decode(body)?),
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

/// The versions are the node's to compare: it answers with a farewell that names both.
fn decode_hello(body: &Bytes) -> Result<Hello, Malformed> {
    let (head, rest) = split::<HelloHeader>(body)?;
    if head.magic != Hello::MAGIC {
        return Err(Malformed::Magic);
    }
    let speaks = VersionRange::from_bytes(head.greatest, head.least)?;
    let length = head.group.get();
    let flags = rest.get(usize::from(length)).filter(|_| length > 0).copied();
    let group = text(&name_in(rest, length)?, MAX_NAME, "group")?;
    let merges = flags.is_some_and(|flags| flags & MERGES != 0);
    Ok(Hello { speaks, pid: head.pid.get(), token: head.token, group, merges })
}

/// A name of so many bytes, before an extension that is skipped; 0: nothing but the name.
fn name_in(mut rest: Bytes, length: u16) -> Result<Bytes, Malformed> {
    match usize::from(length) {
        0 => Ok(rest),
        length if length + MAX_EXTENSION < rest.len() => Err(Malformed::Field("extension")),
        length if length > rest.len() => Err(Malformed::Length),
        length => Ok(rest.split_to(length)),
    }
}

fn decode_welcome(body: &Bytes) -> Result<Welcome, Malformed> {
    let (head, rest) = split::<WelcomeHeader>(body)?;
    if head.flags & !ORDERED != 0 {
        return Err(Malformed::Field("flags"));
    }
    let cluster = text(&name_in(rest, head.cluster.get())?, MAX_NAME, "cluster")?;
    let node = NodeId(head.node.get());
    Ok(Welcome { version: head.version, ordered: head.flags & ORDERED != 0, node, cluster })
}
