//! The few helpers that the message modules share.

use serde::{Serialize, de::DeserializeOwned};

/// The version of everything in this crate. Nodes and clients of another version are refused
/// with both numbers in the message.
pub const PROTOCOL_VERSION: u8 = 1;

/// Why bytes are not a message. They are counted and dropped; nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first bytes are not ours: another program talks to this port.
    #[error("not a Steadfast message (wrong magic number)")]
    Magic,
    /// The sender speaks another version of the protocol.
    #[error(
        "protocol version {theirs}, this program speaks {PROTOCOL_VERSION}: upgrade the older side"
    )]
    Version {
        /// The version in the message.
        theirs: u8,
    },
    /// The sender belongs to another cluster.
    #[error("a message of another cluster: give both the same cluster name, or other ports")]
    Cluster,
    /// No message has this number.
    #[error("unknown message kind {0}")]
    Kind(u8),
    /// The bytes end too early, or go on too long.
    #[error("truncated or overlong message")]
    Length,
    /// A field has a value that no sender writes.
    #[error("impossible value in field {0}")]
    Field(&'static str),
}

/// Appends the postcard form of `value`.
pub(crate) fn append<B: Extend<u8>, T: Serialize>(buffer: B, value: &T) -> B {
    // Writing to memory cannot fail, and our own types have no unsizable parts.
    postcard::to_extend(value, buffer).expect("postcard writes to memory")
}

/// Reads a postcard value that must fill `bytes` entirely.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(Malformed::Length),
        Err(postcard::Error::DeserializeUnexpectedEnd) => Err(Malformed::Length),
        Err(_) => Err(Malformed::Field("postcard body")),
    }
}

/// Refuses a list that is longer than its limit.
pub(crate) fn at_most(length: usize, limit: usize, field: &'static str) -> Result<(), Malformed> {
    if length > limit { Err(Malformed::Field(field)) } else { Ok(()) }
}
