//! The simulator's program: `docs/simulator.md` says how to use it.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, ValueEnum};
use steadfast_sim::options::World;
use steadfast_sim::run::{Outcome, Settings, catch_panics, run_seed};

/// Runs whole clusters in virtual time, each from one seed, and checks every promise.
#[derive(Parser)]
#[command(name = "steadfast-sim")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run this seed alone and print all that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; by default one per processor.
    #[arg(long)]
    jobs: Option<usize>,
    /// Only this kind of world.
    #[arg(long)]
    world: Option<WorldName>,
    /// Print one JSON object instead of words.
    #[arg(long)]
    json: bool,
    /// Go on after a violation, and list at most this many.
    #[arg(long, default_value_t = 1)]
    failures: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum WorldName {
    Cluster,
    Rings,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    catch_panics();
    let world = arguments.world.map(|name| match name {
        WorldName::Cluster => World::Cluster,
        WorldName::Rings => World::Rings,
    });
    let settings = Settings { world, aloud: arguments.seed.is_some(), ..Settings::default() };
    if let Some(seed) = arguments.seed {
        let outcome = run_seed(seed, settings);
        println!("{:?} hash {:016x} {:?}", outcome.verdict, outcome.hash, outcome.summary);
        return ExitCode::from(u8::from(outcome.verdict.is_err()));
    }
    let started = Instant::now();
    let next = AtomicU64::new(arguments.first);
    let end = arguments.first + arguments.seeds;
    let bad: Mutex<Vec<(u64, Outcome)>> = Mutex::new(Vec::new());
    let jobs = arguments.jobs.unwrap_or(2);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || bad.lock().unwrap().len() >= arguments.failures {
                        break;
                    }
                    let outcome = run_seed(seed, settings);
                    if let Err(v) = &outcome.verdict {
                        println!("seed {seed}: {v}");
                        bad.lock().unwrap().push((seed, outcome));
                    }
                }
            });
        }
    });
    let n = bad.lock().unwrap().len();
    println!("{} seeds, {n} bad, {:?}", arguments.seeds, started.elapsed());
    ExitCode::from(u8::from(n > 0))
}
