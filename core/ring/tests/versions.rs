//! Nodes of several versions: one that does not know the rules in force keeps nobody from them.
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Tune, check, millis};
use wire::versions::Unfit;
use wire::{NodeId, VersionRange};

fn members(cluster: &Cluster, node: usize) -> Vec<u32> {
    cluster.ring(node).members().iter().map(|member| member.node.0).collect()
}

/// Nodes 0 and 1 have rules of level 2 in force. Node 2 knows them, and not yet that they are in
/// force; it is in one ring with node 3, whose program does not know them.
#[test]
fn a_node_whose_program_is_old_does_not_keep_others_from_the_rules_in_force() {
    let mut cluster = Cluster::new(4, 7, Tune::default());
    cluster.configure = |config| {
        let node = config.me.node;
        config.speaks.rules = VersionRange::new(1, if node == NodeId(3) { 1 } else { 2 });
        config.speaks.level = if node <= NodeId(1) { 2 } else { 0 };
    };
    cluster.split(&[0, 0, 1, 1]);
    (0..4).for_each(|node| cluster.start(node));
    cluster
        .run_until(1_000, |cluster| members(cluster, 0) == [0, 1] && members(cluster, 2) == [2, 3]);
    cluster.heal();
    cluster.run_until(1_000, |cluster| members(cluster, 2) == [0, 1, 2]);
    cluster.run(millis(1_000));
    assert_eq!((members(&cluster, 2), members(&cluster, 3)), (vec![0, 1, 2], vec![3]));
    let told = cluster.ring(2).unfit().map(|(member, _, why)| (member.node, why));
    assert_eq!(told.collect::<Vec<_>>(), [(NodeId(3), Unfit::TheirRules)]);
    check::all(&cluster);
}
