//! Replicas in processes of their own, as users run them: by the program's commands, under load, in
//! another language.

mod daemon;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use daemon::{Daemon, program, run};
use fixture::cluster::wait_for_replicas;
use fixture::{Stops, cluster};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use steadfast::{Client, HostOptions, Node, NodeConfig, NodeId, ProgramConfig};

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

/// The built-in counter, as its clients know it.
#[steadfast::service]
trait Counter {
    fn add(&mut self, n: u64) -> Result<u64, String>;
    fn get(&self) -> u64;
}

fn kill(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process");
    kill_process(pid, Signal::KILL).expect("it runs");
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A command that asks this daemon.
fn ask(daemon: &Daemon, command: &[&str], rest: &[&str]) -> Output {
    let mut all = program();
    all.args(command).arg("--config").arg(daemon.config()).args(rest);
    all.output().expect("the program can be run")
}

fn programs(daemon: &Daemon) -> Vec<Value> {
    let text = out(&ask(daemon, &["programs", "--json"], &[]));
    serde_json::from_str(&text).expect("a list")
}

/// The only program, once it is as wanted.
fn wait_for(daemon: &Daemon, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let one = programs(daemon).pop().expect("there is one");
        if wanted(&one) {
            return one;
        }
        assert!(Instant::now() < deadline, "{one:#}");
    }
}

#[test]
fn a_program_is_run_looked_at_killed_and_stopped_by_hand() {
    let daemon = Daemon::start();
    let serve = ["--", PROGRAM, "replica", "counter"];
    let text = out(&ask(&daemon, &["run", "--group", "own", "--ack", "all"], &serve));
    assert!(text.starts_with("serving: group own, process "), "{text}");
    assert_eq!(out(&daemon.call(&["own", "add", "[5]"])), "5\n");

    let one = programs(&daemon).remove(0);
    assert_eq!((&one["state"], &one["restarts"]), (&"attached".into(), &0.into()));
    kill(one["pid"].as_u64().expect("it runs"));
    let one = wait_for(&daemon, |one| one["restarts"] == 1 && one["joined"] == true);
    assert_eq!(one["last_exit"], "signal: 9 (SIGKILL)");
    let text = out(&ask(&daemon, &["programs"], &[]));
    assert!(text.contains("attached") && text.contains("1 restart, last end: signal: 9"), "{text}");
    // It was the group's only replica: its node has kept what the sum follows from.
    assert_eq!(out(&daemon.call(&["own", "add", "[6]"])), "11\n");

    let again = ask(&daemon, &["run", "--group", "own"], &serve);
    assert!(refused(&again).contains("steadfast programs stop own"));
    let built_in = ask(&daemon, &["run", "--group", "counter"], &serve);
    assert!(refused(&built_in).contains("hosts a replica of this group already"));
    let text = out(&ask(&daemon, &["programs", "stop", "own"], &[]));
    assert_eq!(text, "the program of group own has ended\n");
    assert!(
        refused(&ask(&daemon, &["programs", "stop", "own"], &[])).contains("`steadfast programs`")
    );
    assert!(programs(&daemon).is_empty());
}

