//! Typed clients and replicas in another language; contracts, as the program shows and checks them.

mod daemon;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use daemon::{Daemon, run};
use serde::{Deserialize, Serialize};
use steadfast::{
    AsyncClient, CallError, Client, Context, Contract, HostOptions, Node, NodeConfig,
    ProgramConfig, Reading, Refusal,
};

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The counter in Python, as its clients know it.
#[steadfast::service]
trait Counter {
    /// Adds n and returns the sum.
    fn add(&mut self, n: i64) -> Result<i64, String>;
    /// The sum.
    fn get(&self) -> i64;
    fn missing(&self);
}

/// Calls the counter from a handler.
#[steadfast::service]
trait Front {
    fn add_twice(&mut self, context: &Context, n: i64) -> Result<i64, String>;
}

#[derive(Default, Serialize, Deserialize)]
struct Desk;

impl Front for Desk {
    fn add_twice(&mut self, context: &Context, n: i64) -> Result<i64, String> {
        let counter = CounterNested::new(context, "python");
        match counter.add(n) {
            Err(CallError::Refused { refusal: Refusal::BadArguments, .. }) => {}
            other => return Err(format!("postcard was not refused: {other:?}")),
        }
        let counter = counter.in_json();
        counter.add(n).and_then(|_| counter.add(n)).map_err(|error| error.to_string())
    }
}

/// The command of the counter in Python, if there is a python3.
fn python() -> Option<Vec<String>> {
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|it| it.status.success()) {
        println!("SKIPPED: there is no python3 here");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/attach/counter.py");
    Some(vec!["python3".to_owned(), script.to_str().expect("text").to_owned()])
}

