//! Groups' states in files, as an operator handles them: by the program's commands.

mod daemon;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use daemon::{Daemon, program, run};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here may take.
const TIMEOUT: Duration = Duration::from_secs(60);

const PROGRAM: &str = env!("CARGO_BIN_EXE_steadfast");

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// `steadfast state ...`, asked of this daemon.
fn state(daemon: &Daemon, arguments: &[&str]) -> Output {
    let mut all = program();
    all.arg("state").args(arguments).arg("--config").arg(daemon.config());
    all.output().expect("the program can be run")
}

fn show(path: &Path) -> Output {
    run(&["state", "show", path.to_str().expect("text"), "--json"])
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&out(output)).expect("one JSON object")
}

/// Waits until all nodes know so many replicas of the counter with the state.
fn wait_for_counter(daemons: &[Daemon], count: usize) {
    let end = Instant::now() + TIMEOUT;
    let synced = |status: &Value| {
        let groups = status["groups"].as_array().expect("a list").iter();
        let counter = groups.filter(|group| group["name"] == "counter").flat_map(|group| {
            group["replicas"].as_array().expect("a list").iter().filter(|it| it["synced"] == true)
        });
        counter.count()
    };
    for daemon in daemons {
        while synced(&daemon.status()) != count {
            assert!(Instant::now() < end, "{:#}", daemon.status());
        }
    }
}

/// Two nodes with the counter, which stands at 12, one without.
struct Plant {
    daemons: Vec<Daemon>,
    folder: TempDir,
}

impl Plant {
    fn start() -> Plant {
        let rings = steadfast::free_ring_addresses(3);
        let daemons = vec![
            Daemon::member(1, &rings),
            Daemon::member(2, &rings),
            Daemon::plain_member(3, &rings),
        ];
        daemons.iter().for_each(|daemon| daemon.wait_for("READY=1"));
        let plant = Plant { daemons, folder: tempfile::tempdir().expect("a folder") };
        wait_for_counter(&plant.daemons, 2);
        assert_eq!(out(&plant.daemons[0].call(&["counter", "add", "[5]"])), "5\n");
        assert_eq!(out(&plant.daemons[0].call(&["counter", "add", "[7]"])), "12\n");
        plant
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn saved(&self) -> PathBuf {
        let path = self.path("counter.state");
        let text = out(&state(&self.daemons[0], &["save", "counter", text(&path)]));
        assert!(text.starts_with("counter: ") && text.contains(" 2 calls, 2 sessions "), "{text}");
        path
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[test]
fn a_group_is_saved_and_goes_on_in_a_new_cluster() {
    let plant = Plant::start();
    let file = plant.saved();
    let shown = json(&show(&file));
    let told = ["group", "cluster", "style", "ack", "durability", "form"].map(|key| &shown[key]);
    assert_eq!(told, ["counter", "steadfast", "semi-active", "majority", "memory", "state"]);
    assert_eq!((&shown["executed"], &shown["sessions"]), (&2.into(), &2.into()));
    assert!(out(&run(&["state", "show", text(&file)])).contains("counter of cluster steadfast"));

    // It lives.
    let why = refused(&state(&plant.daemons[2], &["restore", "counter", text(&file)]));
    assert!(why.contains("has executed calls") && why.contains("--replace"), "{why}");
    assert_eq!(out(&plant.daemons[0].call(&["counter", "add", "[100]"])), "112\n");
    let restored =
        state(&plant.daemons[2], &["restore", "counter", text(&file), "--replace", "--json"]);
    assert_eq!(json(&restored)["node"], 3);
    assert_eq!(out(&plant.daemons[0].call(&["counter", "get"])), "12\n");
    drop(plant.daemons);

    // Nobody hosts it yet.
    let fresh = Daemon::of_cluster("depot");
    let told = out(&state(&fresh, &["restore", "counter", text(&file)]));
    assert!(told.contains("when its first replica is hosted; only n1 has it until then"), "{told}");
    assert!(
        status(&fresh).contains("group counter will begin with the restored state that n1 has")
    );
    let mut host = program();
    host.args(["run", "--group", "counter", "--config"]).arg(fresh.config());
    out(&host.args(["--", PROGRAM, "replica", "counter"]).output().expect("it can be run"));
    assert_eq!(out(&fresh.call(&["counter", "add", "[1]"])), "13\n");
    let why = refused(&state(&fresh, &["discard", "counter"]));
    assert!(why.contains("no state waits for this group"), "{why}");
}

fn status(daemon: &Daemon) -> String {
    let mut status = program();
    status.args(["status", "--config"]).arg(daemon.config());
    out(&status.output().expect("the program can be run"))
}

#[test]
fn all_groups_are_saved_and_those_that_are_not_are_named() {
    let plant = Plant::start();
    let night = plant.path("nightly");
    let output = state(&plant.daemons[0], &["save", "--all", text(&night)]);
    assert!(out(&output).starts_with("counter: "), "{output:?}");
    json(&show(&night.join("counter.state")));

    // A node without a replica names those that have one; with one of them it does not need its
    // own.
    let other = plant.path("other");
    let output = state(&plant.daemons[2], &["save", "--all", text(&other)]);
    let why = refused(&output);
    assert!(why.contains("ask a node that has, n1, n2"), "{why}");
    assert!(why.ends_with("error: 1 of 1 groups are not saved: counter\n"), "{why}");
    let socket = plant.daemons[1].config().with_file_name("node.sock");
    let all = ["save", "--all", text(&other), "--also", text(&socket), "--json"];
    assert_eq!(json(&state(&plant.daemons[2], &all))["node"], 2);
}

#[test]
fn a_file_that_is_not_what_was_saved_is_refused_with_what_to_do() {
    let plant = Plant::start();
    let file = plant.saved();
    let whole = fs::read(&file).expect("it is there");
    let spoil = |place: usize| {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        bytes
    };
    let mut later = whole.clone();
    later[8] = 2;
    for (bytes, remedy) in [
        (whole[..whole.len() / 2].to_vec(), "was cut short"),
        (Vec::new(), "was cut short"),
        (spoil(0), "give a file that `steadfast state save` wrote"),
        (spoil(16), "the file's head is damaged"),
        (spoil(whole.len() - 1), "use another copy of it, or an older file"),
        (later, "use the program that saved it, or a newer one"),
    ] {
        let path = plant.path("spoilt.state");
        fs::write(&path, bytes).expect("written");
        for output in [show(&path), state(&plant.daemons[0], &["restore", "counter", text(&path)])]
        {
            let why = refused(&output);
            assert!(why.contains(remedy), "{why}");
        }
    }
    let why = refused(&state(&plant.daemons[0], &["restore", "clock", text(&file)]));
    assert!(why.contains("the state of group counter, not of clock"), "{why}");
    let why = refused(&show(&plant.path("none")));
    assert!(why.contains("cannot be read"), "{why}");

    // If the backup cannot be written, the old file stays.
    let taken = plant.path("counter.state/inside");
    let why = refused(&state(&plant.daemons[0], &["save", "counter", text(&taken)]));
    assert!(why.contains("cannot write"), "{why}");
    assert_eq!(fs::read(&file).expect("it is there"), whole);
    let usage = state(&plant.daemons[0], &["save", "counter"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}
