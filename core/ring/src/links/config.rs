//! The configuration of links.

use alloc::vec::Vec;

#[cfg(doc)]
use wire::limits::MAX_RING_LINKS;
use wire::{ClusterId, Duration, Member, NodeId};

use crate::bug::Planted;

/// The nodes, and the knobs.
#[derive(Clone, Debug)]
pub struct LinksConfig {
    /// The cluster: reports of another one are malformed.
    pub cluster: ClusterId,
    /// This node, in this life.
    pub me: Member,
    /// Every configured node, this one included, in order of id.
    pub nodes: Vec<NodeId>,
    /// How many links there are, from 1 to [`MAX_RING_LINKS`]. With one, this machine is silent.
    pub count: usize,
    /// The timers.
    pub timing: LinkTiming,
    /// A mistake to make, so that a simulation can prove that it would find it.
    pub planted: Planted,
}

/// The timers of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTiming {
    /// While all is well, a round is made this often: the loss of a link that carries nothing is
    /// known after at most `2 * probe + 2 * timeout`.
    pub probe: Duration,
    /// A link by which nothing was confirmed for this long, while three rounds were confirmed by
    /// another one, is down. Must exceed the difference between the links' round trips.
    pub timeout: Duration,
}

impl Default for LinkTiming {
    fn default() -> Self {
        LinkTiming { probe: Duration::from_millis(250), timeout: Duration::from_millis(20) }
    }
}

impl LinkTiming {
    /// While it is in doubt which links carry, rounds follow each other this closely.
    pub(crate) fn quick(&self) -> Duration {
        self.timeout / 4
    }
}
