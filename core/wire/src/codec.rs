//! The few helpers that the message modules share.

use bytes::{Buf, Bytes, BytesMut};
use serde::{Serialize, de::DeserializeOwned};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::limits::MAX_FRAME;
use crate::version_range::VersionRange;

/// Why bytes are not a message. They are counted and dropped; nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The first bytes are not ours: another program talks to this port.
    #[error("not a Steadfast message (wrong magic number)")]
    Magic,
    /// The sender speaks other versions of the protocol.
    #[error("version {theirs} of the protocol, this program speaks {ours}: upgrade the older side")]
    Version {
        /// Those of the sender, or the one of the message.
        theirs: VersionRange,
        /// Those of this program.
        ours: VersionRange,
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

/// Reads a postcard value, and behind it the value that newer rules add. Without that, `bytes` end
/// with the first.
pub(crate) fn read_with<T: DeserializeOwned, U: DeserializeOwned>(
    bytes: &[u8],
) -> Result<(T, Option<U>), Malformed> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok((value, None)),
        Ok((value, rest)) => Ok((value, Some(read(rest)?))),
        Err(postcard::Error::DeserializeUnexpectedEnd) => Err(Malformed::Length),
        Err(_) => Err(Malformed::Field("postcard body")),
    }
}

/// Refuses a list that is longer than its limit.
pub(crate) fn at_most(length: usize, limit: usize, field: &'static str) -> Result<(), Malformed> {
    if length > limit { Err(Malformed::Field(field)) } else { Ok(()) }
}

/// The head of a frame, on every stream.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct FrameHeader {
    length: U32,
    kind: u8,
    reserved: [u8; 3],
}

/// Bytes of a frame before its body.
pub const FRAME_OVERHEAD: usize = size_of::<FrameHeader>();

impl FrameHeader {
    /// The head of a frame with a body of so many bytes. The limits of its parts keep it within
    /// [`MAX_FRAME`].
    pub(crate) fn new(length: usize, kind: u8) -> Self {
        let length = u32::try_from(length).expect("bodies are limited");
        FrameHeader { length: length.into(), kind, reserved: [0; 3] }
    }
}

/// The first kind of frame that a program skips when it does not know it: a newer program may send
/// those to an older one.
pub const FIRST_OPTIONAL_FRAME: u8 = 128;

/// Takes the next whole frame, its kind and its body, out of what a stream has brought, or `None`
/// if more must come. One that is too long, or of no known kind, is refused by its header, before
/// its body arrives; an optional one of no known kind is skipped.
pub(crate) fn take_frame(
    buffer: &mut BytesMut,
    kinds: impl Fn(u8) -> bool,
) -> Result<Option<(u8, Bytes)>, Malformed> {
    while let Ok((header, rest)) = FrameHeader::read_from_prefix(buffer) {
        let (length, kind) = (header.length.get() as usize, header.kind);
        if length > MAX_FRAME {
            return Err(Malformed::Length);
        }
        if header.reserved != [0; 3] {
            return Err(Malformed::Field("reserved"));
        }
        let known = kinds(kind);
        if !known && kind < FIRST_OPTIONAL_FRAME {
            return Err(Malformed::Kind(kind));
        }
        if rest.len() < length {
            break;
        }
        buffer.advance(FRAME_OVERHEAD);
        let body = buffer.split_to(length);
        if known {
            return Ok(Some((kind, body.freeze())));
        }
    }
    Ok(None)
}
