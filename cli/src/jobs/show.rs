//! How jobs stand, for people.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use job::{End, Job, JobState, Jobs, Log, Rank, RankState, Recovery, Rollback, Why};
use wire::{NodeId, Time};

use super::waits;

/// A line for each job.
pub fn list(jobs: &Jobs, now: Time) -> String {
    let all: Vec<&Job> = jobs.jobs().map(|(_, job)| job).collect();
    if all.is_empty() {
        return "there are no jobs (`steadfast job run -- PROGRAM` runs one)\n".into();
    }
    let wide = all.iter().map(|job| job.spec.name.len()).max().unwrap_or(0).max(4);
    let mut text =
        format!("{:wide$}  {:8}  {:>5}  {:>8}  state\n", "name", "done", "ranks", "restarts");
    for job in all {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:wide$}  {:8}  {:>5}  {:>8}  {}",
            job.spec.name,
            percent(job),
            job.spec.ranks,
            restarts(job),
            state(job, now)
        );
    }
    text
}

/// All about a job.
pub fn show(jobs: &Jobs, job: &Job, drained: &BTreeSet<NodeId>, now: Time) -> String {
    let spec = &job.spec;
    let mut text = format!("{}: {}\n", spec.name, state(job, now));
    let _ = writeln!(
        text,
        "  {} ({} ranks, each image at {} of the nodes{})",
        spec.command.join(" "),
        spec.ranks,
        spec.copies,
        match spec.log {
            Log::Sender => String::new(),
            log => format!("; messages as well, {log}"),
        }
    );
    let _ = writeln!(
        text,
        "\n  rank  state      node   turn                 per s   to go      saved      stop ms  written ms  image MB  at  restarts"
    );
    for (number, rank) in job.ranks.iter().enumerate() {
        let _ = writeln!(text, "{}", line(number, rank, now));
    }
    for reason in waits::reasons(jobs, job, drained) {
        let _ = writeln!(text, "  {reason}");
    }
    let recoveries: Vec<(usize, &Recovery)> = (0..)
        .zip(&job.ranks)
        .flat_map(|(number, rank)| rank.recoveries.iter().map(move |it| (number, it)))
        .collect();
    if !recoveries.is_empty() {
        let _ = writeln!(
            text,
            "\n  Starts that are over, and what followed (ms after the end was seen):"
        );
        for (number, recovery) in recoveries {
            let _ = writeln!(text, "  {}", followed(number, recovery));
        }
    }
    text
}

fn line(number: usize, rank: &Rank, now: Time) -> String {
    let progress = &rank.progress;
    let (state, node) = match rank.state {
        RankState::Waiting => ("waits", "-".to_owned()),
        RankState::At(node) if progress.start < rank.start => ("starts", node.node.to_string()),
        RankState::At(node) if rank.moves.is_some() => ("leaves", node.node.to_string()),
        RankState::At(node) => ("computes", node.node.to_string()),
        RankState::Finished => ("finished", "-".to_owned()),
    };
    let (step, steps) = (progress.step.step, progress.step.steps);
    let turn = match steps {
        0 => "-".to_owned(),
        _ if state == "finished" => format!("{steps}/{steps}"),
        _ => format!("{step}/{steps} ({} %)", step * 100 / steps),
    };
    let rate = progress.rate as f64 / 1e3;
    let left = steps.saturating_sub(step) as f64 / rate;
    let computes = matches!(state, "computes" | "leaves") && rate > 0.0;
    let (rate, left) = match computes {
        true => (format!("{rate:.1}"), span(Duration::from_secs_f64(left.min(1e9)))),
        false => ("-".to_owned(), "-".to_owned()),
    };
    let newest = rank.images.generations().next_back();
    let (saved, stop, written) = match progress.saved {
        Time::ZERO => ("never".to_owned(), "-".to_owned(), "-".to_owned()),
        at => {
            let ms = |us: u32| format!("{:.1}", f64::from(us) / 1e3);
            (format!("{} ago", span(now.since(at))), ms(progress.stop_us), ms(progress.save_us))
        }
    };
    let image = newest.map_or("-".into(), |it| format!("{:.1}", it.bytes as f64 / 1e6));
    let holders = newest.map_or("-".into(), |it| it.holders.len().to_string());
    let restarts = rank.start.saturating_sub(1);
    format!(
        "  {number:>4}  {state:9}  {node:5}  {turn:18} {rate:>7}  {left:9}  {saved:9}  {stop:>7}  {written:>10}  {image:>8}  {holders:>2}  {restarts:>8}"
    )
}

/// The time line of a recovery.
fn followed(rank: usize, recovery: &Recovery) -> String {
    let why = match &recovery.why {
        Why::Ended(end) => end.to_string(),
        Why::Gone(node) => format!("{node} has gone"),
        Why::Regrouped => "another rank had diverged, and all went back".into(),
        Why::Moved => "it left its node, which is being drained".into(),
    };
    let mut text = format!("rank {rank}, start {}: {why}", recovery.start);
    let seen = recovery.seen;
    let mut add = |name: &str, at: Time| {
        if at >= seen && at != Time::ZERO {
            let _ = write!(text, "; {name} {:.1}", at.since(seen).as_secs_f64() * 1e3);
        }
    };
    add("told", recovery.told);
    recovery.ordered.into_iter().for_each(|at| add("ordered", at));
    if let Some(moments) = recovery.moments {
        add("started", moments.begun);
        add("restored", moments.restored);
        add("computing", moments.computes);
    }
    text
}

