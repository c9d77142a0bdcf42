//! Many small clusters, each with faults that its seed draws, and every promise checked.
#![allow(missing_docs)]

mod cluster;

#[test]
fn every_promise_holds_whatever_happens() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let first = std::env::var("SEED").ok().and_then(|n| n.parse().ok());
    let range = first.map_or(0..seeds, |seed| seed..seed + 1);
    let mut delivered = 0;
    let mut rings = 0;
    for seed in range {
        let outcome =
            std::panic::catch_unwind(|| cluster::swarming::run(seed, cluster::Tune::default()));
        match outcome {
            Ok((d, r)) => {
                delivered += d;
                rings += r;
            }
            Err(cause) => {
                eprintln!(
                    "seed {seed} failed: SEED={seed} cargo test -p steadfast-ring --test swarm"
                );
                std::panic::resume_unwind(cause);
            }
        }
    }
    println!("{seeds} seeds, {delivered} deliveries, {rings} rings");
}
