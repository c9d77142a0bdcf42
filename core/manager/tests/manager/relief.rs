//! Relief: what is moved, and which hosts have too much to do when moving does not help.

use std::collections::BTreeSet;

use qos::Policy;
use steadfast_manager::cluster::{Cluster, Host};
use steadfast_manager::relief::{Relief, relieve};
use wire::{NodeId, Random, Share};

use crate::{IDLE, group, id, task};

#[test]
fn who_is_in_time_is_left_alone() {
    let mut cluster = Cluster::new(Policy::RateMonotonic);
    cluster.set_host(NodeId(1), IDLE);
    cluster.set_group(id("A"), group(1, &[2], task(80, 10)));
    assert_eq!(relieve(&cluster, &BTreeSet::new()), Relief::default());
}

/// The least loaded backup is taken although another is named first; and no second primary goes
/// where the first has filled the room.
#[test]
fn moves_are_spread() {
    let mut cluster = Cluster::new(Policy::EarliestDeadline);
    for node in 1..=3 {
        cluster.set_host(NodeId(node), IDLE);
    }
    cluster.set_host(NodeId(2), Host { other: Share::percent(20), ..IDLE });
    cluster.set_group(id("A"), group(1, &[2, 3], task(70, 10)));
    cluster.set_group(id("B"), group(1, &[2, 3], task(60, 10)));
    cluster.set_group(id("C"), group(1, &[2, 3], task(50, 10)));
    let relief = relieve(&cluster, &BTreeSet::new());
    let to: Vec<_> = relief.moves.iter().map(|step| (step.group, step.to)).collect();
    assert_eq!(to, [(id("A"), NodeId(3)), (id("B"), NodeId(2))]);
    assert!(relief.unsolved.is_empty());
}

/// A host that refuses calls only seems to have room.
#[test]
fn nobody_moves_to_a_host_that_refuses_calls() {
    let mut cluster = Cluster::new(Policy::EarliestDeadline);
    for node in 1..=3 {
        cluster.set_host(NodeId(node), IDLE);
    }
    cluster.set_host(NodeId(3), Host { other: Share::percent(60), ..IDLE });
    cluster.set_group(id("A"), group(1, &[2, 3], task(70, 10)));
    cluster.set_group(id("B"), group(1, &[2, 3], task(60, 10)));
    let closed = BTreeSet::from([NodeId(2)]);
    let relief = relieve(&cluster, &closed);
    assert_eq!(relief, Relief { moves: Vec::new(), unsolved: vec![NodeId(1)] });
    assert_eq!(relieve(&cluster, &BTreeSet::new()).unsolved, []);
}

/// After all moves every host is within its bound, but for those that are named; none of the moves
/// overloads anybody, and only the overloaded move.
#[test]
fn nobody_has_too_much_afterwards() {
    let (mut moves, mut unsolved) = (0, 0);
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut cluster =
            Cluster::new([Policy::RateMonotonic, Policy::ResponseTime][random.below(2) as usize]);
        let hosts = 3 + random.below(4) as u32;
        for node in 1..=hosts {
            cluster
                .set_host(NodeId(node), Host { other: Share::percent(random.below(30)), ..IDLE });
        }
        for number in 0..4 + random.below(8) {
            let primary = 1 + random.below(u64::from(hosts)) as u32;
            let backups: Vec<u32> =
                (1..=hosts).filter(|node| *node != primary && random.one_in(2)).collect();
            let task = task(10 + 5 * random.below(6), 1 + random.below(10));
            cluster.set_group(id(&number.to_string()), group(primary, &backups, task));
        }
        let relief = relieve(&cluster, &BTreeSet::new());
        for step in &relief.moves {
            assert!(cluster.excess(step.from, &[], &[]) > Share::ZERO, "seed {seed}: {step:?}");
            let mut group = cluster.group(step.group).expect("what moves is there").clone();
            assert!(group.backups.contains(&step.to), "seed {seed}: {step:?}");
            group.backups.retain(|node| *node != step.to);
            group.backups.push(step.from);
            group.primary = step.to;
            cluster.set_group(step.group, group);
            assert_eq!(cluster.excess(step.to, &[], &[]), Share::ZERO, "seed {seed}: {step:?}");
        }
        for (node, host) in cluster.hosts() {
            let is_over = cluster.excess(node, &[], &[]) > Share::ZERO;
            assert_eq!(is_over, relief.unsolved.contains(&node), "seed {seed}: {node} {host:?}");
        }
        moves += relief.moves.len();
        unsolved += relief.unsolved.len();
    }
    assert!(
        moves > 300 && unsolved > 80,
        "{moves} moves, {unsolved} unsolved: these draws prove little"
    );
}
