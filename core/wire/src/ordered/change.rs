//! Changes of a service's state, from a warm passive primary to its backups.

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::codec::{append, at_most, read};
use crate::limits::MAX_EDITS;

/// A change of a service's state.
///
/// ```text
/// | 1 | the whole state                                                                  |
/// | 2 | length of the edits 4 | base, edits: count, each (keep, drop, put) | bytes put   |
/// | 3 | the service's own format: the result of its `delta`                              |
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole new state.
    Whole(Bytes),
    /// Edits that turn the old state into the new one.
    Difference(Difference),
    /// A delta in the service's own format. Only the service can apply it.
    Own(Bytes),
}

/// Edits that turn the bytes of a base into other bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// FNV-1a (64 bits) of the base.
    pub base: u64,
    /// The edits in order. The rest of the base after the last edit is dropped.
    pub edits: Vec<Edit>,
    /// The new bytes of all edits, one after the other.
    pub put: Bytes,
}

/// One edit: keeps bytes of the base, drops the bytes after them, then inserts new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Bytes of the base to keep.
    pub keep: u32,
    /// Bytes of the base to drop after these.
    pub drop: u32,
    /// New bytes to insert.
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
