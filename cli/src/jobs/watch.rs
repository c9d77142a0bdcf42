//! A job, watched until it is over.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use job::{Job, JobState, RankState};
use os::clock::wall_clock;
use steadfast::admin::Client as AdminClient;
use wire::Time;

use super::show::{fraction, restarts, span, state, told};
use crate::commands::Failure;

/// How long the node may wait for something new.
const WAIT: Duration = Duration::from_millis(500);

/// How often a node that is gone is looked for.
const AGAIN: Duration = Duration::from_millis(100);

/// How long there may be no node at all.
const ALONE: Duration = Duration::from_secs(60);

/// The width of the bar.
const BAR: usize = 30;

/// Watches a job until it is over, and shows on standard error how far it is. `find` finds a node, also
/// when the last one is gone.
pub fn watch(
    number: u64,
    mut node: AdminClient,
    mut find: impl FnMut() -> Result<AdminClient, Failure>,
    quiet: bool,
) -> Result<Job, Failure> {
    let mut screen = Screen { quiet, drawn: false, told: String::new() };
    let (mut since, mut alone) = (None, Duration::ZERO);
    loop {
        match node.jobs(since, WAIT) {
            Ok(status) => {
                if !status.current {
                    std::thread::sleep(AGAIN);
                }
                alone = Duration::ZERO;
                // A node that has just begun has nothing yet.
                if let Some(jobs) = status.jobs.as_ref().filter(|_| status.current) {
                    since = Some(status.version);
                    let Some(job) = jobs.job(number) else {
                        return Err(Failure::Failed("the job was forgotten".into()));
                    };
                    screen.show(job);
                    if job.state != JobState::Running {
                        screen.end();
                        return Ok(job.clone());
                    }
                }
            }
            Err(error) if alone >= ALONE => return Err(Failure::failed(error)),
            Err(_) => {
                std::thread::sleep(AGAIN);
                alone += AGAIN;
                if let Ok(found) = find() {
                    (node, since) = (found, None);
                }
            }
        }
    }
}

struct Screen {
    quiet: bool,
    drawn: bool,
    told: String,
}

impl Screen {
    /// On a terminal one line that changes; else a line for each event.
    fn show(&mut self, job: &Job) {
        if self.quiet {
            return;
        }
        if stderr().is_terminal() {
            eprint!("\r\x1b[K{}", bar(job));
            let _ = stderr().flush();
            self.drawn = true;
            return;
        }
        let told = events(job);
        if told != self.told {
            eprintln!("{told}");
            self.told = told;
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.drawn) {
            eprintln!();
        }
    }
}

/// How far the job is.
fn bar(job: &Job) -> String {
    let done = fraction(job);
    let filled = (done.unwrap_or(0.0) * BAR as f64) as usize;
    let bar: String = (0..BAR).map(|place| if place < filled { '#' } else { '.' }).collect();
    let percent = done.map_or("  -".into(), |done| format!("{:3.0}", (done * 100.0).floor()));
    let now = Time(wall_clock());
    let saved = job.ranks.iter().map(|rank| rank.progress.saved).min().unwrap_or_default();
    let saved = match saved {
        Time::ZERO => "not saved yet".to_owned(),
        at => format!("saved {} ago", span(now.since(at))),
    };
    let left = left(job).map_or(String::new(), |left| format!(", {} to go", span(left)));
    let runs = job.ranks.iter().filter(|rank| matches!(rank.state, RankState::At(_))).count();
    format!(
        "{} [{bar}] {percent} %{left}, {runs} of {} ranks at work, {saved}, {}",
        job.spec.name,
        job.spec.ranks,
        told(restarts(job))
    )
}

/// The slowest rank's time to go.
fn left(job: &Job) -> Option<Duration> {
    let left = job.ranks.iter().filter(|rank| rank.state != RankState::Finished).map(|rank| {
        let progress = rank.progress;
        let turns = progress.step.steps.saturating_sub(progress.step.step) as f64;
        (progress.rate > 0).then(|| turns / (progress.rate as f64 / 1e3))
    });
    let seconds = left.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))
}

fn events(job: &Job) -> String {
    let of = |state: fn(&RankState) -> bool| job.ranks.iter().filter(|it| state(&it.state)).count();
    let finished = of(|state| *state == RankState::Finished);
    let runs = of(|state| matches!(state, RankState::At(_)));
    let last = job.ranks.iter().flat_map(|rank| &rank.recoveries).max_by_key(|it| it.seen);
    let last = last.map(|it| match &it.why {
        job::Why::Ended(end) => format!("; last: {end}"),
        job::Why::Gone(node) => format!("; last: {node} has gone"),
        job::Why::Regrouped => "; last: all ranks have gone back".into(),
        job::Why::Moved => "; last: a rank left a node that is being drained".into(),
    });
    let restarts = restarts(job);
    let tell = if restarts > 0 { last.unwrap_or_default() } else { String::new() };
    match job.state {
        JobState::Running => format!(
            "{}: {runs} ranks at work, {finished} finished, {}{tell}",
            job.spec.name,
            told(restarts)
        ),
        _ => format!("{}: {}", job.spec.name, state(job, Time(wall_clock()))),
    }
}
