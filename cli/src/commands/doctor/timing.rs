//! The measurements. They take about two seconds in all.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::CpuSet;
use steadfast::NodeConfig;

use super::finding::{Finding, Verdict};

const ECHOES: usize = 5_000;
const SLEEPS: usize = 200;
const SLEEP: Duration = Duration::from_millis(1);
const WATCH: Duration = Duration::from_millis(500);
const SYNCS: usize = 10;

pub fn examine(config: &NodeConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(wake_ups());
    findings.push(timers(config));
    findings.push(stalls(config));
    findings.extend(config.data_dir.as_deref().and_then(disk));
    findings
}

/// Two threads that wake each other, on one core and on two: a call pays for several of these.
fn wake_ups() -> Option<Finding> {
    let cores = rustix::thread::sched_getaffinity(None).ok()?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).collect();
    let (first, last) = (*cores.first()?, *cores.last()?);
    let (near, _) = echo(first, first)?;
    let (far, worst) = echo(first, last)?;
    let says = format!(
        "a thread wakes another in {near:.0} us on its own core, {far:.0} us on another (p99 \
         {worst:.0} us)"
    );
    Some(if worst > 1_000.0 {
        Finding::new(
            Verdict::Warning,
            "wake-ups",
            says,
            "other programs use the cores: set realtime.priority, or dedicate processors to the node",
        )
    } else {
        Finding::good("wake-ups", says)
    })
}

/// Half an echo's time in microseconds between threads on two cores: median and p99.
fn echo(mine: usize, theirs: usize) -> Option<(f64, f64)> {
    let (mut here, mut there) = UnixStream::pair().ok()?;
    let answers = thread::spawn(move || {
        pin(theirs);
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && there.write_all(&byte).is_ok() {}
    });
    let asks = thread::spawn(move || {
        pin(mine);
        let mut byte = [7];
        let ask = |_| {
            let start = Instant::now();
            here.write_all(&byte).and_then(|()| here.read_exact(&mut byte)).ok()?;
            Some(start.elapsed().as_secs_f64() * 1e6 / 2.0)
        };
        // Its end closes the pair, and so ends the other thread.
        (0..ECHOES).map(ask).collect::<Option<Vec<f64>>>()
    });
    let mut micros = asks.join().ok()??;
    let _ = answers.join();
    micros.sort_by(f64::total_cmp);
    Some((micros[ECHOES / 2], micros[ECHOES * 99 / 100]))
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // One of the cores that this process may use: it is not refused.
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// How late a sleep of a millisecond ends.
fn timers(config: &NodeConfig) -> Finding {
    let late = |_| {
        let start = Instant::now();
        thread::sleep(SLEEP);
        start.elapsed().saturating_sub(SLEEP)
    };
    let mut late: Vec<Duration> = (0..SLEEPS).map(late).collect();
    late.sort_unstable();
    let (p99, worst) = (late[SLEEPS * 99 / 100], late[SLEEPS - 1]);
    let says = format!("late by {p99:.1?} at p99, {worst:.1?} at worst, of {SLEEPS}");
    if worst > config.ring.timing.token_retransmit {
        Finding::new(
            Verdict::Warning,
            "timers",
            format!("{says}: later than ring.token_retransmit_ms"),
            "set realtime.priority, or run fewer programs on this host",
        )
    } else {
        Finding::good("timers", says)
    }
}

/// The longest time for which a thread that never sleeps did not get its core. A node that is held
/// up for a token time-out is suspected by the others.
fn stalls(config: &NodeConfig) -> Finding {
    let start = Instant::now();
    let (mut last, mut longest) = (start, Duration::ZERO);
    while last - start < WATCH {
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    let bound = config.ring.timing.token_timeout;
    let says = format!("{longest:.1?} at most, in {WATCH:?} of watching");
    if longest > bound / 4 {
        Finding::new(
            Verdict::Warning,
            "stalls",
            format!("{says}: ring.token_timeout_ms is {bound:?}"),
            "set realtime.priority, dedicate processors, or use a longer ring.token_timeout_ms",
        )
    } else {
        Finding::good("stalls", says)
    }
}

/// Measures the time until a few bytes are on the disk.
fn disk(data_dir: &std::path::Path) -> Option<Finding> {
    // A node creates the missing parts of the folder when it starts.
    let there =
        data_dir.ancestors().find(|part| part.exists()).unwrap_or(std::path::Path::new("."));
    let path = there.join("doctor.probe");
    let sync = || -> std::io::Result<Duration> {
        let start = Instant::now();
        let mut file = std::fs::File::create(&path)?;
        file.write_all(b"steadfast doctor")?;
        file.sync_all()?;
        Ok(start.elapsed())
    };
    let times: std::io::Result<Vec<Duration>> = (0..SYNCS).map(|_| sync()).collect();
    let _ = std::fs::remove_file(&path);
    Some(match times {
        Ok(mut times) => {
            times.sort_unstable();
            let (p50, worst) = (times[SYNCS / 2], times[SYNCS - 1]);
            let says = format!("{p50:.1?} to store a few bytes ({worst:.1?} at worst)");
            Finding::good("disk", says)
        }
        Err(error) => Finding::new(
            Verdict::Failure,
            "disk",
            format!("data_dir {} cannot be written: {error}", data_dir.display()),
            "create the directory, owned by the node's user",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_node_will_make_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("node-1/data");
        assert_eq!(disk(&missing).unwrap().verdict, Verdict::Good);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left, or made"
        );
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(disk(&file).unwrap().verdict, Verdict::Failure, "there cannot be a folder");
        assert_eq!(disk(&file.join("data")).unwrap().verdict, Verdict::Failure);
    }
}
