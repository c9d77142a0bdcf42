//! Relief: what is moved, and what is shed when moving does not help.

use steadfast_manager::bound::Policy;
use steadfast_manager::cluster::{Cluster, Host};
use steadfast_manager::relief::{Relief, relieve};
use wire::{NodeId, Random, Share};

use crate::{IDLE, group, id, task};

#[test]
fn who_is_in_time_is_left_alone() {
    let mut cluster = Cluster::new(Policy::RateMonotonic);
    cluster.set_host(NodeId(1), IDLE);
    cluster.set_group(id("A"), group(1, &[2], task(80, 10)));
    assert_eq!(relieve(&cluster), Relief::default());
}

/// The least loaded backup is taken although another is named first; and no second primary goes where the first has filled the room.
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
    let relief = relieve(&cluster);
    let to: Vec<_> = relief.moves.iter().map(|step| (step.group, step.to)).collect();
    assert_eq!(to, [(id("A"), NodeId(3)), (id("B"), NodeId(2))]);
    assert!(relief.shed.is_empty());
}

/// Of what nobody has room for, the least critical is not served, and nothing else.
#[test]
fn the_least_critical_is_shed() {
    let mut cluster = Cluster::new(Policy::EarliestDeadline);
    cluster.set_host(NodeId(1), IDLE);
    for (name, criticality) in [("low", 1), ("high", 9), ("middle", 5)] {
        let group =
            steadfast_manager::cluster::Group { criticality, ..group(1, &[], task(45, 10)) };
        cluster.set_group(id(name), group);
    }
    assert_eq!(relieve(&cluster), Relief { moves: Vec::new(), shed: vec![id("low")] });
}

/// After all moves and what is shed every host is within its bound, none of the moves overloads anybody, and only the overloaded move.
#[test]
fn nobody_has_too_much_afterwards() {
    let (mut moves, mut shed) = (0, 0);
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
            let group = steadfast_manager::cluster::Group {
                criticality: random.below(3) as u8,
                ..group(primary, &backups, task)
            };
            cluster.set_group(id(&number.to_string()), group);
        }
        let relief = relieve(&cluster);
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
        for id in &relief.shed {
            cluster.remove_group(*id);
        }
        for (node, host) in cluster.hosts() {
            // What others take on the host is not ours to move.
            let excess = cluster.excess(node, &[], &[]);
            assert_eq!(excess, Share::ZERO, "seed {seed}: {node} {host:?}");
        }
        moves += relief.moves.len();
        shed += relief.shed.len();
    }
    assert!(moves > 300 && shed > 100, "{moves} moves, {shed} shed: these draws prove little");
}
