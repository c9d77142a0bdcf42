//! A cluster begins.

use steadfast_engine::ordering::Ring;
use wire::versions::WHOLE;

use crate::harness::{Cluster, ms};

/// Two nodes found the cluster, and only they know that there is no program of before to go back
/// to. The first member came later.
#[test]
fn the_newest_rules_are_in_force_at_once_though_the_first_node_came_late() {
    let mut cluster = Cluster::<Ring>::starting(3);
    cluster.pause(1);
    cluster.run_for(ms(2_000));
    assert_eq!(cluster.node(2).status().ring.quorate, Some(true));
    cluster.resume(1);
    cluster.run_for(ms(3_000));
    for node in 1..=3 {
        assert_eq!(cluster.node(node).status().versions.level, WHOLE, "n{node}");
    }
}
