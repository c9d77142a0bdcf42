//! Groups on disk: every node's process is killed at once, under load, and all answered calls
//! survive.

mod daemon;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use daemon::{Daemon, program};
use steadfast::{Client, Invocation, MethodId};

/// Longer than anything here may take: a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

const NODES: usize = 3;

/// Times that every node is killed and restarted, each after [`CALLS`] answered calls.
const LIVES: u64 = 5;
const CALLS: u64 = 40;

fn configurations(folder: &Path, rings: &[SocketAddr], clients: &[SocketAddr]) -> Vec<PathBuf> {
    let node = |(id, ring)| format!("[[nodes]]\nid = {id}\nring = \"{ring}\"\n");
    let nodes: String = (1..).zip(rings).map(node).collect();
    let one = |(id, client)| {
        let here = folder.join(format!("node-{id}"));
        std::fs::create_dir(&here).expect("a new folder");
        let text = format!(
            "node = {id}\ndata_dir = \"data\"\nadmin = \"node.sock\"\nlisten.client = \"{client}\"\n\
             storage.folder = \"store\"\n{nodes}\
             [ring]\ntoken_timeout_ms = 60000\ntoken_timeout_max_ms = 60000\n\
             [[replica]]\ngroup = \"counter\"\nservice = \"counter\"\ndurability = \"disk\"\n",
        );
        let path = here.join("node.toml");
        std::fs::write(&path, text).expect("written");
        path
    };
    (1..).zip(clients).map(one).collect()
}

/// Adds 1, again and again, one call after the other; tells each sum. Ends when nobody listens.
fn count(addresses: Vec<SocketAddr>) -> Receiver<u64> {
    let (told, sums) = channel();
    thread::spawn(move || {
        let client = Client::connect(&addresses).expect("one of the nodes is up");
        loop {
            let add = MethodId::of("add");
            let sum =
                client.call(Invocation::new("counter", add).json().body("[1]").within(TIMEOUT));
            let sum = sum.expect("answered when the nodes are back");
            let sum: u64 = std::str::from_utf8(&sum).expect("JSON").parse().expect("a number");
            if told.send(sum).is_err() {
                return;
            }
        }
    });
    sums
}

#[test]
fn nodes_that_are_killed_all_at_once_have_all_that_was_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let addresses = steadfast::free_ring_addresses(2 * NODES);
    let (rings, clients) = addresses.split_at(NODES);
    let configs = configurations(folder.path(), rings, clients);
    let mut daemons: Vec<Daemon> = configs.iter().map(|config| Daemon::of(config)).collect();
    daemons.iter().for_each(|daemon| daemon.wait_for("READY=1"));
    let sums = count(clients.to_vec());
    let mut last = 0;
    for _ in 0..LIVES {
        for _ in 0..CALLS {
            let sum = sums.recv_timeout(TIMEOUT).expect("the client goes on");
            // No answered call is lost and none is executed twice, whichever nodes died in between.
            assert_eq!(sum, last + 1);
            last = sum;
        }
        daemons.drain(..).for_each(Daemon::kill);
        daemons = configs.iter().map(|config| Daemon::of(config)).collect();
    }
    let sum = sums.recv_timeout(TIMEOUT).expect("the client goes on");
    assert_eq!(sum, last + 1);
    drop(sums);
    daemons[0].wait_for("READY=1");
    let status = program().args(["status", "--config"]).arg(&configs[0]).output().expect("it runs");
    let text = String::from_utf8(status.stdout.clone()).expect("text");
    assert!(text.contains("storage in "), "{status:?}");
}

#[test]
fn a_group_on_disk_needs_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("node.toml");
    let text = "node = 1\nnodes = [{ id = 1, ring = \"127.0.0.1:0\" }]\n\
                [[replica]]\ngroup = \"counter\"\nservice = \"counter\"\ndurability = \"disk\"\n";
    std::fs::write(&config, text).expect("written");
    let output = program().args(["node", "--config"]).arg(&config).output().expect("it runs");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && text.contains("[storage]"), "{text}");
}
