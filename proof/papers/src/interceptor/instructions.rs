//! Instructions that the client's machine takes for a call: by the processor's counters where there
//! are some (`perf`), else by a simulated processor (`valgrind`).

use std::process::{Child, Command, Stdio};

use serde::Serialize;

use harness::Outcome;

use super::kind::{Kind, Orders};

/// A way to count instructions: the words before the program's own, and how to read the count from
/// standard error.
struct Counter {
    name: &'static str,
    before: &'static [&'static str],
    read: fn(&str) -> Option<u64>,
}

const COUNTERS: [Counter; 2] = [
    Counter {
        name: "perf stat, instructions:u",
        before: &["perf", "stat", "-x", ",", "-e", "instructions:u", "--"],
        read: by_perf,
    },
    Counter {
        name: "valgrind --tool=callgrind",
        before: &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
        read: by_valgrind,
    },
];

/// `1234,,instructions:u,...`, or `<not supported>,,instructions:u,...` where there are no
/// counters.
fn by_perf(told: &str) -> Option<u64> {
    told.lines().find(|line| line.contains("instructions"))?.split(',').next()?.parse().ok()
}

/// `==123== Collected : 1234`.
fn by_valgrind(told: &str) -> Option<u64> {
    let (_, count) = told.lines().find(|line| line.contains("Collected"))?.split_once(" : ")?;
    count.trim().parse().ok()
}

/// Instructions a call.
#[derive(Serialize)]
pub struct Counted {
    pub by: &'static str,
    #[serde(rename = "static")]
    pub fixed: f64,
    pub proactive: f64,
}

/// By two runs of so many calls: their difference leaves out what a process needs to begin and end.
/// `None` where neither way is there.
pub fn measure(calls: [u64; 2]) -> Outcome<Option<Counted>> {
    for counter in &COUNTERS {
        let Some(fixed) = a_call(counter, Kind::Static, calls)? else { continue };
        let Some(proactive) = a_call(counter, Kind::Proactive, calls)? else { continue };
        return Ok(Some(Counted { by: counter.name, fixed, proactive }));
    }
    Ok(None)
}

/// Both runs at once: instructions are the same however busy the machine is.
fn a_call(counter: &Counter, kind: Kind, calls: [u64; 2]) -> Outcome<Option<f64>> {
    let mut running = Vec::new();
    for calls in calls.into_iter().filter(|calls| *calls > 0) {
        let command = Orders::Step(kind, calls).role()?.command()?;
        let run = Command::new(counter.before[0])
            .args(&counter.before[1..])
            .args(command)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        // It may not be installed.
        let Ok(run) = run else { return Ok(None) };
        running.push(run);
    }
    let ended = running.into_iter().map(Child::wait_with_output).collect::<Result<Vec<_>, _>>()?;
    let counts = ended.iter().map(|run| {
        let count = (counter.read)(&String::from_utf8_lossy(&run.stderr));
        count.filter(|_| run.status.success())
    });
    let Some(counts) = counts.collect::<Option<Vec<u64>>>() else { return Ok(None) };
    let [.., most] = counts[..] else { return Ok(None) };
    // A run of no calls is not made, and taken for nothing.
    let more = most.saturating_sub(if counts.len() > 1 { counts[0] } else { 0 });
    Ok(Some(more as f64 / (calls[1] - calls[0]) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counters_tell_is_understood() {
        assert_eq!(by_perf("a warning\n1234567,,instructions:u,99,100.00,,\n"), Some(1_234_567));
        assert_eq!(by_perf("<not supported>,,instructions:u,0,100.00,,\n"), None);
        assert_eq!(by_valgrind("==7== Events    : Ir\n==7== Collected : 126651\n"), Some(126_651));
        assert_eq!(by_valgrind("valgrind: no such tool\n"), None);
    }
}
