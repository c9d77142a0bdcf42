//! Changing the key that seals the cluster's datagrams.

use alloc::vec::Vec;

use wire::NodeId;
use wire::keys::{KeyName, OfferedKey};

/// What a node is to do with its keys, strictly in the order given. `Store` and `SealWith` are
/// answered by [`Stack::handle_key_kept`](crate::Stack::handle_key_kept) when the file has it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCommand {
    /// Keep this key, and open with it.
    Store(OfferedKey),
    /// Seal with the key of this name, if it is there.
    SealWith(KeyName),
    /// Forget every key but this one, which seals.
    Keep(KeyName),
    /// Forget this key, which does not seal.
    Forget(KeyName),
}

/// Why the cluster's key cannot be changed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// There is no key.
    #[error("this node seals nothing: set [security] cluster_key at every node first")]
    NotSealed,
    /// Nothing can be ordered.
    #[error("no quorum: a key is changed in order, as everything else; start the missing nodes")]
    NoQuorum,
    /// One change at a time.
    #[error(
        "a change to key {0} is under way: `steadfast key status` tells who is waited for; \
         `steadfast key rotate --force` goes on without them, `steadfast key abort` gives it up"
    )]
    UnderWay(u8),
    /// A number tells one key from another.
    #[error("the cluster's key has number {0} already: give the next one another")]
    NumberTaken(u8),
    /// There is nothing to go on with or to give up.
    #[error("no change of the key is under way")]
    NoChange,
    /// Some seal with the new key already.
    #[error("key {0} is in use already: the change can only go on (or change the key once more)")]
    TooLate(u8),
}

/// The cluster's keys, for people: names only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// What seals, when nothing changes.
    pub sealing: KeyName,
    /// The change that is under way.
    pub change: Option<KeyChangeStatus>,
}

/// A change that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChangeStatus {
    /// The next key.
    pub key: KeyName,
    /// It seals already; the last one still opens.
    pub switched: bool,
    /// Only those that are here are waited for.
    pub forced: bool,
    /// Who is waited for.
    pub lacking: Vec<NodeId>,
}
