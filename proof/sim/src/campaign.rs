//! Many seeds on some threads, and their results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::run::{Outcome, Settings, Summary, run_seed};

/// Which seeds, and how.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// On how many threads.
    pub jobs: usize,
    /// After so many failures no further seed is begun.
    pub failures: usize,
    /// How each is run.
    pub settings: Settings,
}

/// The results of a campaign.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seeds that were run.
    pub seeds: u64,
    /// Seeds that failed, in order.
    pub failed: Vec<(u64, Outcome)>,
    /// The sums over all seeds.
    pub total: Summary,
    /// How long it took, in true time.
    pub took: Duration,
}

/// The interval between progress reports of a long campaign.
const PROGRESS: Duration = Duration::from_secs(10);

/// Receives the progress of a campaign.
pub trait Listener: Sync {
    /// A seed failed.
    fn failed(&self, seed: u64, outcome: &Outcome);
    /// So much is done, in `took` so far. Now and then, in a campaign that lasts.
    fn progress(&self, report: &Report);
}

/// Nobody listens.
impl Listener for () {
    fn failed(&self, _: u64, _: &Outcome) {}
    fn progress(&self, _: &Report) {}
}

/// Runs the campaign; `listener` hears of each failure as it is found.
pub fn run(campaign: &Campaign, listener: &impl Listener) -> Report {
    let started = Instant::now();
    let next = AtomicU64::new(campaign.first);
    let end = campaign.first + campaign.seeds;
    let report = Mutex::new(Report {
        seeds: 0,
        failed: Vec::new(),
        total: Summary::default(),
        took: Duration::ZERO,
    });
    let work = || {
        loop {
            let full = report.lock().expect("no holder panics").failed.len() >= campaign.failures;
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if full || seed >= end {
                return;
            }
            let outcome = run_seed(seed, campaign.settings);
            let mut report = report.lock().expect("no holder panics");
            report.seeds += 1;
            report.total.add(&outcome.summary);
            if started.elapsed() >= report.took + PROGRESS {
                report.took = started.elapsed();
                listener.progress(&report);
            }
            if outcome.verdict.is_err() {
                listener.failed(seed, &outcome);
                report.failed.push((seed, outcome));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..campaign.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut report = report.into_inner().expect("no holder panicked");
    report.failed.sort_by_key(|(seed, _)| *seed);
    report.took = started.elapsed();
    report
}
