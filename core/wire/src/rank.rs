//! Frames between an agent and a rank of a job, over a Unix socket.
//!
//! A rank may be written in any language, so all of it is fixed and little-endian, as the frames of
//! [`attach`](crate::attach) are, with the same head. `docs/protocol/rank.md` tells the whole of it.
//!
//! | kind | body | direction |
//! | --- | --- | --- |
//! | 1 | [`Hello`] | rank to agent, first on the stream |
//! | 2 | [`Welcome`] | agent to rank, the answer; a file comes with it if there is a state |
//! | 3 | [`Snapshot`] | rank to agent, with a file: save this |
//! | 4 | [`Saved`] | agent to rank, to kind 3 |
//! | 5 | [`Step`] | rank to agent: how far it is |
//! | 6 | [`Save`](Frame::Save) | agent to rank: a checkpoint is wanted at the next safe point |
//! | 7 | [`Finish`](Frame::Finish) | rank to agent: the work is done |
//! | 8 | [`Finished`](Frame::Finished) | agent to rank, to kind 7: that is known; it may end |
//! | 9 | [`Farewell`](Frame::Farewell) | both ways, before the stream is closed |
//!
//! A file is a descriptor (SCM_RIGHTS) that is sent with its frame's first byte.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::codec::{FRAME_OVERHEAD, FrameHeader, take_frame};
use crate::limits::MAX_REASON;
use crate::{Malformed, PROTOCOL_VERSION};
use zerocopy::IntoBytes;

mod layout;

use layout::Reader;

/// The environment variable in which a rank finds the path of its agent's socket.
pub const SOCKET_VARIABLE: &str = "STEADFAST_JOB_SOCKET";

/// The environment variable in which a rank finds its token, in hexadecimal digits.
pub const TOKEN_VARIABLE: &str = "STEADFAST_JOB_TOKEN";

/// The environment variable in which a rank finds its number, from 0.
pub const RANK_VARIABLE: &str = "STEADFAST_JOB_RANK";

/// The environment variable in which a rank finds how many ranks its job has.
pub const RANKS_VARIABLE: &str = "STEADFAST_JOB_RANKS";

/// Bytes of a token.
pub const TOKEN: usize = 32;

/// The most arrays of a rank.
pub const MAX_ARRAYS: usize = 1_024;

/// The most bytes of an array's name, and of its form.
pub const MAX_ARRAY_NAME: usize = 256;

/// The most pieces of a snapshot. A rank with more of them joins neighbours.
pub const MAX_PIECES: usize = 16_384;

/// Bytes of a page: each array begins at a multiple of it in a file, and each piece in its array.
pub const PAGE: u64 = 4_096;

/// A named array of bytes.
///
/// ```text
///  0             2             4        12
/// +-------------+-------------+--------+------+------
/// | name bytes  | form bytes  | length | name | form
/// +-------------+-------------+--------+------+------
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Array {
    /// Its name, unique in the rank.
    pub name: String,
    /// Its form, as the program describes it: element type and shape.
    pub form: String,
    /// Its bytes.
    pub length: u64,
}

/// Bytes of an array in a snapshot's file. They follow each other there without a gap.
///
/// ```text
///  0       4        12       20
/// +-------+--------+--------+
/// | array | offset | length |
/// +-------+--------+--------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The array, by its place in the snapshot's list.
    pub array: u32,
    /// The first byte, a multiple of [`PAGE`].
    pub offset: u64,
    /// How many: a multiple of [`PAGE`], or up to the array's end.
    pub length: u64,
}

/// The first words of a rank.
///
/// ```text
///  0      4         5     8
/// +------+---------+-----+-------+
/// | SFRK | version |0 0 0| token |
/// +------+---------+-----+-------+
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol that the rank speaks.
    pub version: u8,
    /// The token that the agent gave it in its environment.
    pub token: [u8; TOKEN],
}

impl Hello {
    /// Tells a rank from whatever else may find the socket.
    pub const MAGIC: [u8; 4] = *b"SFRK";

    /// The words of this program, in this version.
    pub fn new(token: [u8; TOKEN]) -> Hello {
        Hello { version: PROTOCOL_VERSION, token }
    }
}

/// When a rank saves what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Every {
    /// When it pays: by the measured cost of a checkpoint (Young and Daly).
    #[default]
    Auto,
    /// Only when it is asked to.
    Never,
    /// So many microseconds after the last one.
    Micros(u64),
}

