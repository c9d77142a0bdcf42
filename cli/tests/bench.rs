//! `steadfast bench ring` as its users run it.

#![allow(dead_code, reason = "other tests use more of the daemon")]

mod daemon;

use std::io::Read;
use std::process::{Output, Stdio};

use daemon::{Daemon, program, run};

fn three() -> Vec<Daemon> {
    let rings = steadfast::free_ring_addresses(3);
    let daemons: Vec<Daemon> = (1..=3).map(|id| Daemon::member(id, &rings)).collect();
    for daemon in &daemons {
        daemon.wait_for("STATUS=1 of 1 replicas have the state");
    }
    daemons
}

fn bench(daemon: &Daemon, arguments: &[&str]) -> Output {
    let mut command = program();
    command.args(["bench", "ring", "--config"]).arg(daemon.config()).args(arguments);
    command.output().expect("the program can be run")
}

/// As `bench`, anew where a node was held up so long that the others suspected it: other programs
/// may keep this machine busy.
fn measured(daemon: &Daemon, arguments: &[&str]) -> String {
    loop {
        let output = bench(daemon, arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        let held_up = ["the configuration changed", "no quorum", "the ring has 2 members"];
        if !held_up.iter().any(|words| told.contains(words)) {
            assert!(output.status.success(), "{output:?}");
            return String::from_utf8(output.stdout).expect("text");
        }
    }
}

fn failure(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

#[test]
fn a_cluster_is_measured_as_json_and_as_a_table() {
    let daemons = three();
    let small = ["--count", "200", "--warm", "20", "--size", "64,2000", "--senders", "1,3"];
    let text = measured(&daemons[1], &[&small[..], &["--json"]].concat());
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 16, "2 paces, 2 sizes, 2 groups of senders, 2 levels");
    for line in &lines {
        assert_eq!(line["verified"], true, "{line}");
        let senders = line["senders"].as_u64().expect("a number");
        assert_eq!(line["n"], 180 * senders, "{line}");
        let figure = |name: &str| line[name].as_f64().expect(name);
        assert!(figure("p50_us") <= figure("p99_us") && figure("p99_us") <= figure("max_us"));
        assert!(figure("msgs_s") > 0.0 && figure("all_p50_us") > 0.0);
        assert!(figure("send_p50_us") <= figure("own_p50_us"), "{line}");
    }
    let text = measured(&daemons[2], &["--count", "100", "--size", "64", "--pace", "one"]);
    assert!(
        text.starts_with("cluster steadfast, asked n3: 3 nodes in the ring, n1 n2 n3"),
        "{text}"
    );
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("one")).collect();
    assert_eq!(rows.len(), 2, "agreed and safe: {text}");
    assert!(rows.iter().all(|row| row.ends_with("yes")), "{text}");
}

#[test]
fn a_node_that_dies_in_the_middle_is_told() {
    let mut daemons = three();
    let mut command = program();
    command.args(["bench", "ring", "--seconds", "60", "--size", "64", "--pace", "every=1"]);
    command.arg("--config").arg(daemons[0].config());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the program can be run");
    // Its table's head comes before the first measure.
    let mut head = [0; 8];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut head).expect("a head");
    loop {
        let events =
            steadfast::admin::Client::connect(daemons[1].config().with_file_name("node.sock"));
        let events = events.expect("it runs").events(true, false).expect("they are told");
        let began = |event: &steadfast::events::EventRecord| {
            matches!(event.kind, steadfast::events::EventKind::BenchBegan { .. })
        };
        if events.map_while(Result::ok).any(|event| began(&event)) {
            break;
        }
    }
    daemons.remove(2).kill();
    let output = child.wait_with_output().expect("it ends");
    let told = failure(&output, 1);
    assert!(told.contains("the configuration changed"), "{told}");
}

#[test]
fn what_cannot_be_measured_is_told_with_the_remedy() {
    let told = failure(&run(&["bench", "ring", "--admin", "/nonexistent/node.sock"]), 1);
    assert!(told.contains("no node answers at /nonexistent/node.sock"), "{told}");
    assert!(told.contains("`--config FILE` or `--admin PATH`"), "{told}");
    let told = failure(&run(&["bench", "ring", "--pace", "quick"]), 2);
    assert!(told.contains("one, full, window=N, rate=N"), "{told}");
    let alone = Daemon::start();
    let told = failure(&bench(&alone, &["--senders", "2"]), 2);
    assert!(told.contains("--senders 2: the ring has 1 members, n1"), "{told}");
    let told = failure(&bench(&alone, &["--from", "7"]), 2);
    assert!(told.contains("n7, which is not in the ring"), "{told}");
    let told = failure(&bench(&alone, &["--size", "8", "--count", "10"]), 2);
    assert!(told.contains("8 is not in 16..=1048576"), "{told}");
    let output = bench(&alone, &["--count", "50", "--size", "64"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("one node: nothing crosses a wire"), "{text}");
    let rings = steadfast::free_ring_addresses(3);
    let lonely = Daemon::member(1, &rings);
    lonely.wait_for("STATUS=no quorum");
    let told = failure(&bench(&lonely, &[]), 1);
    assert!(told.contains("no quorum: nothing is answered until 2 of 3 nodes"), "{told}");
}

#[test]
fn help_teaches() {
    let output = run(&["bench", "ring", "--help"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for taught in ["LOADS THE RING", "--pace every=200", "Exit codes:", "echo (the farthest"] {
        assert!(text.contains(taught), "{taught} is not in {text}");
    }
}
