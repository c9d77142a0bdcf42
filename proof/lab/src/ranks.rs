//! Ranks of jobs with a real agent: the cost of checkpoints while they compute, and how long they
//! are away when they are killed (`star.txt`, figures 3 and 5).

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use agent::images::log_of;
use agent::local::Book;
use agent::{AgentError, Options as Place, Stop};
use harness::figures::{Times, median_and_worst};
use harness::process::Role;
use harness::{Experiment, Outcome, Run, bail};
use image::PAGE;
use job::{Command, Host, JobState, Jobs, Spec};
use rank::Job;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::rank::Every;

/// How long anything may take.
const WITHIN: Duration = Duration::from_secs(600);

/// The cost of checkpoints of a rank that computes, and its recovery when it is killed.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Mebibytes of the rank's memory.
    #[arg(long, default_value_t = 256)]
    mib: u64,
    /// Percent of the pages that a turn changes.
    #[arg(long, default_value_t = 1)]
    dirty: u64,
    /// Milliseconds that a turn computes.
    #[arg(long, default_value_t = 20)]
    turn_ms: u64,
    /// Seconds between two checkpoints.
    #[arg(long, value_delimiter = ',', default_values_t = [10.0, 1.0])]
    every: Vec<f64>,
    /// Seconds of each run.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Runs with and without checkpoints, in turn.
    #[arg(long, default_value_t = 5)]
    pairs: usize,
    /// Kills of the rank.
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Folder of images.
    #[arg(long, value_name = "FOLDER", default_value_os_t = std::env::temp_dir())]
    storage: PathBuf,
}

/// A rank's orders.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Orders {
    mib: u64,
    dirty: u64,
    /// Iterations of the sum that a turn computes.
    work: u64,
    turns: u64,
}

/// An agent on a thread of this process; its ranks are processes.
struct Running {
    book: Book,
    folder: tempfile::TempDir,
    stop: Stop,
    ended: thread::JoinHandle<Result<(), AgentError>>,
}

impl Experiment for Options {
    const NAME: &'static str = "ranks";
    const SMOKE: &'static str = "--mib 4 --seconds 1 --pairs 1 --every 0.2 --kills 2 --turn-ms 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        let agent = Running::start(&self.storage)?;
        let work = per_millisecond() * self.turn_ms;
        run.begin(&format!(
            "one rank with {} MiB, of which a turn of {} ms changes {} %; runs of {} s with and without \
             checkpoints in turn; overhead: median of the paired differences; stopped: what the program \
             waited for copies, of its time",
            self.mib, self.turn_ms, self.dirty, self.seconds
        ));
        let table = run.table(
            "every s=every_s:9.1, overhead %=overhead_percent:12.2, worst %=worst_percent:9.2, \
             stopped %=stopped_percent:11.3, stop=stop_ms:8.2, on disk=disk_ms:9.1, checkpoints:12",
        );
        let turns = (self.seconds * 1_000 / self.turn_ms).max(1);
        let orders = Orders { mib: self.mib, dirty: self.dirty, work, turns };
        for every in &self.every {
            let mut row = self.overhead(&agent, &orders, *every)?;
            row["every_s"] = json!(every);
            table.row(&row);
        }
        let table = run.table(
            "kills:6, ordered=ordered_ms:9.2, started=started_ms:9.2, restored=restored_ms:10.2, \
             computing=computing_ms:11.2, worst=worst_ms:8.2",
        );
        table.row(&self.recoveries(&agent, &Orders { turns: u64::MAX / 2, ..orders })?);
        agent.stop()
    }

    fn live(orders: Value) -> Outcome<()> {
        compute(&serde_json::from_value(orders)?)
    }
}