/// The agent lets a rank in.
///
/// ```text
///  0         1       2       4      8       12    20      28     36       44     52
/// +---------+-------+-------+------+-------+-----+-------+------+--------+------+--------
/// | version | flags | arrays| rank | ranks | job | start | step | every  | age  | arrays
/// +---------+-------+-------+------+-------+-----+-------+------+--------+------+--------
/// flags  bit 0: there is a state, and its file comes with this frame
///        bit 1: save full images only         bit 2: wait until an image is saved
/// every  microseconds; 0: only when asked; all bits set: as it pays
/// age    microseconds that a rank is expected to live, for `auto`
/// ```
///
/// In the file each array begins at a page, in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The protocol that the agent speaks.
    pub version: u8,
    /// There is a state to go on from.
    pub restored: bool,
    /// Increments are not wanted.
    pub full: bool,
    /// The rank waits until each image is saved.
    pub blocking: bool,
    /// The rank, from 0.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// The job.
    pub job: u64,
    /// Which start of the rank this is, from 1.
    pub start: u64,
    /// How far the state is.
    pub step: u64,
    /// When to save.
    pub every: Every,
    /// Microseconds that a rank is expected to live.
    pub age_us: u64,
    /// The arrays of the state.
    pub arrays: Vec<Array>,
}

/// A rank's memory as it is at a safe point. Its file comes with it, and belongs to the agent until
/// [`Saved`] is there.
///
/// ```text
///  0      8       9     12        16     20      24
/// +------+-------+-----+---------+------+-------+--------+-------
/// | step | full? |0 0 0| stop us | spans| arrays| arrays | spans
/// +------+-------+-----+---------+------+-------+--------+-------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How far the rank is.
    pub step: u64,
    /// All is there. Else: what has changed since the last snapshot that was saved.
    pub full: bool,
    /// Microseconds for which the program has stopped.
    pub stop_us: u32,
    /// All arrays of the rank.
    pub arrays: Vec<Array>,
    /// The bytes in the file, in order of array and offset.
    pub spans: Vec<Span>,
}

/// The end of a checkpoint.
///
/// ```text
///  0      8        9      10
/// +------+--------+------+--------
/// | step | saved? | full?| reason
/// +------+--------+------+--------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The snapshot's.
    pub step: u64,
    /// The rank will go on from it. Else: why there is no image.
    pub outcome: Result<(), String>,
    /// The next snapshot is to be a full one.
    pub full: bool,
}

/// How far a rank is.
///
/// ```text
///  0      8       16
/// +------+-------+
/// | step | steps |    steps: 0 if nobody knows
/// +------+-------+
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Turns that are done.
    pub step: u64,
    /// All turns; 0: nobody knows.
    pub steps: u64,
}

/// Any frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A rank introduces itself.
    Hello(Hello),
    /// It is let in.
    Welcome(Welcome),
    /// Save this.
    Snapshot(Snapshot),
    /// It is saved, or not.
    Saved(Saved),
    /// So far it is.
    Step(Step),
    /// A checkpoint is wanted.
    Save,
    /// The work is done.
    Finish,
    /// That is known.
    Finished,
    /// The stream ends. | reason |
    Farewell(String),
}

impl Frame {
    /// Whether a file comes with this frame.
    pub fn has_file(&self) -> bool {
        match self {
            Frame::Welcome(welcome) => welcome.restored,
            Frame::Snapshot(_) => true,
            _ => false,
        }
    }

    /// The bytes to write, header included.
    pub fn encode(&self) -> Bytes {
        let mut body = BytesMut::new();
        let kind = match self {
            Frame::Hello(hello) => layout::hello(&mut body, hello),
            Frame::Welcome(welcome) => layout::welcome(&mut body, welcome),
            Frame::Snapshot(snapshot) => layout::snapshot(&mut body, snapshot),
            Frame::Saved(saved) => layout::saved(&mut body, saved),
            Frame::Step(Step { step, steps }) => {
                body.put_u64_le(*step);
                body.put_u64_le(*steps);
                5
            }
            Frame::Save => 6,
            Frame::Finish => 7,
            Frame::Finished => 8,
            Frame::Farewell(reason) => {
                body.put_slice(reason.as_bytes());
                9
            }
        };
        let mut frame = BytesMut::with_capacity(FRAME_OVERHEAD + body.len());
        frame.put_slice(FrameHeader::new(body.len(), kind).as_bytes());
        frame.put_slice(&body);
        frame.freeze()
    }

    /// Takes the next whole frame out of what a stream has brought, or `None` if more must come.
    ///
    /// # Errors
    /// [`Malformed`]: the stream cannot be trusted any more and is to be closed.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let Some((kind, body)) = take_frame(buffer, 1..=9)? else { return Ok(None) };
        let mut reader = Reader(&body);
        let frame = match kind {
            1 => Frame::Hello(reader.hello()?),
            2 => Frame::Welcome(reader.welcome()?),
            3 => Frame::Snapshot(reader.snapshot()?),
            4 => Frame::Saved(reader.saved()?),
            5 => Frame::Step(Step { step: reader.u64()?, steps: reader.u64()? }),
            6 => Frame::Save,
            7 => Frame::Finish,
            8 => Frame::Finished,
            9 => Frame::Farewell(reader.rest(MAX_REASON, "reason")?),
            kind => return Err(Malformed::Kind(kind)),
        };
        reader.end()?;
        Ok(Some(frame))
    }
}
