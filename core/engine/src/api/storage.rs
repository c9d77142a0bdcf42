//! Faults of a node's storage.

use alloc::string::String;
use core::fmt;

/// A change of the storage's condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageNews {
    /// The disk is full, with the system's error text. The reserve holds some further records. When
    /// it is used up, the node leaves.
    Full(String),
    /// The disk has room again.
    Room,
    /// Writing has failed, for this reason. The node leaves, so that the others go on.
    Failed(String),
}

impl fmt::Display for StorageNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageNews::Full(text) => write!(
                f,
                "the disk of the storage is full ({text}): free some space, or the node leaves when its \
                 reserve is used up"
            ),
            StorageNews::Room => f.write_str("the disk of the storage has room again"),
            StorageNews::Failed(reason) => write!(
                f,
                "storage has failed ({reason}): the node leaves; mend the disk, then start the node again"
            ),
        }
    }
}
