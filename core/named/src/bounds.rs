//! Marks and bounds of what is written and read.

use alloc::string::String;
use alloc::vec::Vec;

/// The first bytes, with which no other encoding of the same type begins. Eleven bytes of ones are
/// no text's length and no number in postcard, and the encodings that could have them are shorter.
pub const MARK: [u8; 12] = *b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";

/// Levels of nesting that a call's arguments and result may have: each takes a part of the stack
/// of the thread that reads them.
pub const MAX_CALL_DEPTH: usize = 128;

/// Dropped fields that a reader lists; it counts no further ones.
pub const MAX_DROPPED: usize = 32;

/// How much is written or read at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Levels of nesting.
    pub depth: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Bounds {
    /// There are none: for one's own data.
    pub const NONE: Bounds = Bounds { depth: usize::MAX, bytes: usize::MAX };
    /// Those of a call's arguments and result.
    pub const CALL: Bounds = Bounds { depth: MAX_CALL_DEPTH, bytes: usize::MAX };
}

/// A value that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<T> {
    /// The value.
    pub value: T,
    /// Fields that the bytes have and the type does not know, as `Type.field`.
    pub dropped: Vec<String>,
    /// The type asked for a value without saying which (`flatten`, `untagged`, `tag`): what comes
    /// of it may depend on the value.
    pub is_dynamic: bool,
}