impl Options {
    /// Runs with and without checkpoints in turn.
    fn overhead(&self, agent: &Running, orders: &Orders, every: f64) -> Outcome<Value> {
        let mut differences = Vec::new();
        let (mut stopped, mut stops, mut saves, mut count) =
            (0.0, Times::default(), Times::default(), 0);
        for pair in 0..self.pairs {
            let micros = Every::Micros((every * 1e6) as u64);
            // The first one alternates, so that what drifts falls on both.
            let kinds = if pair % 2 == 0 { [Every::Never, micros] } else { [micros, Every::Never] };
            let mut times = [0.0; 2];
            for kind in kinds {
                let seen = agent.finish(orders, kind)?;
                times[usize::from(kind != Every::Never)] = seen.computed;
                if kind != Every::Never {
                    stopped += seen.stopped / seen.computed / self.pairs as f64;
                    count += seen.images;
                    stops.push(Duration::from_secs_f64(seen.last_stop));
                    saves.push(Duration::from_secs_f64(seen.last_save));
                }
            }
            differences.push((times[1] / times[0] - 1.0) * 100.0);
        }
        let Some((median, worst)) = median_and_worst(differences) else { bail!("no pair was run") };
        let middle = |times: &Times| times.summary().map(|all| all.p50 / 1e3);
        Ok(json!({
            "peer": "steadfast", "measure": "ranks", "mib": self.mib, "dirty": self.dirty,
            "overhead_percent": median, "worst_percent": worst, "stopped_percent": stopped * 100.0,
            "stop_ms": middle(&stops), "disk_ms": middle(&saves), "checkpoints": count,
        }))
    }

    /// Kills the rank again and again, each time when it has saved.
    fn recoveries(&self, agent: &Running, orders: &Orders) -> Outcome<Value> {
        let job = agent.submit(orders, Every::Micros(200_000))?;
        let mut moments: [Vec<f64>; 4] = Default::default();
        for kill in 0..self.kills as u64 {
            let saved = |jobs: &Jobs| {
                let rank = &jobs.job(job)?.ranks[0];
                let of_this = rank.images.generations().filter(|it| it.place.start == kill + 1);
                (of_this.count() > 1 && rank.start == kill + 1).then_some(())
            };
            agent.wait(saved)?;
            agent.kill()?;
            let recovery = agent.wait(|jobs| {
                let last = jobs.job(job)?.ranks[0].recoveries.back()?;
                (last.start == kill + 1 && last.moments.is_some()).then(|| last.clone())
            })?;
            let Some((ordered, then)) = recovery.ordered.zip(recovery.moments) else { continue };
            let times = [ordered, then.begun, then.restored, then.computes];
            for (all, at) in moments.iter_mut().zip(times) {
                all.push(at.since(recovery.seen).as_secs_f64() * 1e3);
            }
        }
        agent.take(&Command::Kill { job })?;
        let [ordered, started, restored, computing] =
            moments.map(|all| median_and_worst(all).unwrap_or_default());
        Ok(json!({
            "peer": "steadfast", "measure": "recovery", "mib": self.mib, "kills": self.kills,
            "ordered_ms": ordered.0, "started_ms": started.0, "restored_ms": restored.0,
            "computing_ms": computing.0, "worst_ms": computing.1,
        }))
    }
}

/// A run that has finished.
struct Seen {
    /// Seconds between the first turn and the last, as the rank counts them.
    computed: f64,
    /// Seconds that it waited for copies.
    stopped: f64,
    images: u64,
    last_stop: f64,
    last_save: f64,
}

impl Running {
    fn start(storage: &Path) -> Outcome<Running> {
        let folder = tempfile::tempdir_in(storage)?;
        let options = Place {
            folder: folder.path().join("jobs"),
            runtime: folder.path().join("run"),
            host: Host { processors: 2, memory: u64::MAX, ..Host::default() },
            port: None,
        };
        let (book, (begun, stop)) = (Book::default(), channel());
        let ways = book.clone();
        let ended = thread::spawn(move || {
            agent::run(options, move || ways.clone(), move |stop| drop(begun.send(stop)))
        });
        Ok(Running { book, folder, stop: stop.recv()?, ended })
    }

    fn take(&self, command: &Command) -> Outcome<Option<u64>> {
        Ok(self.book.take(command)?.job)
    }