/// A node with the counter in Python and a desk in Rust.
fn node(command: Vec<String>, folder: &Path) -> Node {
    let config = NodeConfig { admin: Some(folder.join("node.sock")), ..NodeConfig::single() };
    let node = Node::start(config).expect("free ports");
    let counter = ProgramConfig { group: "python".into(), command, ..ProgramConfig::default() };
    node.run(counter).expect("it serves");
    node.host("front", HostOptions::default(), || FrontService::new(Desk)).expect("a good name");
    for group in ["python", "front"] {
        fixture::cluster::wait_for_replicas(&node, group, 1);
    }
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_clients_call_a_replica_in_python() {
    let Some(command) = python() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(command, folder.path());
    let address = node.client_address().expect("it takes clients");

    let client = Client::connect([address]).expect("up");
    let counter = CounterClient::new(&client, "python").within(TIMEOUT);
    // The first call finds out that the replica takes JSON alone.
    assert_eq!(counter.add(5), Ok(5));
    assert_eq!(counter.get(), Ok(5));
    let Err(CallError::Service(full)) = counter.add(i64::MAX) else { panic!("it does not fit") };
    assert!(full.contains("stands at 5"), "{full}");
    assert_eq!(counter.reading(Reading::Stale(Duration::from_secs(1))).get(), Ok(5));
    let missing = counter.missing();
    assert!(
        matches!(missing, Err(CallError::Refused { refusal: Refusal::NoSuchMethod, .. })),
        "{missing:?}"
    );

    let client = AsyncClient::connect([address]).await.expect("up");
    let counter = CounterAsyncClient::new(&client, "python").within(TIMEOUT);
    assert_eq!(counter.add(-2).await, Ok(3));
    assert_eq!(counter.get().await, Ok(3));
    let front = FrontAsyncClient::new(&client, "front").within(TIMEOUT);
    assert_eq!(front.add_twice(10).await, Ok(23));

    let contract = Contract::read(client.call(Contract::ask("python").within(TIMEOUT)).await);
    let contract = contract.expect("it tells");
    assert_eq!(contract.encodings, ["json"]);
    let signatures: Vec<String> = contract.methods.iter().map(|it| it.signature()).collect();
    assert_eq!(signatures, ["add(n: i64) -> Result<i64, String>", "get() -> i64"]);
    assert_eq!(
        CounterService::<()>::contract().breaks(&contract),
        ["the encoding named is gone", "the encoding postcard is gone", "missing is gone"]
    );
    node.stop().expect("it stops");
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The standard error of a command that must have ended with this code.
fn failure(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "a failure has no result: {output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// Describes a group of the daemon.
fn describe(at: &str, rest: &[&str]) -> Output {
    run(&[&["describe", "--deadline", "20s", "--at", at], rest].concat())
}

/// A file with this text.
fn kept(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("kept.json");
    std::fs::write(&path, text).expect("written");
    path
}

#[test]
fn a_group_is_described_for_people_and_programs() {
    let daemon = Daemon::start();
    let at = daemon.address();
    let text = out(&describe(&at, &["counter"]));
    for part in ["\nadd(n: u64) -> Result<u64, CounterError>\n", "\nget() -> u64   (reads)\n"] {
        assert!(text.contains(part), "{text}");
    }
    let json = out(&describe(&at, &["counter", "--json"]));
    let contract = Contract::from_json(json.as_bytes()).expect("it is a contract");
    assert_eq!(contract.service, "Counter");
    assert!(contract.types.contains_key("CounterError"));
    let echo = out(&describe(&at, &["echo"]));
    assert!(echo.contains("whatever the method"), "{echo}");

    let unknown = failure(&describe(&at, &["nothing"]), 1);
    assert!(unknown.contains("steadfast status"), "{unknown}");
    let usage = failure(&run(&["describe", "counter"]), 2);
    assert!(usage.contains("--at HOST:PORT"), "{usage}");
    failure(&describe(&at, &["counter", "--json", "--check", "x.json"]), 2);
}

#[test]
fn a_check_refuses_what_breaks_callers() {
    let daemon = Daemon::start();
    let at = daemon.address();
    let folder = tempfile::tempdir().expect("a folder");
    let json = out(&describe(&at, &["counter", "--json"]));
    let check = |text: &str| {
        let path = kept(folder.path(), text);
        describe(&at, &["counter", "--check", path.to_str().expect("text")])
    };
    assert!(out(&check(&json)).contains("nothing breaks"));
    let older = json.replace("\"u64\"", "\"u32\"").replace("\"get\"", "\"sum\"");
    let why = failure(&check(&older), 1);
    for change in ["\n  add: argument n was u32, is u64\n", "\n  sum is gone\n"] {
        assert!(why.contains(change), "{why}");
    }
    for wrong in ["", "[]", &" ".repeat(1 << 20)] {
        let why = failure(&check(wrong), 2);
        assert!(why.contains("--json` prints a contract to keep"), "{why}");
    }
    failure(&describe(&at, &["counter", "--check", "/nowhere/kept.json"]), 2);
}

#[test]
fn a_replica_in_python_is_described_and_called_by_name() {
    let Some(command) = python() else { return };
    let daemon = Daemon::of_cluster("languages");
    let config = daemon.config();
    let config = config.to_str().expect("text");
    let serve: Vec<&str> = command.iter().map(String::as_str).collect();
    let start = ["run", "--group", "python", "--config", config, "--"];
    out(&run(&[&start[..], &serve].concat()));
    let text = out(&describe(&daemon.address(), &["python"]));
    assert!(text.starts_with("Counter, in json\n"), "{text}");
    assert!(text.contains("get() -> i64   (reads)"), "{text}");
    assert_eq!(out(&daemon.call(&["python", "add", "{\"n\": 5}"])), "5\n");
    assert_eq!(out(&daemon.call(&["python", "add", "[2]"])), "7\n");
    assert!(failure(&daemon.call(&["python", "add", "{\"m\": 5}"]), 1).contains("'m'"));
    assert!(failure(&daemon.call(&["python", "add", "[1.5]"]), 1).contains("whole number"));
}
