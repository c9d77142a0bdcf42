//! The nodes of a ring change while it runs.
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Tune, check, millis};
use wire::NodeId;
use wire::ordered::Place;
use wire::roster::{Roster, Seat};

fn members(cluster: &Cluster, node: usize) -> Vec<u32> {
    cluster.ring(node).members().iter().map(|member| member.node.0).collect()
}

fn roster(epoch: u64, nodes: &[u32]) -> Roster {
    let seat = |node: &u32| Seat { node: NodeId(*node), ring: Vec::new() };
    let stamp = Place { epoch, ..Place::default() };
    Roster { stamp, seats: nodes.iter().map(seat).collect(), ..Roster::default() }
}

/// One node is told: it leaves the ring, and the others learn it then, as the one that has gone does.
#[test]
fn a_node_that_has_gone_is_out_and_is_told_and_may_come_again() {
    let mut cluster = Cluster::started(4, Tune::default());
    cluster.set_nodes(0, &roster(1, &[0, 1, 3]));
    cluster.run_until(2_000, |cluster| {
        [0, 1, 3].iter().all(|node| members(cluster, *node) == [0, 1, 3])
    });
    cluster.run(millis(1_000));
    let stamp = Place { epoch: 1, ..Place::default() };
    assert!((0..4).all(|node| cluster.ring(node).roster() == stamp), "all know");
    assert_eq!(members(&cluster, 2), [2]);
    // An older roster changes nothing.
    cluster.set_nodes(1, &roster(0, &[0, 1, 2, 3]));
    cluster.run(millis(500));
    assert_eq!(members(&cluster, 0), [0, 1, 3]);
    // The members of a ring learn it by the order, at one place.
    for node in [0, 1, 3] {
        cluster.set_nodes(node, &roster(2, &[0, 1, 2, 3]));
    }
    cluster.run_until(2_000, Cluster::is_one_ring);
    check::all(&cluster);
}

#[test]
fn a_node_that_was_away_learns_the_nodes_before_it_is_in_a_ring_with_others() {
    let mut cluster = Cluster::started(3, Tune::default());
    cluster.split(&[0, 0, 1]);
    cluster.run_until(1_000, |cluster| members(cluster, 0) == [0, 1]);
    cluster.set_nodes(0, &roster(5, &[0, 1, 2]));
    cluster.run(millis(500));
    assert_eq!(cluster.ring(2).roster(), Place::default(), "it is cut off");
    cluster.heal();
    cluster.run_until(2_000, Cluster::is_one_ring);
    assert_eq!(cluster.ring(2).roster(), cluster.ring(0).roster());
    check::all(&cluster);
}
