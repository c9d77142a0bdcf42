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
//! | 10 | [`Bell`](Frame::Bell) | both ways, with a file: rings for the reader of messages to a rank |
//! | 11 | [`Log`](Frame::Log) | both ways, with a file: messages to a rank, or of it |
//! | 12 | [`Needless`](Frame::Needless) | both ways: messages that nobody needs any more |
//! | 13 | [`Oldest`](Frame::Oldest) | agent to rank: earlier images will not be restored |
//! | 14 | [`Choices`](Frame::Choices) | rank to agent: note these; agent to rank, behind kind 2 |
//! | 15 | [`Noted`](Frame::Noted) | agent to rank, to kind 14 |
//! | 16 | [`Waits`](Frame::Waits) | rank to agent: it waits for a message |
//! | 17 | [`Diverged`](Frame::Diverged) | rank to agent: it cannot go on from what it and others did |
//! | 18 | [`Keeper`](Frame::Keeper) | agent to rank, with a file: what is sent is kept on disks |
//! | 19 | [`Kept`](Frame::Kept) | agent to rank, with a file: how far what is sent to a rank is kept |
//!
//! A file is a descriptor (SCM_RIGHTS) that is sent with its frame's first byte.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, Bytes, BytesMut};

use crate::Malformed;
use crate::codec::{FRAME_OVERHEAD, FrameHeader, take_frame};
use crate::limits::MAX_REASON;
use zerocopy::IntoBytes;

mod layout;
mod messages;

use layout::Reader;

pub use messages::{
    Array, Choice, Choices, Counts, Every, Hello, Log, MAX_ARRAY_NAME, MAX_ARRAYS, MAX_CHOICES,
    MAX_PIECES, MAX_RANKS, PAGE, Saved, Snapshot, Span, Step, TOKEN, Welcome,
};

/// The environment variable in which a rank finds the path of its agent's socket.
pub const SOCKET_VARIABLE: &str = "STEADFAST_JOB_SOCKET";

/// The environment variable in which a rank finds its token, in hexadecimal digits.
pub const TOKEN_VARIABLE: &str = "STEADFAST_JOB_TOKEN";

/// The environment variable in which a rank finds its number, from 0.
pub const RANK_VARIABLE: &str = "STEADFAST_JOB_RANK";

/// The environment variable in which a rank finds how many ranks its job has.
pub const RANKS_VARIABLE: &str = "STEADFAST_JOB_RANKS";

/// The folder on a disk for logs of messages that are too long for memory.
pub const SPILL_VARIABLE: &str = "STEADFAST_JOB_SPILL";

/// The environment variable in which a rank finds which file its agent has for its standard output:
/// `DEVICE:INODE`, in decimal digits. What is printed elsewhere is not the job's.
pub const OUTPUT_VARIABLE: &str = "STEADFAST_JOB_OUTPUT";

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
    /// To be rung when something was published for this rank; its file comes with it. | rank (4) |
    Bell(u32),
    /// A log of messages; its file comes with it.
    Log(Log),
    /// Ranks, and a message of each: nobody needs those of that rank to this one up to there; by the
    /// rank itself, a choice of its own. To a rank: nobody needs those of it to that rank.
    /// | rank (4), number (8) | ...
    Needless(Vec<(u32, u64)>),
    /// Images before this generation will not be restored. | generation (8) |
    Oldest(u64),
    /// Choices: the program could not know them by itself.
    Choices(Choices),
    /// All choices up to this one are noted elsewhere. | number (8) |
    Noted(u64),
    /// The rank waits for a message.
    Waits,
    /// The rank cannot go on from what it and others did, or what it needs is lost: it is about to end.
    Diverged(String),
    /// All that the rank sends is kept on disks. Its file, a bell, is to be rung when so many messages to
    /// a rank are not there yet; at twice as many, the sender waits. | messages (4) |
    Keeper(u32),
    /// A log of messages to this rank, as far as it is kept on disks: its file. | rank (4) |
    Kept(u32),
}

impl Frame {
    /// Whether a file comes with this frame.
    pub fn has_file(&self) -> bool {
        match self {
            Frame::Welcome(welcome) => welcome.restored,
            Frame::Snapshot(_) | Frame::Bell(_) | Frame::Log(_) => true,
            Frame::Keeper(_) | Frame::Kept(_) => true,
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
            Frame::Bell(rank) => {
                body.put_u32_le(*rank);
                10
            }
            Frame::Log(Log { rank, start }) => {
                body.put_u32_le(*rank);
                body.put_u64_le(*start);
                11
            }
            Frame::Needless(needless) => layout::needless(&mut body, needless),
            Frame::Oldest(generation) => {
                body.put_u64_le(*generation);
                13
            }
            Frame::Choices(choices) => layout::choices(&mut body, choices),
            Frame::Noted(number) => {
                body.put_u64_le(*number);
                15
            }
            Frame::Waits => 16,
            Frame::Diverged(reason) => {
                body.put_slice(reason.as_bytes());
                17
            }
            Frame::Keeper(messages) => {
                body.put_u32_le(*messages);
                18
            }
            Frame::Kept(rank) => {
                body.put_u32_le(*rank);
                19
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
        let Some((kind, body)) = take_frame(buffer, |kind| (1..=19).contains(&kind))? else {
            return Ok(None);
        };
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
            10 => Frame::Bell(reader.u32()?),
            11 => Frame::Log(Log { rank: reader.u32()?, start: reader.u64()? }),
            12 => Frame::Needless(reader.needless()?),
            13 => Frame::Oldest(reader.u64()?),
            14 => Frame::Choices(reader.choices()?),
            15 => Frame::Noted(reader.u64()?),
            16 => Frame::Waits,
            17 => Frame::Diverged(reader.rest(MAX_REASON, "reason")?),
            18 => Frame::Keeper(reader.u32()?),
            19 => Frame::Kept(reader.u32()?),
            kind => return Err(Malformed::Kind(kind)),
        };
        reader.end()?;
        Ok(Some(frame))
    }
}
