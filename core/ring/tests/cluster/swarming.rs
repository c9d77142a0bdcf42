//! One seed's cluster, faults and load.

use steadfast_ring::Level;
use wire::Random;

use super::{Cluster, Seen, Tune, check, micros, millis};

/// The load and the faults of one run.
struct Swarm {
    n: usize,
    crashes: bool,
    splits: bool,
    pauses: bool,
    leaves: bool,
    /// Messages at once, at most.
    load: u64,
    huge: bool,
    /// So many messages of ten are safe ones.
    safe: u64,
}

impl Swarm {
    /// Some messages at one node, perhaps a fault, and time to see what comes of it.
    fn step(&self, cluster: &mut Cluster, random: &mut Random) {
        let n = self.n;
        let node = random.below(n as u64) as usize;
        for _ in 0..random.below(self.load + 1) {
            let size = match random.below(12) {
                0 => random.below(4_000) as usize,
                1 if self.huge => 20_000,
                _ => 20 + random.below(100) as usize,
            };
            let level = if random.below(10) < self.safe {
                Level::Safe
            } else {
                [Level::Agreed, Level::Held][node % 2]
            };
            cluster.multicast_at(level, node, size);
        }
        let other = random.below(n as u64) as usize;
        match random.below(40) {
            0..4 if self.crashes => cluster.crash(other),
            4..8 if !cluster.runs(other) => cluster.start(other),
            8..11 if self.splits => {
                let sides: Vec<_> = (0..n).map(|_| random.below(2) as usize).collect();
                cluster.split(&sides);
            }
            11..15 => cluster.heal(),
            15 if self.splits => {
                cluster.cut(node, other);
            }
            16..18 if self.pauses => cluster.hold_up(other, millis(random.below(40))),
            18 if self.leaves && cluster.runs(other) => {
                cluster.leave(other);
                cluster.run(micros(300));
                cluster.crash(other);
            }
            _ => {}
        }
        let longest = if random.one_in(4) { 20_000 } else { 2_000 };
        cluster.run(micros(random.below(longest)));
    }
}

/// Deliveries and rings of the run.
pub fn run(seed: u64, mut tune: Tune) -> (usize, usize) {
    let mut random = Random::new(seed);
    let n = 2 + random.below(6) as usize;
    tune.parking = !random.one_in(4);
    tune.window = [4, 16, 64, 256][random.below(4) as usize];
    tune.turn = tune.window.min([1, 4, 16][random.below(3) as usize]);
    tune.accelerated = [0, 1, 8, 64][random.below(4) as usize];
    let mut cluster = Cluster::new(n, random.next_u64(), tune);
    cluster.weather().pace = [micros(0), micros(5), micros(50)][random.below(3) as usize];
    let calm = random.one_in(4);
    if !calm {
        cluster.weather().loss = [0, 5, 50, 200][random.below(4) as usize];
        cluster.weather().duplicate = [0, 0, 50][random.below(3) as usize];
        cluster.weather().jitter = [micros(0), micros(50), micros(1_000)][random.below(3) as usize];
    }
    cluster.world.refusals = !random.one_in(3);
    // Each fault is on or off for a whole run: few at a time reach states that all at once hide.
    let crashes = random.one_in(2);
    if crashes && random.one_in(2) {
        cluster.fragile = 6;
    }
    let splits = random.one_in(2);
    let pauses = random.one_in(3);
    let leaves = random.one_in(5);
    let load = [1, 3, 10][random.below(3) as usize];
    let huge = random.one_in(4);
    let safe = [0, 2, 9][random.below(3) as usize];
    let swarm = Swarm { n, crashes, splits, pauses, leaves, load, huge, safe };
    if std::env::var_os("TRACE").is_some() {
        cluster.start_trace();
    }
    for node in 0..n {
        cluster.start(node);
        if random.one_in(3) {
            cluster.run(micros(random.below(20_000)));
        }
    }
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..60 {
            swarm.step(&mut cluster, &mut random);
        }
        cluster.heal();
        cluster.fragile = 0;
        cluster.weather().loss = 0;
        cluster.weather().duplicate = 0;
        for node in 0..n {
            if !cluster.runs(node) && random.one_in(2) {
                cluster.start(node);
            }
        }
        if (0..n).all(|node| !cluster.runs(node)) {
            cluster.start(0);
        }
        check::all(&cluster);
        cluster.run_until(3_000, Cluster::is_quiet);
        cluster.run(millis(60));
        check::all(&cluster);
        check::converged(&cluster);
    }));
    if let Some(trace) = &cluster.trace {
        std::fs::write("/tmp/ring-trace.txt", trace.text()).expect("a place for the trace");
    }
    if let Err(cause) = outcome {
        std::panic::resume_unwind(cause);
    }
    let seen = cluster.lives.iter().flat_map(|life| &life.seen);
    let deliveries = seen.clone().filter(|s| matches!(s, Seen::Delivery(_))).count();
    let rings = seen.filter(|s| matches!(s, Seen::Configuration(_))).count();
    (deliveries, rings)
}
