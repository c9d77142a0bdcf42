//! Any word about what hosts have to do.

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;
use wire::ordered::{
    About, Anew, Compare, Compared, Lineage, MergeChunk, Note, Notes, Ordered, Place, Rank,
    Shedding, StateDigest, Usage,
};
use wire::{ClientId, GroupId, NodeId, RingId, Share, ViewNumber};

pub fn usage() -> impl Strategy<Value = Usage> {
    let share = || (0..1u64 << 50).prop_map(Share);
    let replicas = btree_map(any::<u64>().prop_map(GroupId), share(), 0..9);
    let callers = (any::<Vec<u8>>(), any::<u64>());
    (share(), share(), any::<bool>(), replicas, callers).prop_map(
        |(used, capacity, above, replicas, (classes, refused))| Usage {
            used,
            capacity,
            above,
            replicas: replicas.into_iter().collect(),
            classes: classes.into_iter().collect(),
            refused,
        },
    )
}

pub fn shedding() -> impl Strategy<Value = Shedding> {
    let room = btree_set(any::<u32>().prop_map(NodeId), 0..9);
    (any::<(u32, u8)>(), 0..=3_600_000_u32, room).prop_map(|((node, level), term_ms, room)| {
        Shedding { node: NodeId(node), level, term_ms, room: room.into_iter().collect() }
    })
}

fn anew() -> impl Strategy<Value = Anew> {
    any::<[u64; 2]>().prop_map(|[group, transfer]| Anew {
        group: GroupId(group),
        transfer: ViewNumber(transfer),
    })
}

/// Messages about the states of replicas.
pub fn of_states() -> impl Strategy<Value = Ordered> {
    let words = any::<([u64; 6], u32)>();
    let compared = words.prop_map(|([group, ring, sequence, executed, form, value], node)| {
        Ordered::Compared(Compared {
            group: GroupId(group),
            ring: RingId { sequence: ring, representative: NodeId(node) },
            sequence,
            executed,
            state: StateDigest { form, value },
        })
    });
    let compare =
        any::<u64>().prop_map(|group| Ordered::Compare(Compare { group: GroupId(group) }));
    let notes = notes().prop_map(Ordered::Notes);
    let lineage = lineage().prop_map(Ordered::Lineage);
    let chunk = merge_chunk().prop_map(Ordered::MergeChunk);
    prop_oneof![notes, anew().prop_map(Ordered::Anew), compare, compared, lineage, chunk]
}

fn merge_chunk() -> impl Strategy<Value = MergeChunk> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..99);
    (any::<([u64; 3], u32, bool)>(), bytes).prop_map(
        |(([group, view, parted], index, last), bytes)| {
            let (group, view, parted) = (GroupId(group), ViewNumber(view), ClientId(parted));
            MergeChunk { group, view, parted, index, last, bytes: bytes.into() }
        },
    )
}

fn lineage() -> impl Strategy<Value = Lineage> {
    let ring = |sequence, node| RingId { sequence, representative: NodeId(node) };
    let end = any::<([u64; 3], u32)>().prop_map(move |([epoch, number, sequence], node)| Place {
        epoch,
        ring: ring(number, node),
        sequence,
    });
    let ends = proptest::collection::vec(end, 0..9);
    (any::<(u64, u32)>(), ends)
        .prop_map(move |((number, node), ends)| Lineage { ring: ring(number, node), ends })
}

fn notes() -> impl Strategy<Value = Notes> {
    let note =
        (any::<u64>(), 0..About::ALL.len(), "[a-z `ü]{0,40}").prop_map(|(group, about, text)| {
            Note { group: GroupId(group), about: About::ALL[about], text }
        });
    proptest::collection::vec(note, 0..9).prop_map(Notes)
}

pub fn rank() -> impl Strategy<Value = Rank> {
    let order = btree_set(any::<u32>().prop_map(NodeId), 0..9);
    (any::<[u64; 2]>(), order).prop_map(|([group, view], order)| Rank {
        group: GroupId(group),
        view: ViewNumber(view),
        order: order.into_iter().collect(),
    })
}
