//! The knowledge of a ring when it ended: whoever acted on it still asks for that.

use alloc::vec::Vec;

use wire::{Member, RingId};

use crate::order::Order;

/// A ring that is over.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    id: RingId,
    members: Vec<Member>,
    /// Up to where each member had everything, and its records on its disk.
    held: Vec<u64>,
    stored: Vec<u64>,
}

impl Ended {
    /// This ring is over, and these members go on together: each has what this node has.
    pub(crate) fn of(order: &Order, together: &[Member]) -> Ended {
        let mut held = order.held.known().to_vec();
        let here = order.held.of(order.mine);
        let places = together.iter().filter_map(|member| order.index_of(*member));
        places.for_each(|place| held[place] = held[place].max(here));
        let stored = order.stored.known().to_vec();
        Ended { id: order.id, members: order.members.clone(), held, stored }
    }

    fn of_member(&self, known: &[u64], ring: RingId, member: Member) -> u64 {
        let place = self.members.binary_search(&member).ok().filter(|_| ring == self.id);
        place.map_or(0, |place| known[place])
    }

    /// Up to where this member had everything.
    pub(crate) fn held(&self, ring: RingId, member: Member) -> u64 {
        self.of_member(&self.held, ring, member)
    }

    /// Up to where it had its records on its disk.
    pub(crate) fn stored(&self, ring: RingId, member: Member) -> u64 {
        self.of_member(&self.stored, ring, member)
    }
}
