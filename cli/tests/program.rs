//! The program as its users run it.

mod daemon;

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use daemon::{Daemon, configuration, program, run};
use rustix::process::Signal;
use steadfast::{Client, Invocation, MethodId};

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The standard error of a command that must have ended with this code.
fn failure(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "a failure has no result: {output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

fn node_with(config: &str) -> Output {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    std::fs::write(&path, config).expect("written");
    program().args(["node", "--config"]).arg(&path).output().expect("the program can be run")
}

#[test]
fn help_teaches_with_examples_and_exit_codes() {
    for (arguments, taught) in [
        (&["--help"][..], &["steadfast node --config node.toml", "Exit codes:"][..]),
        (&["node", "--help"], &["steadfast node --print-config", "SIGTERM"]),
        (&["status", "--help"], &["steadfast status --config node.toml"]),
        (&["call", "--help"], &["steadfast call counter add '[5]'", "standard input"]),
        (&["demo", "--help"], &["--seconds"]),
        (&["move", "--help"], &["steadfast move counter --to 2", "Exit codes:"]),
        (&["targets", "--help"], &["steadfast targets counter", "Exit codes:"]),
        (&["style", "--help"], &["steadfast style counter active", "Exit codes:"]),
        (&["state", "--help"], &["steadfast state save --all", "Exit codes:"]),
        (&["events", "--help"], &["steadfast events --follow", "excluded"]),
        (&["doctor", "--help"], &["steadfast doctor --config node.toml", "Exit codes:"]),
    ] {
        let output = run(arguments);
        assert!(output.status.success(), "{output:?}");
        for text in taught {
            assert!(out(&output).contains(text), "{arguments:?} does not say {text}");
        }
    }
}

#[test]
fn the_printed_configuration_is_a_valid_one() {
    let output = run(&["node", "--print-config"]);
    assert!(output.status.success(), "{output:?}");
    let config = steadfast::NodeConfig::from_toml(&out(&output)).expect("it is valid");
    assert_eq!(config, steadfast::NodeConfig::default());
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for (arguments, remedy) in [
        (&["node"][..], "--config <FILE>"),
        (&["call", "counter", "get"], "steadfast context use DIR"),
        (&["call", "counter", "get", "--at", "127.0.0.1:1", "--deadline", "soon"], "250ms"),
        (&["call", "counter", "add", "n=5", "--at", "127.0.0.1:1"], "not JSON"),
        (&["node", "--config", "/nowhere/node.toml"], "--print-config"),
        (&["frobnicate"], "--help"),
    ] {
        let text = failure(&run(arguments), 2);
        assert!(text.contains(remedy), "{arguments:?}: {text}");
    }
}

#[test]
fn a_wrong_configuration_is_refused_with_the_remedy() {
    let directory = Path::new("/nowhere");
    let sound = configuration(directory, "127.0.0.1:0");
    for (config, remedy) in [
        (format!("tokn = 1\n{sound}"), "steadfast node --print-config"),
        (sound.replace("node = 1", "node = 7"), "correct its id"),
        (sound.replace("127.0.0.1:0\"\nnodes", "0.0.0.0:0\"\nnodes"), "insecure = true"),
        (format!("{sound}[ring]\nwindow = 0\n"), "window"),
        (sound.replace("service = \"echo\"", "service = \"ohce\""), "it has echo and counter"),
    ] {
        let text = failure(&node_with(&config), 2);
        assert!(text.contains(remedy) && text.starts_with("error: "), "{remedy}: {text}");
    }
}

#[test]
fn a_wrong_log_filter_is_a_usage_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    std::fs::write(&path, configuration(directory.path(), "127.0.0.1:0")).expect("written");
    let mut command = program();
    let output = command.args(["node", "--log", "a=b=c", "--config"]).arg(&path).output();
    let text = failure(&output.expect("the program can be run"), 2);
    assert!(text.contains("error, warn, info, debug or trace"), "{text}");
}

#[test]
fn status_of_a_node_without_an_admin_socket_says_what_to_configure() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    std::fs::write(&path, steadfast::DEFAULT_CONFIG).expect("written");
    let output = program().args(["status", "--config"]).arg(&path).output();
    let text = failure(&output.expect("the program can be run"), 2);
    assert!(text.contains("set admin = "), "{text}");
}

#[test]
fn a_taken_port_is_a_failure_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let text = failure(&node_with(&configuration(directory.path(), &address)), 1);
    assert!(text.contains(&address) && text.contains("another process has this port"), "{text}");
}

#[test]
fn a_missing_node_is_a_failure_that_says_where_it_was_sought() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("node.sock");
    let output = program().args(["status", "--admin"]).arg(&socket).output();
    let text = failure(&output.expect("the program can be run"), 1);
    assert!(text.contains("node.sock") && text.contains("is it running"), "{text}");
    assert!(text.contains("`--config FILE`"), "{text}");

    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("it is bound").to_string();
    drop(free);
    let text = failure(&run(&["call", "counter", "get", "--at", &address]), 1);
    assert!(text.contains(&address) && text.contains("check the addresses"), "{text}");
}

