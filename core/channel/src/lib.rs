//! Channels between the ranks of a job (`star.txt`, sections 4.2 and 4.3): only the rank that failed
//! goes back, and no message is lost or taken twice.
//!
//! Each ordered pair of ranks has a channel, and its messages have numbers from 1. The sender keeps
//! them in its *log* until no state of the receiver needs them that may be restored, and its own
//! images have the log. So any ranks may die at once:
//!
//! - A receiver that goes back asks for the messages that it had not taken by then; they are in logs.
//! - A sender that goes back has the log of its image, and sends the later messages once more: the
//!   same ones, because it is deterministic. Whoever has taken them drops them by their numbers.
//! - A *choice* is what a rank's program cannot know by itself: from whom the next message comes, if
//!   any will do. Choices are noted at another host. A message leaves when all choices before it are
//!   noted, so nobody has a message that its sender would not send again.
//!
//! [`Channels`] is one rank's part. It is pure: where bytes lie is the driver's, by a place of its own
//! (`P`) with each message; what is to be done is said by what it returns.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod channels;
mod choices;
mod error;
mod line;
mod received;
mod seen;
mod sent;
mod vector;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use channels::{Channels, Needless, Taken};
pub use choices::Notes;
pub use error::ChannelError;
pub use line::{State, line};
pub use received::Arrival;
pub use seen::Seen;
pub use vector::Vector;
pub use wire::rank::{Choice, Counts};

/// The most messages that a program may take of a channel before older ones of the same channel, by
/// their tags.
pub const MAX_AHEAD: usize = 65_536;

/// Tags from this one on are taken by themselves alone, and never as any tag.
pub const OWN_TAGS: u32 = 1 << 31;

/// Messages of each channel whose heads are remembered, to see that a sender sends the same again.
pub const CHECKED: usize = 4_096;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Head {
    /// Its number in its channel, from 1.
    pub number: u64,
    /// The program's word for it.
    pub tag: u32,
    /// Its bytes.
    pub length: u64,
    /// A checksum of all messages of the channel up to this one: whoever has taken others before it
    /// sees that by it alone.
    pub check: u32,
}

impl Head {
    /// The head of a message after one with this checksum. `body`: a checksum of its bytes.
    pub fn after(before: u32, number: u64, (tag, length, body): (u32, u64, u32)) -> Head {
        const ODD: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];
        let mut mixed = u64::from(before) << 32 | u64::from(body);
        for word in [number, u64::from(tag), length] {
            mixed = (mixed ^ word).wrapping_mul(ODD[0]);
            mixed = (mixed ^ mixed >> 32).wrapping_mul(ODD[1]);
        }
        Head { number, tag, length, check: (mixed >> 32) as u32 }
    }
}
