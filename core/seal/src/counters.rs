//! Counts of datagrams by their fate.

use serde::{Deserialize, Serialize};

use crate::Refused;

/// The datagrams handled since the node's start, by their fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Sealed. One that goes to several nodes counts once.
    pub sealed: u64,
    /// Opened.
    pub opened: u64,
    /// Contact messages opened.
    pub contacts_in: u64,
    /// Contact messages sent.
    pub contacts_out: u64,
    /// Lives of other nodes that proved to be going on.
    pub met: u64,
    /// Refused: no envelope at all, nor a datagram of the ring.
    pub malformed: u64,
    /// Refused: a datagram of the ring without envelope.
    pub plain: u64,
    /// Refused: sealed with a key that this node does not have.
    pub unknown_key: u64,
    /// Refused: for another node, or of a node that is not configured ([`Refused::Misaddressed`],
    /// [`Refused::Stranger`]).
    pub misaddressed: u64,
    /// Refused: not what a holder of the key sealed.
    pub forged: u64,
    /// Refused: it had come before. With two links that is the other link's copy.
    pub duplicates: u64,
    /// Refused: older than what this node has taken, or of a life that is over
    /// ([`Refused::Replayed`], [`Refused::Stale`]).
    pub replayed: u64,
    /// Dropped: genuine, but of a life that had not proved to be going on.
    pub unmet: u64,
}

impl Counters {
    /// Counts one by its reason.
    pub(crate) fn refused(&mut self, refused: Refused) {
        *match refused {
            Refused::Malformed => &mut self.malformed,
            Refused::Plain => &mut self.plain,
            Refused::UnknownKey => &mut self.unknown_key,
            Refused::Stranger | Refused::Misaddressed => &mut self.misaddressed,
            Refused::Forged => &mut self.forged,
            Refused::Duplicate => &mut self.duplicates,
            Refused::Replayed | Refused::Stale => &mut self.replayed,
            Refused::Unmet => &mut self.unmet,
        } += 1;
    }
}