/// How a job stands.
pub fn state(job: &Job, now: Time) -> String {
    let since = span(now.since(job.since));
    match &job.state {
        JobState::Running => format!("running for {}", span(now.since(job.submitted))),
        JobState::Finished => {
            format!("finished {since} ago, after {}", span(job.since.since(job.submitted)))
        }
        JobState::Stopped => {
            format!("stopped {since} ago: `steadfast job resume {}` goes on", job.spec.name)
        }
        JobState::Failing(rank, End::Diverged(why)) => format!(
            "failed {since} ago: rank {rank} diverged: {why}. `steadfast job resume {}` has all ranks go \
             back to saved states that fit together, or begin anew if none do{}",
            job.spec.name,
            match job.spec.recovery {
                Rollback::Log => "; such are kept with --recovery group --every 50turns",
                Rollback::Group => "",
            }
        ),
        JobState::Failing(rank, end) => format!(
            "failed {since} ago: rank {rank} ended again and again, at last so: {end}; `steadfast job logs {0} --rank {rank}` shows what it \
             printed, `steadfast job resume {0}` tries again",
            job.spec.name
        ),
        JobState::Lost(rank) => format!(
            "stopped {since} ago: all images of rank {rank} are lost or damaged; `steadfast job resume {}` has that rank \
             begin anew, and all others too if they send each other messages",
            job.spec.name
        ),
    }
}

/// How far all ranks are together.
pub fn percent(job: &Job) -> String {
    fraction(job).map_or_else(|| "-".into(), |done| format!("{:.0} %", (done * 100.0).floor()))
}

/// From 0 to 1, if ranks tell.
pub fn fraction(job: &Job) -> Option<f64> {
    let mut sum = 0.0;
    for rank in &job.ranks {
        let step = rank.progress.step;
        sum += match (rank.state, step.steps) {
            (RankState::Finished, _) => 1.0,
            (_, 0) => return None,
            (_, steps) => (step.step as f64 / steps as f64).min(1.0),
        };
    }
    Some(sum / job.ranks.len() as f64)
}

/// Starts beyond the first of each rank.
pub fn restarts(job: &Job) -> u64 {
    job.ranks.iter().map(|rank| rank.start.saturating_sub(1)).sum()
}

/// That many restarts, in words.
pub fn told(restarts: u64) -> String {
    match restarts {
        0 => "no restart".into(),
        1 => "one restart".into(),
        many => format!("{many} restarts"),
    }
}

/// A time, for people.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min {} s", seconds / 60, seconds % 60),
        7_200..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use job::{Command, End, Moments, Progress, Spec};
    use wire::rank::Step;
    use wire::{Incarnation, Member};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_job_is_shown_with_what_people_ask() {
        let mut jobs = Jobs::default();
        assert!(list(&jobs, Time(0)).contains("steadfast job run"));
        let node = Member { node: NodeId(3), incarnation: Incarnation(1) };
        let command = vec!["python".into(), "matmul.py".into()];
        let spec = Spec { name: "matmul".into(), command, ranks: 1, copies: 1, ..Spec::default() };
        let mut take = |at: u64, command: &Command| jobs.take(Time(at), command).unwrap();
        let job = take(SECOND, &Command::Submit(spec)).job.unwrap();
        take(SECOND, &Command::Start { job, rank: 0, start: 1, node });
        let (end, at) = (End::Killed(9), Time(2 * SECOND));
        take(2 * SECOND + 400_000, &Command::Ended { job, rank: 0, start: 1, end, at });
        take(2 * SECOND + 900_000, &Command::Start { job, rank: 0, start: 2, node });
        let after = |ms: u64| Time(2 * SECOND + ms * 1_000_000);
        let moments = Moments { begun: after(2), restored: after(4), computes: after(9) };
        take(2 * SECOND, &Command::Computes { job, rank: 0, start: 2, moments });
        let progress = Progress {
            job,
            rank: 0,
            start: 2,
            step: Step { step: 250, steps: 1_000 },
            rate: 50_000,
            stop_us: 700,
            save_us: 12_000,
            saved: Time(60 * SECOND),
        };
        take(3 * SECOND, &Command::Progress(vec![progress]));
        let now = Time(63 * SECOND);
        let text = show(&jobs, jobs.job(job).unwrap(), &BTreeSet::new(), now);
        for expected in [
            "matmul: running for 62 s",
            "computes   n3",
            "250/1000 (25 %)",
            "50.0",
            "15 s",
            "3.0 s ago",
            "ended by signal 9; told 0.4; ordered 0.9; started 2.0; restored 4.0; computing 9.0",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let text = list(&jobs, now);
        assert!(text.contains("matmul") && text.contains("25 %"), "{text}");
        assert_eq!(span(Duration::from_secs(7_300)), "2 h 1 min");
    }
}
