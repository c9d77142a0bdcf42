//! Replicas are compared.

use wire::ordered::{Compare, Compared, Ordered, StateDigest};
use wire::{GroupId, NodeId, RingId};

pub fn compare() -> Ordered {
    Ordered::Compare(Compare { group: GroupId(0xa1) })
}

pub fn compared() -> Ordered {
    Ordered::Compared(Compared {
        group: GroupId(0xa1),
        ring: RingId { sequence: 7, representative: NodeId(1) },
        sequence: 9,
        executed: 40,
        state: StateDigest { form: 5, value: 6 },
    })
}
