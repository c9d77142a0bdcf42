//! The demo as a user runs it: a short run with both kills passes its own audit, and an interrupted
//! or killed one leaves no process and no folder behind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes longer, or it hangs.
const LIMIT: Duration = Duration::from_secs(60);

fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.arg("demo").args(arguments).env("TMPDIR", folder).stdin(Stdio::null());
    command
}

#[test]
fn a_short_run_with_both_kills_loses_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = demo(folder.path(), &["--json", "--seconds", "8", "--rate", "200"]).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}\n{}", String::from_utf8_lossy(&run.stdout));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["passed"], true);
    assert_eq!((&report["lost"], &report["duplicated"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(report["digests_equal"], true);
    assert!(report["sent"].as_u64().unwrap() >= 1_500, "{report}");
    let faults = report["faults"].as_array().unwrap();
    let roles: Vec<&str> = faults.iter().map(|fault| fault["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["primary", "backup"]);
    assert!(faults.iter().all(|fault| fault["survived"] == true), "{report}");
    assert_eq!(report["replicas"].as_array().unwrap().len(), 3);
    // The busy one is not who takes over, and the lost replicas are replaced on other nodes.
    let busy = &report["choice"]["busy"];
    assert_eq!(&report["choice"]["before"][0], busy, "{report}");
    assert_eq!(report["choice"]["after"].as_array().unwrap().last(), Some(busy), "{report}");
    assert_ne!(&faults[0]["primary"], busy, "{report}");
    assert!(faults.iter().all(|fault| fault["restored_on"] != fault["node"]), "{report}");
    assert_empty(folder.path());
}

#[test]
fn a_secure_run_passes_the_same_audit() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--json", "--seconds", "4", "--rate", "100", "--kill", "primary", "--secure"];
    let run = demo(folder.path(), &arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}\n{}", String::from_utf8_lossy(&run.stdout));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&report["passed"], &report["plan"]["secure"]), (&true.into(), &true.into()));
    assert_empty(folder.path());
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = running(folder.path());
    let family = family(run.id());
    assert!(family.len() >= 11, "five nodes, five lines, the displays: {family:?}");
    signal(&run, Signal::INT);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_gone(&family);
    assert_empty(folder.path());
}

#[test]
fn a_run_whose_conductor_is_killed_leaves_no_process_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = running(folder.path());
    let family = family(run.id());
    signal(&run, Signal::KILL);
    run.wait().unwrap();
    assert_gone(&family);
}

#[test]
fn impossible_wishes_are_refused_with_the_remedy() {
    for (arguments, remedy) in [
        (&["--replicas", "4", "--nodes", "3"][..], "--nodes 4"),
        (&["--nodes", "2", "--replicas", "2"], "--kill none"),
        (&["--replicas", "1"], "--replicas 2"),
        (&["--seconds", "0"], "from 1 to 3600"),
        (&["--seconds", "5"], "--seconds 8"),
    ] {
        let run = demo(&std::env::temp_dir(), arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(remedy), "{arguments:?}: {errors}");
    }
}

/// A run whose events flow.
fn running(folder: &Path) -> Child {
    let arguments = ["--seconds", "3600", "--rate", "100", "--kill", "none"];
    let mut run = demo(folder, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let flows = lines.any(|line| line.unwrap().contains("events flow"));
    assert!(flows, "it ended before any event flowed");
    run
}

fn signal(run: &Child, signal: Signal) {
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), signal).unwrap();
}

/// The children of a process, each with the moment of its start, which tells it from a later
/// process with the same number.
fn family(parent: u32) -> BTreeMap<u32, String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = numbers.filter_map(|number: u32| {
        let (of, start) = stat(number)?;
        (of == parent).then_some((number, start))
    });
    children.collect()
}

/// A process's parent and start, unless it is gone or a zombie.
fn stat(number: u32) -> Option<(u32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let alive = !matches!(fields[0], "Z" | "X");
    alive.then(|| (fields[1].parse().ok(), fields[19].to_owned())).and_then(|(p, s)| Some((p?, s)))
}

fn assert_gone(family: &BTreeMap<u32, String>) {
    let end = Instant::now() + LIMIT;
    loop {
        let still = |number: u32, start: &str| stat(number).is_some_and(|(_, now)| now == start);
        let left: Vec<_> = family.iter().filter(|(number, start)| still(**number, start)).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "left behind: {left:?}");
        std::thread::yield_now();
    }
}

fn assert_empty(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
