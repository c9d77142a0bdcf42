//! A host that was stopped goes on: its return costs the others next to nothing, also where they
//! have become patient.
#![allow(missing_docs)]

mod cluster;

use cluster::{Cluster, Tune, micros, millis};
use steadfast_ring::Timing;
use wire::{Duration, Random};

const NODES: u64 = 5;

/// The longest time without a delivery at a sender of 1,000 messages a second, from the moment at
/// which a host goes on that was stopped.
fn longest_gap(seed: u64) -> Duration {
    let timing = Timing::default();
    let tune = Tune { timing, window: 256, turn: 64, parking: true, ..Tune::default() };
    let mut random = Random::new(seed);
    let mut cluster = Cluster::started(NODES as usize, tune);
    cluster.world.refusals = false;
    let victim = random.below(NODES);
    let sender = ((victim + 1 + random.below(NODES - 1)) % NODES) as usize;
    let victim = victim as usize;
    // Hosts are held up now and then, so time-outs grow to four times the least.
    for _ in 0..random.below(3_000) {
        cluster.multicast(victim, 100);
        if random.one_in(300) {
            cluster.hold_up(random.below(NODES) as usize, millis(random.below(100)));
        }
        cluster.run(millis(1));
    }
    cluster.run(millis(100));
    cluster.world.pause(victim);
    for _ in 0..500 + random.below(700) {
        cluster.multicast(sender, 100);
        cluster.run(millis(1));
    }
    cluster.world.resume(victim);
    let told = |cluster: &Cluster| (cluster.ring(sender).id(), cluster.ring(sender).delivered());
    let (mut longest, mut last, mut before) = (millis(0), cluster.now(), told(&cluster));
    for look in 0..10_000 {
        if look % 10 == 0 {
            cluster.multicast(sender, 100);
        }
        cluster.run(micros(100));
        if told(&cluster) != before {
            longest = longest.max(cluster.now().since(last));
            (last, before) = (cluster.now(), told(&cluster));
        }
    }
    assert!(cluster.is_one_ring(), "the host is back within a second");
    assert_eq!(cluster.ring(sender).members().len() as u64, NODES);
    longest
}

#[test]
fn a_stopped_host_that_goes_on_does_not_hold_the_others_up() {
    let worst = (0..150).map(longest_gap).max();
    println!("at most {worst:?}");
    assert!(worst < Some(millis(20)), "{worst:?}");
}
