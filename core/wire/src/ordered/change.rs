//! How a service's state has changed.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::codec::{append, at_most, read};
use crate::limits::MAX_EDITS;

/// What became of a service's state.
///
/// ```text
/// | 1 | the whole state                                                                  |
/// | 2 | length of the edits 4 | base, edits: count, each (keep, drop, put) | bytes put   |
/// | 3 | the service's own words: what its `delta` gave                                   |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// This is all of it.
    Whole(Bytes),
    /// These edits of what it was make what it is.
    Difference(Difference),
    /// The service knows how to apply this.
    Own(Bytes),
}

/// Edits of one sequence of bytes that make another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// FNV-1a (64 bits) of the bytes that the edits are of.
    pub base: u64,
    /// In order. What is left of the base after the last is dropped.
    pub edits: Vec<Edit>,
    /// All that the edits put, one after the other.
    pub put: Bytes,
}

/// A step: so many bytes of the base stay, so many go, and so many new ones come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Bytes of the base that stay.
    pub keep: u32,
    /// Bytes of the base, after these, that go.
    pub drop: u32,
    /// New bytes.
    pub put: u32,
}

impl Change {
    /// The bytes that an update carries.
    pub fn encode(&self) -> Bytes {
        let with = |kind: u8, bytes: &Bytes| {
            let mut buffer = Vec::with_capacity(1 + bytes.len());
            buffer.push(kind);
            buffer.extend_from_slice(bytes);
            buffer.into()
        };
        match self {
            Change::Whole(state) => with(1, state),
            Change::Own(words) => with(3, words),
            Change::Difference(difference) => {
                let head = (difference.base, &difference.edits);
                let mut buffer = append(alloc::vec![2, 0, 0, 0, 0], &head);
                let length = u32::try_from(buffer.len() - 5).expect("edits are limited");
                buffer[1..5].copy_from_slice(&length.to_le_bytes());
                buffer.extend_from_slice(&difference.put);
                buffer.into()
            }
        }
    }

    /// Reads what [`Change::encode`] wrote; shares `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<Change, Malformed> {
        match bytes.first().ok_or(Malformed::Length)? {
            1 => Ok(Change::Whole(bytes.slice(1..))),
            2 => {
                let length = bytes.get(1..5).ok_or(Malformed::Length)?;
                let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
                let head = bytes[5..].get(..length).ok_or(Malformed::Length)?;
                let (base, edits) = read::<(u64, Vec<Edit>)>(head)?;
                at_most(edits.len(), MAX_EDITS, "edits")?;
                let put = bytes.slice(5 + length..);
                Ok(Change::Difference(Difference { base, edits, put }))
            }
            3 => Ok(Change::Own(bytes.slice(1..))),
            &kind => Err(Malformed::Kind(kind)),
        }
    }
}
