//! Jobs as their users run them: on a cluster of this machine's own, whose ranks, agents and nodes are
//! killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wire::Random;

const TURNS: u64 = 3_000;

/// A folder for a cluster, whose processes end with it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn steadfast(&self, arguments: &[&str]) -> Output {
        self.in_folder(arguments, Path::new("."))
    }

    fn in_folder(&self, arguments: &[&str], folder: &Path) -> Output {
        let program = env!("CARGO_BIN_EXE_steadfast");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("STEADFAST_HOME", self.0.path());
        command.env("STEADFAST_CONTEXT", self.0.path().join("none")).output().unwrap()
    }

    /// The output of a command that succeeds.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.steadfast(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}\n{}", self.logs());
        String::from_utf8(output.stdout).unwrap()
    }

    fn show(&self, name: &str) -> Value {
        serde_json::from_str(&self.done(&["job", "show", name, "--json"])).unwrap()
    }

    /// The logs of the nodes.
    fn logs(&self) -> String {
        let logs = (1..=3).map(|node| self.0.path().join(format!("own/node-{node}.log")));
        logs.filter_map(|log| fs::read_to_string(log).ok()).collect()
    }

    /// The cluster's processes whose command lines have this word.
    fn processes(&self, word: &str) -> Vec<Pid> {
        let home = self.0.path().to_str().unwrap();
        let line = |pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        };
        pids()
            .filter(|pid| line(*pid).contains(home) && line(*pid).contains(word))
            .filter_map(Pid::from_raw)
            .collect()
    }

    /// The processes of ranks, by the agents' records.
    fn ranks(&self) -> Vec<Pid> {
        let mut found = Vec::new();
        for node in 1..=3 {
            let folder = self.0.path().join(format!("own/node-{node}.jobs"));
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                let words: Vec<&str> = text.split_whitespace().collect();
                if words.len() == 4 {
                    found.extend(words[1].parse().ok().and_then(Pid::from_raw));
                }
            }
        }
        found
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The keeper stops its nodes, and they their agents, and those their ranks.
        let home = self.0.path().to_path_buf();
        let keepers = pids().filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(home.to_str().unwrap())
                && String::from_utf8_lossy(&line).contains("keep")
        });
        for keeper in keepers.filter_map(Pid::from_raw) {
            let _ = kill_process(keeper, Signal::TERM);
        }
        let until = Instant::now() + Duration::from_secs(20);
        while !self.processes("").is_empty() && Instant::now() < until {
            thread::yield_now();
        }
    }
}

fn pids() -> impl Iterator<Item = i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A program that cargo builds with the workspace's tests: `sums`, an example of the agent's, or
/// `rank`, one of the library's. Both compute the same.
fn example(name: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    let examples: PathBuf = tests.parent().unwrap().parent().unwrap().join("examples");
    let program = examples.join(name);
    assert!(program.exists(), "cargo build --workspace --examples, with the same profile");
    program.to_str().unwrap().to_owned()
}

