//! What happens to a node's storage.

use alloc::string::String;
use core::fmt;

/// What happened to a node's storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageNews {
    /// The disk is full: there is room for some records more, then the node leaves. With what the system says.
    Full(String),
    /// There is room again.
    Room,
    /// Nothing can be kept any more, for this reason: the node leaves, so that others go on.
    Failed(String),
}

impl fmt::Display for StorageNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageNews::Full(text) => write!(
                f,
                "the disk of the storage is full ({text}): free some room, or the node leaves when what is left is used up"
            ),
            StorageNews::Room => f.write_str("the disk of the storage has room again"),
            StorageNews::Failed(reason) => write!(
                f,
                "storage has failed ({reason}): the node leaves; mend the disk, then start the node again"
            ),
        }
    }
}