    fn wait<T>(&self, so: impl Fn(&Jobs) -> Option<T>) -> Outcome<T> {
        self.book.wait(WITHIN, so).ok_or_else(|| "the job does not come to that".into())
    }

    fn submit(&self, orders: &Orders, every: Every) -> Outcome<u64> {
        let name = format!("run-{:x}", os_time());
        let command = Role::own(Options::NAME, orders)?.command()?;
        let spec = Spec { name, command, ranks: 1, copies: 1, every, ..Spec::default() };
        self.take(&Command::Submit(spec))?.ok_or_else(|| "the book has made no job".into())
    }

    fn finish(&self, orders: &Orders, every: Every) -> Outcome<Seen> {
        let job = self.submit(orders, every)?;
        let state = self.wait(|jobs| {
            let state = jobs.job(job)?.state.clone();
            (state != JobState::Running).then_some(state)
        })?;
        let log = std::fs::read_to_string(log_of(&self.folder.path().join("jobs"), job, 0))?;
        if state != JobState::Finished {
            bail!("the rank has failed: {log}");
        }
        let told: [f64; 3] = serde_json::from_str(log.lines().last().unwrap_or_default())?;
        let seen = self.wait(|jobs| {
            let rank = &jobs.job(job)?.ranks[0];
            Some((rank.images.next() - 1, rank.progress))
        })?;
        self.take(&Command::Forget { job })?;
        Ok(Seen {
            computed: told[0],
            stopped: told[1],
            images: seen.0,
            last_stop: f64::from(seen.1.stop_us) / 1e6,
            last_save: f64::from(seen.1.save_us) / 1e6,
        })
    }

    /// Kills the only rank, by the agent's record of it.
    fn kill(&self) -> Outcome<()> {
        for entry in std::fs::read_dir(self.folder.path().join("run"))? {
            let text = std::fs::read_to_string(entry?.path()).unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            if let [_, pid, _, _] = words[..]
                && let Some(pid) = rustix::process::Pid::from_raw(pid.parse()?)
            {
                // It may have been a record of one that has ended.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        Ok(())
    }

    fn stop(self) -> Outcome<()> {
        self.stop.stop();
        self.ended.join().map_err(|_| "the agent has panicked")??;
        Ok(())
    }
}

/// A name that no other run has.
fn os_time() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap_or_default().as_nanos()
}

/// The rank: each turn computes a sum, and changes a part of the pages, another one each time.
fn compute(orders: &Orders) -> Outcome<()> {
    let mut job = Job::connect()?;
    let length = orders.mib << 20;
    let (array, restored) = job.array("a", &format!("|u1 ({length},)"), length)?;
    if !restored {
        job.bytes_mut(array).fill(1);
    }
    let (depth, from) = job.begin_loop(orders.turns);
    let (begun, mut stopped, mut sum) = (Instant::now(), Duration::ZERO, 0);
    for turn in from..orders.turns {
        if job.turn(depth, turn)? {
            let stop = Instant::now();
            job.save()?;
            stopped += stop.elapsed();
        }
        sum = sum_of(orders.work, sum);
        let pages = job.bytes_mut(array).chunks_mut(PAGE as usize);
        for (number, page) in (turn..).zip(pages) {
            if number % 100 < orders.dirty {
                page[7] = page[7].wrapping_add(sum as u8 | 1);
            }
        }
    }
    let computed = begun.elapsed();
    job.end_loop(depth);
    println!("[{}, {}, {}]", computed.as_secs_f64(), stopped.as_secs_f64(), sum % 10);
    Ok(job.finish()?)
}

fn sum_of(work: u64, begin: u64) -> u64 {
    (0..work).fold(begin, |sum, it| std::hint::black_box(sum.wrapping_mul(31).wrapping_add(it)))
}

/// Iterations of the sum in a millisecond.
fn per_millisecond() -> u64 {
    let (begun, work) = (Instant::now(), 20_000_000);
    std::hint::black_box(sum_of(work, 1));
    (work as f64 / begun.elapsed().as_secs_f64() / 1e3) as u64
}
