//! Any word about what hosts have to do.

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;
use wire::ordered::{Rank, Usage};
use wire::{GroupId, NodeId, Share, ViewNumber};

pub fn usage() -> impl Strategy<Value = Usage> {
    let share = || (0..1u64 << 50).prop_map(Share);
    let replicas = btree_map(any::<u64>().prop_map(GroupId), share(), 0..9);
    (share(), share(), any::<bool>(), replicas).prop_map(|(used, capacity, above, replicas)| {
        Usage { used, capacity, above, replicas: replicas.into_iter().collect() }
    })
}

pub fn rank() -> impl Strategy<Value = Rank> {
    let order = btree_set(any::<u32>().prop_map(NodeId), 0..9);
    (any::<[u64; 2]>(), order).prop_map(|([group, view], order)| Rank {
        group: GroupId(group),
        view: ViewNumber(view),
        order: order.into_iter().collect(),
    })
}
