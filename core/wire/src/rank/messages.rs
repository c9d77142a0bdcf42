//! The messages between an agent and a rank, as values.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::versions::{RANK, VersionRange};

/// Bytes of a token.
pub const TOKEN: usize = 32;

/// The most arrays of a rank.
pub const MAX_ARRAYS: usize = 1_024;

/// The most bytes of an array's name, and of its form.
pub const MAX_ARRAY_NAME: usize = 256;

/// The most pieces of a snapshot. A rank with more of them joins neighbours.
pub const MAX_PIECES: usize = 16_384;

/// The most ranks that a frame names.
pub const MAX_RANKS: usize = 1_024;

/// The most choices in a frame.
pub const MAX_CHOICES: usize = 65_536;

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

/// The first words of a rank. Its form is frozen: at most [`MAX_EXTENSION`](crate::limits::MAX_EXTENSION)
/// bytes after it are skipped.
///
/// ```text
///  0      4          5       6     8       40
/// +------+----------+-------+-----+-------+-----------
/// | SFRK | greatest | least | 0 0 | token | extension
/// +------+----------+-------+-----+-------+-----------
/// greatest, least  the versions that the rank speaks; least 0: the greatest alone
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The versions that the rank speaks.
    pub speaks: VersionRange,
    /// The token that the agent gave it in its environment.
    pub token: [u8; TOKEN],
}

impl Hello {
    /// Tells a rank from whatever else may find the socket.
    pub const MAGIC: [u8; 4] = *b"SFRK";

    /// The words of this program, in its versions.
    pub fn new(token: [u8; TOKEN]) -> Hello {
        Hello { speaks: RANK, token }
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
    /// At each turn of its outermost loop whose number is a multiple of this: all ranks at the same.
    Turns(u64),
}

/// The agent lets a rank in.
///
/// ```text
///  0         1       2       4      8       12    20      28     36      44    52
/// +---------+-------+-------+------+-------+-----+-------+------+-------+-----+------------
/// | version | flags | arrays| rank | ranks | job | start | step | every | age | generation
/// +---------+-------+-------+------+-------+-----+-------+------+-------+-----+------------
///  60      68      76
/// +-------+-------+--------
/// | after | noted | arrays
/// +-------+-------+--------
/// flags  bit 0: there is a state, and its file comes with this frame
///        bit 1: save full images only         bit 2: wait until an image is saved
///        bit 3: all ranks have gone back
/// every  microseconds; 0: only when asked; all bits set: as it pays; else, with the highest bit: turns
/// age    microseconds that a rank is expected to live, for `auto`
/// noted  so many choices of earlier starts, behind `after`, follow in frames of kind 14
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
    /// All ranks have gone back to states that fit together, and this one is from before: choices that
    /// were made later by then count no more.
    pub regrouped: bool,
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
    /// The number of the state's image; 0: there is none.
    pub generation: u64,
    /// Choices up to this one are needed no more.
    pub after: u64,
    /// The next ones, of earlier starts, are noted: so many follow in frames of their own.
    pub noted: u64,
    /// The arrays of the state.
    pub arrays: Vec<Array>,
}

/// A rank's memory as it is at a safe point. Its file comes with it, and belongs to the agent until
/// [`Saved`] is there.
///
/// ```text
///  0      8       9     12        16     20      24       28
/// +------+-------+-----+---------+------+-------+--------+--------+-------+--------
/// | step | full? |0 0 0| stop us | spans| arrays| ranks  | arrays | spans | counts
/// +------+-------+-----+---------+------+-------+--------+--------+-------+--------
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
    /// The channels with each rank; none, if there were no messages.
    pub counts: Vec<Counts>,
}

/// The end of a checkpoint.
///
/// ```text
///  0      8            16       17     18
/// +------+------------+--------+------+--------
/// | step | generation | saved? | full?| reason
/// +------+------------+--------+------+--------
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The snapshot's.
    pub step: u64,
    /// The image's number; 0: there is none.
    pub generation: u64,
    /// The rank will go on from it. Else: why there is no image.
    pub outcome: Result<(), String>,
    /// The next snapshot is to be a full one.
    pub full: bool,
}

/// The channels of a rank with another one, in a state.
///
/// ```text
///  0       8      16      24      32
/// +-------+------+-------+-------+
/// | first | sent | below | taken |
/// +-------+------+-------+-------+
/// | start | checks (2 × 4)       |
/// +-------+----------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The first message to it that the log in the state has, or the next one.
    pub first: u64,
    /// The last one that was sent.
    pub sent: u64,
    /// All messages of it up to this one were taken.
    pub below: u64,
    /// The last one that was taken, also before older ones.
    pub taken: u64,
    /// The start of the other rank that has sent what was taken, as it, or again.
    pub start: u64,
    /// Checksums of all messages up to the last one that was sent, and up to `below`.
    pub checks: [u32; 2],
}

impl Counts {
    /// Those of a rank that begins anew.
    pub const NONE: Counts =
        Counts { first: 1, sent: 0, below: 0, taken: 0, start: 0, checks: [0; 2] };
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

/// A log of messages. Its file comes with it.
///
/// ```text
///  0      4       12
/// +------+-------+
/// | rank | start |
/// +------+-------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// From a rank: messages to this one. To a rank: messages of this one.
    pub rank: u32,
    /// The sender's start.
    pub start: u64,
}

/// A choice: what a program cannot know by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// The next message came from this rank.
    From(u32),
    /// A message was there, or not yet.
    There(bool),
    /// A number from outside: a clock, a random one.
    Number(u64),
}

/// Choices, one after the other.
///
/// ```text
///  0       8
/// +-------+----------+-----------+------
/// | after | kind (1) | value (8) | ...     kind 1: rank; 2: 0 or 1; 3: a number
/// +-------+----------+-----------+------
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The number of the choice before the first of these.
    pub after: u64,
    /// They.
    pub choices: Vec<Choice>,
}
