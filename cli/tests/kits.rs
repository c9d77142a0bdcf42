//! The kits for other languages: their examples keep the protocol, and serve under real nodes.

mod daemon;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use daemon::{Daemon, program, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

fn kit(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kits").join(name)
}

/// Builds an example; false if its compiler is not here.
fn is_built(mut compiler: Command, folder: &str) -> bool {
    let name = compiler.get_program().to_string_lossy().into_owned();
    match compiler.current_dir(kit(folder)).output() {
        Ok(output) => {
            assert!(output.status.success(), "{output:?}");
            true
        }
        Err(_) => {
            println!("SKIPPED: there is no {name} here");
            false
        }
    }
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A command that asks this daemon.
fn ask(daemon: &Daemon, command: &[&str], rest: &[&str]) -> String {
    let mut all = program();
    all.args(command).arg("--config").arg(daemon.config()).args(rest);
    out(&all.output().expect("the program can be run"))
}

/// The only program of a node.
fn only_program(daemon: &Daemon) -> Value {
    let programs: Value =
        serde_json::from_str(&ask(daemon, &["programs", "--json"], &[])).expect("a list");
    programs[0].clone()
}

/// The example of a kit keeps the protocol. Its replicas answer under two nodes; one that is killed
/// comes back with the state.
fn tried(counter: &Path) {
    let counter = counter.to_str().expect("text");
    let report = out(&run(&["conform", "--json", "--", counter]));
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!((&report["failed"], &report["methods_not_tried"]), (&json!(0), &json!([])));

    let rings = steadfast::free_ring_addresses(2);
    let daemons = [1, 2].map(|id| Daemon::plain_member(id, &rings));
    for daemon in &daemons {
        daemon.wait_for("READY=1");
        let text = ask(daemon, &["run", "--group", "kit"], &["--", counter]);
        assert!(text.starts_with("serving: "), "{text}");
    }
    let call = |arguments: &[&str]| out(&daemons[0].call(&[&["kit"], arguments].concat()));
    assert_eq!(call(&["add", "[5]"]), "5\n");
    let pid = only_program(&daemons[0])["pid"].as_i64().expect("a process");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
    assert_eq!(call(&["add", "{\"n\": 6}"]), "11\n");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let program = only_program(&daemons[0]);
        if program["restarts"] == 1 && program["joined"] == true {
            break;
        }
        assert!(Instant::now() < deadline, "{program:#}");
    }
    // The one that came back was given the state, and is now alone.
    ask(&daemons[1], &["programs", "stop", "kit"], &[]);
    assert_eq!(call(&["get", "--read"]), "11\n");

    let refused = daemons[0].call(&["kit", "add", "[18446744073709551615]"]);
    let text = String::from_utf8(refused.stderr).expect("text");
    assert!(text.contains("service returned an error") && text.contains("Overflow"), "{text}");
}

#[test]
fn the_kit_for_go_serves() {
    let folder = TempDir::new().expect("a folder");
    let counter = folder.path().join("counter");
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&counter).arg("./examples/counter");
    if is_built(go, "go") {
        tried(&counter);
    }
}

#[test]
fn the_kit_for_cpp_serves() {
    let folder = TempDir::new().expect("a folder");
    let counter = folder.path().join("counter");
    let mut compiler = Command::new("g++");
    compiler.args(["-std=c++17", "-O1", "-o"]).arg(&counter).arg("examples/counter.cpp");
    if is_built(compiler, "cpp") {
        tried(&counter);
    }
}
