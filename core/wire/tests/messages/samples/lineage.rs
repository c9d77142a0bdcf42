//! Histories that may have parted.

use bytes::Bytes;
use wire::ordered::{Lineage, MergeChunk, Ordered, Place};
use wire::{ClientId, GroupId, NodeId, RingId, ViewNumber};

pub fn lineage() -> Ordered {
    let ring = |sequence| RingId { sequence, representative: NodeId(1) };
    let end = |epoch, sequence| Place { epoch, ring: ring(epoch + 2), sequence };
    Ordered::Lineage(Lineage { ring: ring(9), ends: [end(4, 40), end(5, 7)].to_vec() })
}

pub fn merge_chunk() -> Ordered {
    Ordered::MergeChunk(MergeChunk {
        group: GroupId(1),
        view: ViewNumber(7),
        parted: ClientId(0x5eed),
        index: 2,
        last: true,
        bytes: Bytes::from_static(b"state"),
    })
}
