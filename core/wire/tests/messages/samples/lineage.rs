//! Histories that may have parted.

use wire::ordered::{Lineage, Ordered, Place};
use wire::{NodeId, RingId};

pub fn lineage() -> Ordered {
    let ring = |sequence| RingId { sequence, representative: NodeId(1) };
    let end = |epoch, sequence| Place { epoch, ring: ring(epoch + 2), sequence };
    Ordered::Lineage(Lineage { ring: ring(9), ends: [end(4, 40), end(5, 7)].to_vec() })
}
