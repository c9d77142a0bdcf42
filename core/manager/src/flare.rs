//! The ranking of FLARe, as the paper has it (`flare.txt`, section 3.2, Algorithm 1): for each
//! processor, were it lost, its primaries' targets are chosen one after the other, each time the
//! replica's host with the least *expected* use, which grows with every one that was given to it.
//!
//! It looks at the loss of one processor at a time: two that are lost at once may choose one target
//! for both (section 4.3). It is here to be compared with [`ranking`](crate::ranking), and for who
//! wants it (`look_ahead = false`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::{GroupId, NodeId, Share};

use crate::cluster::Cluster;

/// The targets of every group in the order in which they are to be tried. Hosts that are not there
/// are none.
pub fn rank(cluster: &Cluster) -> BTreeMap<GroupId, Vec<NodeId>> {
    let mut lost: Vec<NodeId> = cluster.groups().map(|(_, group)| group.primary).collect();
    lost.sort_unstable();
    lost.dedup();
    lost.into_iter().flat_map(|node| if_lost(cluster, node)).collect()
}

/// The targets of one group.
pub fn targets(cluster: &Cluster, id: GroupId) -> Vec<NodeId> {
    let primary = cluster.group(id).map(|group| group.primary);
    primary.and_then(|node| if_lost(cluster, node).remove(&id)).unwrap_or_default()
}

/// The targets of the groups whose primary is on this processor.
fn if_lost(cluster: &Cluster, node: NodeId) -> BTreeMap<GroupId, Vec<NodeId>> {
    let mut all = BTreeMap::new();
    let mut expected: BTreeMap<NodeId, Share> =
        cluster.hosts().map(|(host, _)| (host, cluster.used(host))).collect();
    for id in cluster.primaries(node) {
        let Some(group) = cluster.group(id) else { continue };
        let there = group.backups.iter().filter(|host| expected.contains_key(host));
        let mut targets: Vec<NodeId> = there.copied().collect();
        // The first in the group's own order, where two are expected to be alike.
        targets.sort_by_key(|host| expected[host]);
        if let Some(share) = targets.first().and_then(|head| expected.get_mut(head)) {
            *share += group.task.share();
        }
        all.insert(id, targets);
    }
    all
}
