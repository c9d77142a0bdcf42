//! Random sets of tasks that the admission test passes, as threads under SCHED_DEADLINE beside
//! real-time hogs: does the kernel serve all of them in time?
//!
//! A release that ends late is a miss, unless the machine itself stood still meanwhile: then the
//! most urgent thread of the host was late, too.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use node::sched::{Class, Reserve};
use qos::{Task, global};
use serde_json::json;
use wire::{Random, Share};

use harness::cluster::wall;
use harness::hog;
use harness::lateness::{Lateness, Standstill};
use harness::wait::until_so;
use harness::{Experiment, Outcome, Run};

/// Shorter periods measure the machine's own wake-ups.
const SHORTEST_MS: u64 = 8;
const LONGEST_MS: u64 = 40;

/// The kernel counts at ticks of 4 ms: a thread may be stopped so much late, and the others wait.
const TICK: Duration = Duration::from_millis(4);

/// The wait for what the set before has reserved: at most its longest period.
const TIMEOUT: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(1);

/// A thread that runs needs less between two looks at the clock.
const STEP: Duration = Duration::from_micros(5);

/// Sets of tasks that the admission test passes, run by the kernel beside real-time hogs.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Sets.
    #[arg(long, default_value_t = 100)]
    sets: u32,
    /// Milliseconds for which each set runs.
    #[arg(long, default_value_t = 1_000)]
    millis: u64,
    /// Percent of each processor that threads under SCHED_FIFO 48 take.
    #[arg(long, value_name = "PERCENT", default_value_t = 90)]
    hogs: u32,
    /// The draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A release that ended late.
struct Miss {
    /// Wall clock, in nanoseconds since the Unix epoch.
    from_ns: u64,
    until_ns: u64,
    by: Duration,
}

impl Experiment for Options {
    const NAME: &'static str = "sets";
    const SMOKE: &'static str = "--sets 2 --millis 100 --hogs 10";

    fn impossible(&self) -> Option<String> {
        let reserve = |runtime| node::realtime::probe_reserve(runtime, Duration::from_millis(4));
        match reserve(Duration::from_micros(100)) {
            node::realtime::Grant::Refused(why) => Some(why),
            _ => hog::impossible(self.hogs),
        }
    }

    fn run(&self, run: &Run) -> Outcome<()> {
        let processors = u32::try_from(thread::available_parallelism()?.get())?;
        let mut random = Random::new(self.seed);
        let lateness = Lateness::watch()?;
        let _hogs = hog::start(self.hogs)?;
        let (mut releases, mut tasks, mut missed, mut excused) = (0, 0, 0, 0);
        let (mut worst, mut used) = (Duration::ZERO, Share::ZERO);
        for _ in 0..self.sets {
            let set = draw(&mut random, processors);
            used += set.iter().map(Task::share).sum();
            tasks += set.len();
            lateness.take();
            let (count, misses) = self.play(&set)?;
            releases += count;
            let stood = lateness.take();
            for miss in misses {
                let counts = !stood.iter().any(|it| overlaps(it, &miss));
                missed += u32::from(counts);
                excused += u32::from(!counts);
                worst = worst.max(if counts { miss.by } else { Duration::ZERO });
            }
        }
        run.begin("");
        let line = json!({
            "peer": "steadfast", "measure": "sets", "sets": self.sets, "tasks": tasks,
            "releases": releases, "hogs": self.hogs, "missed": missed, "machine_stood": excused,
            "worst_us": worst.as_micros() as u64,
            "mean_use_percent": used.0 / u64::from(self.sets).max(1) / 10_000,
        });
        run.tell(&line, || {
            format!(
                "{} sets of {tasks} tasks on {processors} processors beside {} % hogs, {} % of a \
                 processor in use on average: {missed} of {releases} releases ended later than a \
                 tick after their deadline (worst by {worst:?}); {excused} more while the machine \
                 stood still",
                self.sets, self.hogs, line["mean_use_percent"]
            )
        });
        Ok(())
    }
}

impl Options {
    /// Runs a set. Gives its releases, and the late ones.
    fn play(&self, set: &[Task]) -> Outcome<(u32, Vec<Miss>)> {
        let together = Arc::new(Barrier::new(set.len()));
        let millis = Duration::from_millis(self.millis);
        let threads: Vec<_> = set
            .iter()
            .map(|task| {
                let (task, together) = (*task, together.clone());
                let end = move || Instant::now() + millis;
                thread::spawn(move || {
                    let reserve = Reserve {
                        runtime: task.cost,
                        deadline: task.deadline,
                        period: task.period,
                    };
                    // The set before gives its time back at the end of its last periods.
                    let taken = until_so(TIMEOUT, GLANCE, "the kernel has no room", || {
                        Ok(hog::take(Class::Deadline(reserve)).is_ok())
                    });
                    together.wait();
                    taken.map(|()| serve(task, end())).map_err(|error| error.to_string())
                })
            })
            .collect();
        let (mut releases, mut misses) = (0, Vec::new());
        for thread in threads {
            let served = thread.join().map_err(|_| "a thread panicked")??;
            releases += served.0;
            misses.extend(served.1);
        }
        Ok((releases, misses))
    }
}

/// Serves one task's releases until the end.
fn serve(task: Task, end: Instant) -> (u32, Vec<Miss>) {
    let (mut releases, mut misses) = (0, Vec::new());
    let mut release = Instant::now();
    while release < end {
        thread::sleep(release.saturating_duration_since(Instant::now()));
        let from_ns = wall();
        let (mut had, mut last) = (Duration::ZERO, Instant::now());
        // The rest is for the clock, and for going to sleep.
        while had < task.cost * 8 / 10 {
            let now = Instant::now();
            had += (now - last).min(STEP);
            last = now;
        }
        releases += 1;
        if let Some(by) = last.checked_duration_since(release + task.deadline + TICK) {
            misses.push(Miss { from_ns, until_ns: wall(), by });
        }
        // A late release does not make the next come early.
        release = (release + task.period).max(Instant::now());
    }
    (releases, misses)
}

/// A set that the host admits: tasks are added until one does not fit.
fn draw(random: &mut Random, processors: u32) -> Vec<Task> {
    let mut set: Vec<Task> = Vec::new();
    loop {
        let period = SHORTEST_MS + random.below(LONGEST_MS - SHORTEST_MS);
        let period = Duration::from_millis(period);
        let cost = period * (5 + random.below(35) as u32) / 100;
        set.push(Task::new(cost, period));
        let used: Share = set.iter().map(Task::share).sum();
        let most = Share::percent(90 * u64::from(processors));
        if used > most || !global::admits(&set, processors, Share::percent(5)) {
            set.pop();
            if !set.is_empty() {
                return set;
            }
        }
    }
}

fn overlaps(stood: &Standstill, miss: &Miss) -> bool {
    let from = stood.until_ns.saturating_sub((stood.span_ms * 1e6) as u64);
    from <= miss.until_ns && miss.from_ns <= stood.until_ns
}
