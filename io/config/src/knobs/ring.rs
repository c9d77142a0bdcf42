//! `[ring]`: the timers, and how much is under way.

use wire::{ClusterId, Incarnation, Member, NodeId};

/// The ring's knobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingKnobs {
    /// The timers.
    pub timing: ring::Timing,
    /// The timers of links, where nodes have several.
    pub links: ring::LinkTiming,
    /// Bytes of the largest datagram to send.
    pub datagram: usize,
    /// Datagrams that may be on the ring and not yet everywhere.
    pub window: usize,
    /// Datagrams that a holder may send in one turn while others want the token.
    pub turn: usize,
    /// Of those, how many may leave after the token.
    pub accelerated: usize,
    /// Percent of the time for which a member may hold up the others' sending for ever.
    pub slow_share: u32,
    /// An idle token rests.
    pub parking: bool,
}

impl RingKnobs {
    /// Bytes that the kernel must be able to keep of what one peer sends while this node does not
    /// read: at most a full window, of which it charges up to twice each datagram's size. Each peer
    /// has a socket of its own, so senders do not share it.
    pub fn receive_room(&self) -> usize {
        2 * self.window * self.datagram
    }
}

impl Default for RingKnobs {
    fn default() -> Self {
        // The ring owns its defaults; who and where do not matter to them.
        let me = Member { node: NodeId(1), incarnation: Incarnation(0) };
        let ring = ring::Config::new(ClusterId::of(""), me, vec![me.node]);
        RingKnobs {
            timing: ring.timing,
            links: ring::LinkTiming::default(),
            datagram: ring.datagram,
            window: ring.window,
            turn: ring.turn,
            accelerated: ring.accelerated,
            slow_share: ring.slow_share,
            parking: ring.parking,
        }
    }
}
