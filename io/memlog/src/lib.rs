//! Logs of messages in memory that processes of one host share (`docs/decisions/0063-channels.md`).
//!
//! - [`Writer`]: the sender's end; [`Reader`]: the receiver's, who reads messages where they lie.
//! - [`Mirror`]: the same log at another host, byte for byte: an agent writes it.
//! - [`Kept`]: the same on a disk, where it outlives its sender's host.
//! - [`Bell`]: wakes a reader that sleeps.
//!
//! ```text
//! page 0     words of 8 bytes, each in a line of the cache of its own:
//!              0  magic and version     64  bytes published, ever     128  bytes let go, ever
//!            192  bytes to be kept soon; of a log on a disk: 256  bytes there, 320  the last message
//! page 1...  a ring of records: head (32 bytes) and bytes, each from a multiple of 32 on; a record
//!            does not go around the end, where number 0 says that the rest is empty
//! ```
//!
//! A reader believes nothing: a peer may be broken. A log is sealed, so nobody takes its memory away,
//! and nobody but its writer can write there. Long ones are on a disk.
#![deny(unsafe_code)]

mod bell;
mod kept;
mod memory;
mod mirror;
mod reader;
mod ring;
#[cfg(test)]
mod tests;
mod writer;

pub use bell::Bell;
pub use channel::Head;
pub use kept::{Found as FoundKept, Kept, LastKept};
pub use memory::is_on_disk;
pub use mirror::Mirror;
pub use reader::{Found, Reader};
pub use ring::Broken;
pub use writer::{Full, IN_MEMORY, Writer};