#[test]
fn what_does_not_serve_is_explained() {
    let daemon = Daemon::start();
    let cases: [(&[&str], &str); 4] = [
        (&["--", "sh", "-c", "echo cannot find my data; exit 3"], "cannot find my data"),
        (&["--", "./no-such-program"], "no-such-program (in folder "),
        (&["--", "true"], "steadfast::attach"),
        (&["--", PROGRAM, "replica", "--help"], "A node starts this program, not a person"),
    ];
    for (command, expected) in cases {
        let text = refused(&ask(&daemon, &["run", "--group", "own"], command));
        assert!(text.contains(expected), "{command:?}: {text}");
    }
    let by_hand = refused(&run(&["replica", "counter"]));
    assert!(by_hand.contains("has to be started by a node"), "{by_hand}");
    let nowhere = ["run", "--group", "own", "--admin", "/nowhere/node.sock", "--", "true"];
    assert!(refused(&run(&nowhere)).contains("no node answers at /nowhere/node.sock"));
    let wrong = run(&["run", "--group", "own", "--ack", "two", "--", "true"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn a_replica_in_python_serves_and_is_given_the_state() {
    let there =
        Command::new("python3").arg("--version").output().is_ok_and(|it| it.status.success());
    if !there {
        println!("SKIPPED: there is no python3 here");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/attach/counter.py");
    let script = script.to_str().expect("text");
    let rings = steadfast::free_ring_addresses(2);
    let daemons = [1, 2].map(|id| Daemon::plain_member(id, &rings));
    for daemon in &daemons {
        daemon.wait_for("READY=1");
        let text = out(&ask(daemon, &["run", "--group", "python"], &["--", "python3", script]));
        assert!(text.starts_with("serving: "), "{text}");
        assert_eq!(
            out(&daemon.call(&["python", "add", "[5]"])).trim().parse::<u64>().expect("a sum") % 5,
            0
        );
    }
    let text = refused(&daemons[0].call(&["python", "reset", "[]"]));
    assert!(text.contains("no such method: this service has add(n) and get()"), "{text}");
    let text = refused(&daemons[0].call(&["python", "add", "[1, 2]"]));
    assert!(text.contains("positional argument"), "{text}");
    // The second one was given the state of the first, and serves when that is gone.
    out(&ask(&daemons[0], &["programs", "stop", "python"], &[]));
    assert_eq!(out(&daemons[1].call(&["python", "get"])), "10\n");
}

fn member(id: u32, rings: &[std::net::SocketAddr], folder: &Path) -> Node {
    let mut config = NodeConfig::member(NodeId(id), rings);
    config.admin = Some(folder.join(format!("{id}.sock")));
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    Node::start(config).expect("free ports")
}

#[test]
fn no_acknowledged_call_is_lost_or_repeated_when_programs_are_killed_under_load() {
    let rings = steadfast::free_ring_addresses(3);
    let folder = tempfile::tempdir().expect("a folder");
    let nodes: Vec<Node> = (1..=3).map(|id| member(id, &rings, folder.path())).collect();
    let command = [PROGRAM, "replica", "counter"].map(String::from).to_vec();
    let counter = ProgramConfig { group: "counter".into(), command, ..ProgramConfig::default() };
    for node in &nodes[..2] {
        node.run(counter.clone()).expect("it serves");
    }
    // Node 3 hosts its replica in its own process: all replicas must answer the same.
    nodes[2]
        .host("counter", HostOptions::default(), || CounterService::new(Tally::default()))
        .expect("it can be hosted");
    wait_for_replicas(&nodes[0], "counter", 3);

    let addresses = cluster::addresses(&nodes);
    let done = AtomicBool::new(false);
    let acknowledged: u64 = std::thread::scope(|scope| {
        let adders: Vec<_> = (0..4)
            .map(|_| {
                let (addresses, done) = (addresses.clone(), &done);
                scope.spawn(move || {
                    let client = Client::connect(addresses).expect("nodes are there");
                    let counter = CounterClient::new(&client, "counter").within(TIMEOUT);
                    let (mut sum, mut last) = (0, 0);
                    while !done.load(Ordering::Relaxed) {
                        let now = counter.add(1).expect("every call is answered");
                        assert!(now > last, "the sum goes up: {last}, then {now}");
                        (sum, last) = (sum + 1, now);
                    }
                    sum
                })
            })
            .collect();
        let running = Stops(&done);
        for round in 0..6 {
            let node = &nodes[round % 2];
            let program = node.status().programs.remove(0);
            kill(program.pid.expect("it runs").into());
            cluster::wait_for(node, "counter", |_| {
                let now = node.status().programs.remove(0);
                now.restarts > program.restarts && now.joined
            });
            wait_for_replicas(node, "counter", 3);
        }
        drop(running);
        adders.into_iter().map(|adder| adder.join().expect("it does not panic")).sum()
    });
    let client = Client::connect(addresses).expect("nodes are there");
    let sum = CounterClient::new(&client, "counter").within(TIMEOUT).get().expect("it answers");
    assert_eq!(sum, acknowledged, "each acknowledged call was executed once");
    let states = cluster::states(&nodes, "counter");
    assert!(states.iter().all(|state| *state == states[0]), "{states:?}");
    assert!(nodes[..2].iter().all(|node| node.status().counters.programs_lost == 3));
}

/// The program's own counter, for a replica in this process.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Tally(u64);

impl Counter for Tally {
    fn add(&mut self, n: u64) -> Result<u64, String> {
        self.0 = self.0.checked_add(n).ok_or("overflow")?;
        Ok(self.0)
    }

    fn get(&self) -> u64 {
        self.0
    }
}

#[test]
fn a_program_of_the_configuration_comes_and_goes_with_its_node() {
    let directory = tempfile::tempdir().expect("a directory");
    let config: PathBuf = directory.path().join("node.toml");
    let text = format!(
        "node = 1\nadmin = \"node.sock\"\nlisten.client = \"127.0.0.1:0\"\n\
         nodes = [{{ id = 1, ring = \"127.0.0.1:0\" }}]\n[[program]]\ngroup = \"own\"\n\
         command = [\"{PROGRAM}\", \"replica\", \"counter\"]\n"
    );
    std::fs::write(&config, text).expect("written");
    let daemon = Daemon::of(&config);
    daemon.wait_for("STATUS=1 of 1 replicas have the state, 1 primary");
    let (code, log) = daemon.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(!directory.path().join("node.sock.d").exists(), "nothing is left behind");
}
