//! Two hundred hosts and two thousand groups: what one host's loss changes.

use qos::Policy;
use steadfast_manager::cluster::{Group, Host};
use steadfast_manager::ranking::Ranking;
use wire::{NodeId, Random, Share};

use crate::{IDLE, group, id, task};

const HOSTS: u32 = 200;
const GROUPS: u64 = 2_000;

fn cluster() -> Ranking {
    let mut ranking = Ranking::new(Policy::RateMonotonic);
    let mut random = Random::new(3);
    for node in 1..=HOSTS {
        ranking.set_host(NodeId(node), IDLE);
    }
    for number in 0..GROUPS {
        let mut replicas: Vec<u32> = Vec::new();
        while replicas.len() < 3 {
            let node = 1 + random.below(u64::from(HOSTS)) as u32;
            if !replicas.contains(&node) {
                replicas.push(node);
            }
        }
        ranking.set_group(
            id(&number.to_string()),
            group(replicas[0], &replicas[1..], task(1 + random.below(4), 1 + random.below(10))),
        );
    }
    ranking.settle();
    ranking
}

/// Lists change only where the lost host was on them: the others are told nothing. And noise
/// changes none.
#[test]
fn what_changes_is_what_had_to_do_with_the_lost_host() {
    let mut ranking = cluster();
    let lost = NodeId(17);
    let touched: Vec<_> =
        ranking.cluster().primaries(lost).chain(ranking.cluster().backups(lost)).collect();
    let moved: Vec<(_, Group)> = ranking
        .cluster()
        .primaries(lost)
        .map(|id| {
            let group = ranking.cluster().group(id).expect("it is there");
            let to = ranking.targets(id)[0];
            let backups = group.backups.iter().copied().filter(|node| *node != to).collect();
            (id, Group { primary: to, backups, ..group.clone() })
        })
        .collect();
    ranking.remove_host(lost);
    moved.into_iter().for_each(|(id, group)| ranking.set_group(id, group));
    let changed = ranking.settle();
    assert!(!changed.is_empty());
    assert!(
        changed.iter().all(|id| touched.contains(id)),
        "{} of {} changed",
        changed.len(),
        touched.len()
    );
    for (id, _) in ranking.cluster().groups() {
        assert!(!ranking.targets(id).contains(&lost));
    }
    let mut random = Random::new(4);
    for node in (1..=HOSTS).filter(|node| NodeId(*node) != lost) {
        ranking.set_host(NodeId(node), Host { other: Share(random.below(40_000)), ..IDLE });
    }
    assert_eq!(ranking.settle(), []);
}
