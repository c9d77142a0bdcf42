//! The ring's datagrams, encrypted and authenticated (`docs/protocol/seal.md`).
//!
//! A sealed datagram is an envelope around one datagram of the ring, little-endian:
//!
//! ```text
//!  0      2         3     4        8      12            20     28        36           36+n    52+n
//! +------+---------+-----+--------+------+-------------+------+---------+------------+-------+
//! | "SS" | version | key | sender |  to  | incarnation | salt | counter | ciphertext |  tag  |
//! |      |    1    |     |  node  | node | of sender   |      |         |            |       |
//! +------+---------+-----+--------+------+-------------+------+---------+------------+-------+
//! \____________________ associated data, 36 bytes ______________________/
//!
//! key      number of the cluster key, 1 to 255
//! to       the receiver; 0: every node of the cluster
//! salt     drawn at random by the sender's life
//! counter  from 1, one more with every datagram that this life seals, whatever the key
//! ```
//!
//! AES-256-GCM; its key is that of one life of one sender under one cluster key
//! ([`ClusterKey`]), its nonce is four zero bytes and the counter.
//!
//! [`Seal`] is one node's whole part: its [`Sealer`], an [`Opener`] for every peer, and the
//! [contact](Contact) that a receiver must have had with a sender's life before it believes that
//! what it gets from it was not recorded earlier. Like every machine of the house it has no clock,
//! no socket and no source of randomness: time and a random seed are handed in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bug;
mod contact;
mod counters;
mod derive;
mod envelope;
mod keys;
mod opener;
mod peer;
mod seal;
mod sealer;
mod window;

#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use bug::Planted;
pub use contact::{Contact, Nonce};
pub use counters::Counters;
pub use derive::{ClusterKey, Fingerprint};
pub use envelope::{Envelope, HEADER, MAX_SEALED, OVERHEAD, TAG, is_sealed};
pub use keys::{KeyFileError, Keys, MAX_KEYS, NoSuchKey};
pub use opener::Opener;
pub use seal::{Config, Seal, SealedContact};
pub use sealer::{Exhausted, Sealer};
pub use window::{Fresh, WINDOW, Window};

/// Why a datagram is not opened. It is counted and dropped; nothing else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not an envelope: too short, too long, or another program's bytes.
    #[error("not a sealed datagram")]
    Malformed,
    /// A datagram of the ring without an envelope.
    #[error("a datagram that is not sealed, where sealing is required")]
    Plain,
    /// Sealed with a cluster key that this node does not have.
    #[error("sealed with a cluster key that is not in this node's key file")]
    UnknownKey,
    /// The sender is no node of this cluster.
    #[error("the sender is not among the configured nodes")]
    Stranger,
    /// Meant for another node, or a node's own datagram come back.
    #[error("sealed for another node")]
    Misaddressed,
    /// Not what a holder of the key sealed.
    #[error("forged or changed on its way")]
    Forged,
    /// This very datagram has come before: by another link, or because somebody sent it again.
    #[error("came before")]
    Duplicate,
    /// Older than the window reaches: late beyond all measure, or recorded.
    #[error("older than the replay window")]
    Replayed,
    /// From a life of its sender that is over, or sealed before this node met that life.
    #[error("of an earlier life of its sender, or of before this node met it")]
    Stale,
    /// Genuine, but this node has not met this life of the sender yet: it cannot tell whether it
    /// was recorded earlier. A contact is under way, and the ring repeats what is lost.
    #[error("of a life of its sender that has not proved to be alive yet")]
    Unmet,
}
