//! This node's life as a sender.

use alloc::vec::Vec;

use aws_lc_rs::aead::{Aad, Nonce};
use wire::{ClusterId, Member, NodeId};

use crate::derive::{ClusterKey, LifeKey};
use crate::envelope::{Envelope, HEADER, OVERHEAD, TAG};

/// Datagrams that one life may seal. AES-GCM's bounds (the advantage of an attacker who sees
/// q blocks is about q² / 2^129) leave a wide margin at 2^48 datagrams of the largest size, which
/// takes nine years at a million a second.
const MAX_SEALED: u64 = 1 << 48;

/// This life has sealed as many datagrams as one key may: the node has to be started anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this life of the node has sealed 2^48 datagrams, the most for one key: start it anew")]
pub struct Exhausted;

/// Seals what one life of a node sends. Each datagram is sealed once, however many nodes it goes
/// to and over however many links.
pub struct Sealer {
    cluster: ClusterId,
    me: Member,
    salt: u64,
    key: LifeKey,
    counter: u64,
}

impl Sealer {
    /// A life of the node `me`. The salt must be drawn at random for this life: two lives with one
    /// incarnation, after a clock was set back, are told apart by it alone.
    pub fn new(cluster: ClusterId, me: Member, salt: u64, key: &ClusterKey) -> Sealer {
        Sealer { cluster, me, salt, key: key.life(cluster, me, salt), counter: 0 }
    }

    /// Seals with this cluster key from now on. The counter goes on, so no nonce comes twice even
    /// if an earlier key comes back.
    pub fn use_key(&mut self, key: &ClusterKey) {
        self.key = key.life(self.cluster, self.me, self.salt);
    }

    /// The number of the key in use.
    pub fn key(&self) -> u8 {
        self.key.number
    }

    /// Datagrams sealed so far.
    pub fn sealed(&self) -> u64 {
        self.counter
    }

    /// Distinguishes this life from others of the same incarnation.
    pub fn salt(&self) -> u64 {
        self.salt
    }

    /// Appends `datagram`, sealed for node `to` or for [all](Envelope::ALL), to `out`. Allocates
    /// only if `out` has no room.
    ///
    /// # Errors
    /// [`Exhausted`]; nothing is appended then.
    pub fn seal(
        &mut self,
        to: NodeId,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        let start = out.len();
        out.reserve(datagram.len() + OVERHEAD);
        out.extend_from_slice(&[0; HEADER]);
        out.extend_from_slice(datagram);
        out.extend_from_slice(&[0; TAG]);
        let sealed = self.seal_in_place(to, &mut out[start..]);
        if sealed.is_err() {
            out.truncate(start);
        }
        sealed
    }

    /// Seals the datagram that lies in `buffer` between [`HEADER`] bytes of room before it and
    /// [`TAG`] bytes behind it, where it lies. Nothing is copied.
    ///
    /// # Errors
    /// [`Exhausted`].
    ///
    /// # Panics
    /// If the buffer is shorter than the room.
    pub fn seal_in_place(&mut self, to: NodeId, buffer: &mut [u8]) -> Result<(), Exhausted> {
        if self.counter >= MAX_SEALED {
            return Err(Exhausted);
        }
        self.counter += 1;
        let Sealer { me: sender, salt, counter, .. } = *self;
        let envelope = Envelope { key: self.key.number, sender, salt, to, counter };
        let header = envelope.encode();
        let (front, rest) = buffer.split_at_mut(HEADER);
        let (body, end) = rest.split_at_mut(rest.len() - TAG);
        front.copy_from_slice(&header);
        let nonce = Nonce::assume_unique_for_key(envelope.nonce());
        let tag = self.key.aead.seal_in_place_separate_tag(nonce, Aad::from(&header), body);
        // It fails for inputs of 64 GiB only.
        end.copy_from_slice(tag.expect("a datagram is short").as_ref());
        Ok(())
    }
}
