//! Changing the key that seals the cluster's datagrams.

use alloc::vec::Vec;

use wire::NodeId;
use wire::keys::{KeyName, OfferedKey};

/// A command to the driver about the node's keys, carried out strictly in order. When the key file
/// is written, [`Stack::handle_key_kept`](crate::Stack::handle_key_kept) answers `Store` and
/// `SealWith`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCommand {
    /// Store this key, and open datagrams with it.
    Store(OfferedKey),
    /// Seal datagrams with this key, if the node has it.
    SealWith(KeyName),
    /// Delete all keys but this one, which seals.
    Keep(KeyName),
    /// Delete this key, which does not seal.
    Forget(KeyName),
}

/// Why the cluster's key cannot be changed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key.
    #[error("this node seals nothing: set [security] cluster_key at every node first")]
    NotSealed,
    /// Nothing can be ordered.
    #[error("no quorum: a change of the key needs one; start the missing nodes")]
    NoQuorum,
    /// Another change is under way.
    #[error(
        "a change to key {0} is under way: `steadfast key status` lists the nodes that it waits \
         for; `steadfast key rotate --force` goes on without them, `steadfast key abort` cancels it"
    )]
    UnderWay(u8),
    /// The current key has the same number, and numbers identify keys.
    #[error("the cluster's key has number {0} already: choose another number for the next key")]
    NumberTaken(u8),
    /// There is no change to force or to abort.
    #[error("no change of the key is under way")]
    NoChange,
    /// Some nodes seal with the new key already.
    #[error("key {0} is in use already: complete the change, then change the key once more")]
    TooLate(u8),
}

/// The names of the cluster's keys, for `steadfast status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// The key that seals when no change is under way.
    pub sealing: KeyName,
    /// The change that is under way.
    pub change: Option<KeyChangeStatus>,
}

/// A change that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChangeStatus {
    /// The next key.
    pub key: KeyName,
    /// The next key seals already; the last one still opens.
    pub switched: bool,
    /// The change waits only for the nodes that are in the ring.
    pub forced: bool,
    /// The nodes that the change waits for.
    pub lacking: Vec<NodeId>,
}