#[test]
fn calls_by_hand_change_what_status_shows() {
    let daemon = Daemon::start();
    assert_eq!(out(&daemon.call(&["counter", "add", "[5]"])), "5\n");
    assert_eq!(out(&daemon.call(&["counter", "add", r#"{"n": 2}"#])), "7\n");
    assert_eq!(out(&daemon.call(&["counter", "get"])), "7\n");
    assert_eq!(out(&daemon.call(&["echo", "anything", "\"hello\""])), "\"hello\"\n");

    let status = daemon.status();
    let groups = status["groups"].as_array().expect("a list");
    let counter = groups.iter().find(|group| group["name"] == "counter").expect("it is hosted");
    assert_eq!(counter["executed"], 3);
    assert_eq!(counter["primary"]["node"], 1);

    let output = program().args(["status", "--config"]).arg(daemon.config()).output();
    let text = out(&output.expect("the program can be run"));
    for part in ["cluster steadfast, seen from n1", "1 of 1: n1", "quorate", "counter  v"] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains('!'), "a sound cluster shows trouble:\n{text}");
}

#[test]
fn a_primary_is_moved_by_hand_and_events_tell_what_happened() {
    let daemon = Daemon::start();
    let config = daemon.config();
    let config = config.to_str().expect("a path in UTF-8");
    // The group is there when a call is answered.
    assert!(daemon.call(&["counter", "add", "[5]"]).status.success());
    let here = run(&["move", "counter", "--to", "1", "--config", config]);
    assert!(out(&here).starts_with("counter: the primary is n1 (view v"), "{here:?}");
    let elsewhere = run(&["move", "counter", "--to", "2", "--config", config]);
    let why = failure(&elsewhere, 1);
    assert!(why.contains("n2 has no replica of the group: host one there"), "{why}");
    let events = out(&run(&["events", "--config", config]));
    assert!(events.lines().any(|line| line.contains("counter: v1, primary n1")), "{events}");
    let json = out(&run(&["events", "--json", "--config", config]));
    let first: serde_json::Value = serde_json::from_str(json.lines().next().expect("one")).unwrap();
    assert_eq!(first["node"], 1);
}

#[test]
fn a_group_gets_another_style_by_hand() {
    let daemon = Daemon::start();
    let config = daemon.config();
    let config = config.to_str().expect("a path in UTF-8");
    // The group is there when a call is answered.
    assert!(daemon.call(&["counter", "add", "[5]"]).status.success());
    let changed = run(&["style", "counter", "voting", "--config", config]);
    assert!(out(&changed).starts_with("counter: the style is voting (view v"), "{changed:?}");
    let told = out(&run(&["targets", "counter", "--config", config]));
    assert!(
        told.starts_with("counter (voting, v")
            && told.contains("1. n1")
            && told.contains("primary"),
        "{told}"
    );
    let told = out(&run(&["targets", "counter", "--json", "--config", config]));
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["targets"][0]["synced"], true, "{told}");
    failure(&run(&["targets", "nobody", "--config", config]), 1);
    let again = out(&run(&["style", "counter", "voting", "--json", "--config", config]));
    let again: serde_json::Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!((&again["group"], &again["style"]), (&"counter".into(), &"voting".into()));
    assert!(out(&daemon.call(&["counter", "add", "[2]"])).contains('7'));
    let status = out(&run(&["status", "--json", "--config", config]));
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let groups = status["groups"].as_array().expect("groups");
    let counter = groups.iter().find(|group| group["name"] == "counter").expect("it is hosted");
    assert_eq!(counter["style"], "voting");
    let events = out(&run(&["events", "--config", config]));
    let told = "counter: the style changed from semi-active to voting";
    assert!(events.contains(told), "{events}");
    let why = failure(&run(&["style", "counter", "stateless", "--config", config]), 1);
    assert!(why.contains("a stateless group keeps none"), "{why}");
    let unknown = failure(&run(&["style", "counter", "quick", "--config", config]), 2);
    assert!(unknown.contains("the styles are stateless, cold-passive"), "{unknown}");
}

#[test]
fn calls_that_fail_say_why() {
    let daemon = Daemon::start();
    let largest = u64::MAX.to_string();
    for (arguments, remedy) in [
        (&["counter", "add", &format!("[{largest}]")][..], None),
        (&["counter", "add", "[1]"], Some(largest.as_str())),
        (&["counter", "sub", "[1]"], Some("get() -> u64")),
        (&["counter", "add", "[\"one\"]"], Some("add(n: u64)")),
        (&["counter", "add", "5"], Some("an object by their names")),
        (&["konter", "get"], Some("no group `konter`")),
    ] {
        let output = daemon.call(arguments);
        match remedy {
            None => assert!(output.status.success(), "{output:?}"),
            Some(remedy) => {
                let text = failure(&output, 1);
                assert!(text.contains(remedy), "{arguments:?}: {text}");
            }
        }
    }
}

#[test]
fn an_oversize_call_is_refused_with_the_limit() {
    let daemon = Daemon::start();
    let address = daemon.address();
    let mut command = program();
    command.args(["call", "echo", "echo", "-", "--at", &address]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be run");
    let body = format!("\"{}\"", "x".repeat(wire::limits::MAX_BODY));
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(body.as_bytes()).expect("the program reads all of it");
    drop(stdin);
    let text = failure(&child.wait_with_output().expect("it ends"), 1);
    assert!(text.contains(&wire::limits::MAX_BODY.to_string()), "{text}");
}

#[test]
fn both_signals_stop_the_daemon_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let daemon = Daemon::start();
        assert_eq!(out(&daemon.call(&["counter", "add", "[1]"])), "1\n");
        let (code, log) = daemon.end(signal);
        assert_eq!(code, Some(0), "{log}");
        assert!(!log.contains("ERROR") && !log.contains("error"), "{log}");
    }
}

#[test]
fn kill_9_of_the_primary_under_load_loses_and_repeats_nothing() {
    let rings = steadfast::free_ring_addresses(3);
    let mut daemons: Vec<Daemon> = (1..=3).map(|id| Daemon::member(id, &rings)).collect();
    for daemon in &daemons {
        daemon.wait_for("STATUS=1 of 1 replicas have the state");
    }
    let primary = &daemons[0].status()["groups"][0]["primary"]["node"];
    let primary = primary.as_u64().expect("a node's number") as usize - 1;
    let addresses: Vec<String> = daemons.iter().map(Daemon::address).collect();
    let (sender, acknowledgements) = channel();
    let acknowledged: u64 = thread::scope(|scope| {
        let adders: Vec<_> = (0..2)
            .map(|_| {
                let (addresses, sender) = (&addresses, sender.clone());
                scope.spawn(move || add_one_by_one(addresses, &sender))
            })
            .collect();
        let wait = || (0..100).for_each(|_| acknowledgements.recv().expect("adders go on"));
        wait();
        daemons.remove(primary).kill();
        wait();
        drop(acknowledgements);
        adders.into_iter().map(|adder| adder.join().expect("no call failed")).sum()
    });
    for daemon in &daemons {
        assert_eq!(out(&daemon.call(&["counter", "get"])), format!("{acknowledged}\n"));
    }
}

#[test]
fn a_majority_that_may_have_forgotten_says_for_whom_it_waits() {
    let rings = steadfast::free_ring_addresses(3);
    // Without a data_dir nobody knows that this is the first start.
    let daemons = [Daemon::member(1, &rings), Daemon::member(2, &rings)];
    for daemon in &daemons {
        daemon.wait_for("STATUS=no quorum: waiting for n3;");
        let output = program().args(["status", "--config"]).arg(daemon.config()).output();
        let text = out(&output.expect("the program can be run"));
        assert!(text.contains("! no quorum: waiting for n3; 2 of 3 nodes are here"), "{text}");
    }
    for daemon in daemons {
        let (code, log) = daemon.end(Signal::TERM);
        assert_eq!(code, Some(0), "{log}");
        assert!(log.contains("no quorum: waiting for n3;"), "{log}");
    }
}

/// Adds until nobody listens; returns how many calls were acknowledged.
fn add_one_by_one(addresses: &[String], sender: &Sender<()>) -> u64 {
    let client = Client::connect(addresses).expect("the nodes are up");
    for acknowledged in 1.. {
        let (method, deadline) = (MethodId::of("add"), Duration::from_secs(20));
        client
            .call(Invocation::new("counter", method).json().body("[1]").within(deadline))
            .expect("two nodes are up");
        if sender.send(()).is_err() {
            return acknowledged;
        }
    }
    unreachable!("somebody stops listening before the numbers end")
}

#[test]
fn the_doctor_finds_an_address_that_is_not_this_hosts() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("node.toml");
    // TEST-NET-1: nobody's.
    let text = "insecure = true\n[[nodes]]\nid = 1\nring = \"192.0.2.77:7201\"\n";
    std::fs::write(&path, format!("node = 1\n{text}")).expect("written");
    let path = path.to_str().expect("text");
    let output = run(&["doctor", "--quick", "--json", "--config", path]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: serde_json::Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(report["worst"], "failure");
    let findings = report["findings"].as_array().expect("a list");
    let address = findings.iter().find(|finding| finding["name"] == "own address");
    let address = address.unwrap_or_else(|| panic!("{findings:?}"));
    assert!(address["remedy"].as_str().expect("it says what to do").contains("[[nodes]]"));
}
