//! Extended virtual synchrony: one file per specification.
//!
//! Source: L. E. Moser, Y. Amir, P. M. Melliar-Smith, D. A. Agarwal, *Extended Virtual Synchrony*,
//! ICDCS 1994, whose seven specifications the files are named and numbered after. W. Zhao, L. E.
//! Moser, P. M. Melliar-Smith (`ft-corba-totem.txt`, section 2.2) build on the same: reliable,
//! totally ordered delivery in the presence of faults, with memberships that change.
//!
//! | specification | file |
//! | --- | --- |
//! | 1 basic delivery | `basic.rs` |
//! | 2 delivery of configuration changes | `configurations.rs` |
//! | 3 self-delivery | `self_delivery.rs` |
//! | 4 failure atomicity (virtual synchrony) | `atomicity.rs` |
//! | 5 causal delivery | `causal.rs` |
//! | 6 agreed delivery (total order) | `total.rs` |
//! | 7 safe delivery | `safe.rs` |
//!
//! Each keeps what it needs itself: none leans on what another has concluded, but for the order of
//! messages, of which there is only one.

pub mod atomicity;
pub mod basic;
pub mod causal;
pub mod configurations;
mod delivered;
pub mod safe;
pub mod self_delivery;
pub mod total;

use ring::{Configuration, ConfigurationKind};
use wire::{Member, RingId};

pub use delivered::{Delivered, MessageId};
pub use ring::Level;

use super::{Verdict, demand};

/// All seven.
#[derive(Clone, Default)]
pub struct Evs {
    basic: basic::Basic,
    configurations: configurations::Configurations,
    own: self_delivery::SelfDelivery,
    atomicity: atomicity::Atomicity,
    causal: causal::Causal,
    total: total::Total,
    safe: safe::Safe,
}

impl Evs {
    /// A node's machine took a message to multicast.
    pub fn multicast(&mut self, message: MessageId, level: Level) {
        self.basic.multicast(message, level);
        self.own.multicast(message);
        self.causal.multicast(message, &self.total);
    }

    /// A node delivers a configuration.
    pub fn configured(&mut self, by: Member, configuration: &Configuration) -> Verdict {
        self.configurations.configured(by, configuration)?;
        let Configuration { kind, ring, members } = configuration;
        match kind {
            ConfigurationKind::Transitional => {
                self.basic.transitional(by);
                self.total.transitional(by, *ring, members);
                self.atomicity.transitional(by, members);
                self.safe.transitional(by, members);
            }
            ConfigurationKind::Regular => {
                self.basic.regular(by, *ring, members);
                self.causal.regular(by, *ring);
                self.safe.regular(by, *ring, members);
                self.atomicity.regular(by, *ring)?;
            }
        }
        Ok(())
    }

    /// A node delivers a message.
    pub fn delivered(&mut self, delivered: &Delivered) -> Verdict {
        self.basic.delivered(delivered)?;
        self.own.delivered(delivered);
        self.causal.delivered(delivered, &self.total)?;
        self.atomicity.delivered(delivered);
        self.total.delivered(delivered)?;
        self.safe.delivered(delivered)
    }

    /// The network brought a datagram of this ring to a node.
    pub fn heard(&mut self, by: Member, ring: RingId, sequence: u64) {
        self.safe.heard(by, ring, sequence);
    }

    /// A life ended.
    pub fn died(&mut self, member: Member) {
        self.safe.failed(member);
    }

    /// Objects if a node that lives has not delivered its own messages.
    pub fn undelivered(&self, alive: &[Member]) -> Verdict {
        self.own.finish(alive)
    }

    /// The one order of messages.
    pub fn order(&self) -> &total::Total {
        &self.total
    }

    /// At the end.
    pub fn finish(&self) -> Verdict {
        self.total.finish()?;
        self.safe.finish()
    }
}

/// Samples for the checkers' own tests.
#[cfg(test)]
pub(crate) mod samples {
    use super::*;
    use wire::{Incarnation, NodeId};

    pub const RING: RingId = ring(4);

    pub const fn member(node: u32) -> Member {
        Member { node: NodeId(node), incarnation: Incarnation(1) }
    }

    pub const fn ring(sequence: u64) -> RingId {
        RingId { sequence, representative: NodeId(1) }
    }

    pub fn configuration(kind: ConfigurationKind, sequence: u64, nodes: &[u32]) -> Configuration {
        let members = nodes.iter().map(|&node| member(node)).collect();
        Configuration { kind, ring: ring(sequence), members }
    }

    /// `by` delivers the `count`th message of `sender` as `sequence` of [`RING`], without a gap.
    pub fn delivered(by: u32, (sender, count): (u32, u64), sequence: u64) -> Delivered {
        let (by, message) = (member(by), (member(sender), count));
        Delivered { by, message, ring: RING, sequence, contiguous: true, level: Level::Agreed }
    }
}