/// The result of a rank of an undisturbed run, as the example computes it.
fn expected(rank: u64) -> Vec<u8> {
    let mut sums = vec![0_u64; 1_000];
    for turn in 0..TURNS {
        for (place, sum) in (0_u64..).zip(&mut sums) {
            *sum = sum.wrapping_mul(3).wrapping_add(turn ^ place ^ rank);
        }
    }
    sums.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The output of a rank of an undisturbed run.
fn printed(rank: u64) -> String {
    let turns = (0..TURNS).step_by(50).map(|turn| format!("turn {turn}\n"));
    format!("rank {rank} of 3\n{}rank {rank} is done\n", turns.collect::<String>())
}

fn check_results(home: &Home, name: &str, out: &Path) {
    home.done(&["job", "restore", name, "--results", "--out", out.to_str().unwrap()]);
    for rank in 0..3 {
        let file = fs::read(out.join(format!("rank-{rank}/results/sums.npy"))).unwrap();
        assert!(file.ends_with(&expected(rank)), "rank {rank}");
    }
}

/// Each kind of damage to a file is named.
fn check_verify(home: &Home) {
    let mut files = Vec::new();
    for node in 1..=3 {
        let jobs = home.0.path().join(format!("own/node-{node}/jobs"));
        for job in fs::read_dir(jobs).into_iter().flatten().flatten() {
            let rank = job.path().join("00000000");
            files.extend(fs::read_dir(rank).into_iter().flatten().flatten().map(|it| it.path()));
        }
    }
    for kind in ["data", "manifest"] {
        let path = files.iter().find(|path| path.extension().is_some_and(|end| end == kind));
        let path = path.expect("rank 0 has images");
        let whole = fs::read(path).unwrap();
        let mut bytes = whole.clone();
        // Between parts there is nothing that anybody reads; the first part begins at once.
        bytes[if kind == "data" { 0 } else { whole.len() / 2 }] ^= 4;
        fs::write(path, bytes).unwrap();
        let output = home.steadfast(&["job", "verify", "k"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success() && text.contains("DAMAGED"), "{kind}: {text}");
        fs::write(path, whole).unwrap();
    }
}

/// Turns that ranks have in their images, together.
fn saved(job: &Value) -> u64 {
    let newest = |rank: &Value| {
        let images = rank["images"]["generations"].as_object().unwrap();
        images.values().map(|image| image["step"].as_u64().unwrap()).max().unwrap_or(0)
    };
    job["ranks"].as_array().unwrap().iter().map(newest).sum()
}

#[test]
fn a_job_ends_as_undisturbed_whatever_dies() {
    let (home, mut random) = (Home::new(), Random::new(7));
    let (program, turns) = (example("sums"), TURNS.to_string());
    home.done(&[
        "job", "run", "-n", "3", "--nodes", "3", "--copies", "2", "--every", "20ms", "--name", "k",
        "--detach", "--", &program, &turns, "1000",
    ]);
    let mut before = 0;
    for round in 0..8 {
        // Something has been saved since the last one.
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let job = home.show("k");
            if job["state"] != "running" || saved(&job) > before + 30 {
                before = saved(&job);
                break;
            }
            assert!(Instant::now() < until, "{job}\n{}", home.logs());
        }
        let victims = match round % 4 {
            0 => home.ranks(),
            1 => home.processes(" agent "),
            2 => home.processes(" node "),
            _ => [home.ranks(), home.processes(" node ")].concat(),
        };
        let count = if round % 4 == 3 { 2 } else { 1 };
        for _ in 0..count {
            if !victims.is_empty() {
                let victim = victims[random.below(victims.len() as u64) as usize];
                // It may have ended.
                let _ = kill_process(victim, Signal::KILL);
            }
        }
    }
    home.done(&["job", "resume", "k", "--json"]);
    let out = home.0.path().join("out");
    check_results(&home, "k", &out);
    let verified = home.done(&["job", "verify", "k"]);
    assert!(verified.contains("all whole"), "{verified}");
    check_verify(&home);
    for rank in 0..3 {
        let log = home.done(&["job", "logs", "k", "--rank", &rank.to_string()]);
        assert_eq!(log, printed(rank), "rank {rank}");
    }
    assert!(home.done(&["job", "list"]).contains("finished"));
    home.done(&["job", "forget", "k"]);
    assert!(home.done(&["job", "list"]).contains("there are no jobs"));
}

#[test]
fn a_job_goes_on_unasked_when_all_nodes_were_killed_at_once() {
    let home = Home::new();
    let (program, turns) = (example("rank"), TURNS.to_string());
    home.done(&[
        "job", "run", "-n", "3", "--every", "20ms", "--name", "all", "--detach", "--", &program,
        &turns, "500",
    ]);
    let until = Instant::now() + Duration::from_secs(60);
    while saved(&home.show("all")) < 300 {
        assert!(Instant::now() < until, "{}", home.logs());
    }
    for pid in home.processes(" node ") {
        kill_process(pid, Signal::KILL).unwrap();
    }
    let job: Value = serde_json::from_str(&home.done(&["job", "resume", "all", "--json"])).unwrap();
    assert_eq!(job["state"], "finished");
    let starts = job["ranks"].as_array().unwrap().iter().map(|it| it["start"].as_u64().unwrap());
    assert!(starts.sum::<u64>() > 3, "they were started again: {job}");
    check_results(&home, "all", &home.0.path().join("out"));
    // The last image has the state as the last turn has left it.
    let out = home.0.path().join("state");
    home.done(&["job", "restore", "all", "--out", out.to_str().unwrap()]);
    for rank in 0..3 {
        let file = fs::read(out.join(format!("rank-{rank}/sums.npy"))).unwrap();
        assert!(file.ends_with(&expected(rank)), "rank {rank}");
    }
}

#[test]
fn ranks_leave_a_node_that_is_drained() {
    let home = Home::new();
    let (program, turns) = (example("sums"), TURNS.to_string());
    home.done(&[
        "job", "run", "-n", "3", "--nodes", "3", "--every", "1h", "--name", "moved", "--detach",
        "--", &program, &turns, "2000",
    ]);
    let until = Instant::now() + Duration::from_secs(60);
    let node = loop {
        let job = home.show("moved");
        let computes = |rank: &Value| rank["progress"]["step"]["step"].as_u64() > Some(100);
        if job["ranks"].as_array().unwrap().iter().all(computes) {
            break job["ranks"][0]["state"]["at"]["node"].as_u64().unwrap();
        }
        assert!(Instant::now() < until, "{job}\n{}", home.logs());
    };
    let admin = home.0.path().join("own/node-1.sock");
    let drained = home.done(&["drain", &node.to_string(), "--admin", admin.to_str().unwrap()]);
    assert!(drained.contains("rank 0 of moved") && drained.contains("is empty"), "{drained}");
    let job = home.show("moved");
    let rank = &job["ranks"][0];
    assert_ne!(rank["state"]["at"]["node"].as_u64(), Some(node), "{job}");
    assert_eq!(rank["recoveries"][0]["why"], "moved", "{job}");
    assert!(home.done(&["job", "show", "moved"]).contains("it left its node"));
    home.done(&["job", "resume", "moved", "--json"]);
    check_results(&home, "moved", &home.0.path().join("out"));
    assert_eq!(home.done(&["job", "logs", "moved"]), printed(0), "at another node");
}

#[test]
fn a_program_that_has_changed_is_refused_until_a_user_says_otherwise() {
    let home = Home::new();
    let script = home.0.path().join("count.sh");
    // It changes itself, and dies.
    fs::write(&script, "echo exit 0 > count.sh; kill -9 $$").unwrap();
    let run = ["job", "run", "--name", "count", "--detach", "--", "sh", "count.sh"];
    let output = home.in_folder(&run, home.0.path());
    assert!(output.status.success(), "{output:?}");
    let until = Instant::now() + Duration::from_secs(60);
    while home.show("count")["state"]["failing"].is_null() {
        assert!(Instant::now() < until, "{}", home.logs());
    }
    let shown = home.done(&["job", "show", "count"]);
    assert!(shown.contains("the program has changed since the job was submitted"), "{shown}");
    home.done(&["job", "resume", "count", "--any-program", "--json"]);
    assert_eq!(home.show("count")["state"], "finished");
}

#[test]
fn a_program_that_fails_is_told_with_its_last_words_at_hand() {
    let home = Home::new();
    let output = home.steadfast(&["job", "run", "--", "sh", "-c", "echo no such input; exit 3"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("exit status 3") && text.contains("steadfast job logs sh"), "{text}");
    assert_eq!(home.done(&["job", "logs", "sh"]), "no such input\n", "of its last start");
    // A script that is run again goes on, and is done when the job is.
    let script = "test -e done && exit 0; touch done; kill -9 $$";
    let again = ["job", "run", "--or-resume", "--name", "twice", "--", "sh", "-c", script];
    let output = home.in_folder(&again, home.0.path());
    assert!(output.status.success(), "{output:?}");
    std::fs::remove_file(home.0.path().join("done")).unwrap();
    let output = home.in_folder(&again, home.0.path());
    assert!(output.status.success() && !home.0.path().join("done").exists(), "{output:?}");
    let output = home.steadfast(&["job", "show", "other"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("there are: sh, twice"));
    let output = home.steadfast(&["job", "run", "-n", "0", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
}
