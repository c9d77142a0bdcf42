//! A group's state is saved under load, over real sockets, and groups begin with it.

mod support;

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use steadfast_node::admin::{AdminError, Client, digest};
use steadfast_node::{
    Backup, Config, HostOptions, Node, RestoreError, SaveError, Status, free_ring_addresses,
    write_backup,
};
use support::{APPEND, Caller, Journal, TIMEOUT, synced, wait_for};
use tempfile::TempDir;
use wire::client::Outcome;
use wire::ordered::{Durability, GroupOptions, Style};
use wire::{ClientId, NodeId};

/// The client that calls all the time.
const LOAD: ClientId = ClientId(7);
/// The client that retries.
const RETRIES: ClientId = ClientId(99);

/// Three nodes with admin sockets and, each, room for groups on disk.
struct Cluster {
    nodes: Vec<Node>,
    folder: TempDir,
}

impl Cluster {
    fn start(name: &str) -> Cluster {
        let rings = free_ring_addresses(3);
        let folder = tempfile::tempdir().unwrap();
        let node = |id: u32| {
            let mut config = Config::member(NodeId(id), &rings);
            config.cluster = name.into();
            config.admin = Some(folder.path().join(format!("{id}.sock")));
            config.data_dir = Some(folder.path().join(format!("data-{id}")));
            config.storage = Some(folder.path().join(format!("store-{id}")));
            // That the machine is busy is no fault.
            config.ring.timing.token_timeout = 2 * TIMEOUT;
            config.ring.timing.token_timeout_max = 2 * TIMEOUT;
            Node::start(config).unwrap()
        };
        Cluster { nodes: (1..=3).map(node).collect(), folder }
    }

    fn host(&self, group: GroupOptions) {
        for (index, node) in self.nodes.iter().enumerate() {
            let options = HostOptions { group, ..HostOptions::default() };
            node.host("journal", options, Journal::default).unwrap();
            self.all("a replica more", |status| synced(status, "journal", index + 1));
        }
    }

    fn end(&self) {
        for node in &self.nodes {
            node.unhost("journal").unwrap();
        }
        // No event tells it.
        let deadline = Instant::now() + TIMEOUT;
        let ended = |node: &Node| node.status().groups.iter().all(|it| it.name != "journal");
        while !self.nodes.iter().all(ended) {
            assert!(Instant::now() < deadline, "the group ends with its last replica");
            thread::yield_now();
        }
    }

    fn all(&self, what: &str, wanted: impl Fn(&Status) -> bool) {
        for node in &self.nodes {
            wait_for(node, what, &wanted);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An administrator at this node.
    fn admin(&self, id: u32) -> Client {
        Client::connect(self.path(&format!("{id}.sock"))).unwrap()
    }

    fn primary(&self) -> SocketAddr {
        let primary = self.nodes[0].status().groups[0].primary.expect("there is a primary").node;
        let node = self.nodes.iter().find(|node| node.id() == primary).unwrap();
        node.client_address().unwrap()
    }
}

/// Appends until it is told to stop; how often it was answered.
fn load(address: SocketAddr, stop: &AtomicBool) -> u64 {
    let mut caller = Caller::connect(address, LOAD);
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let reply = caller.call("journal", number, APPEND, b"x");
        assert!(matches!(reply.outcome, Outcome::Ok(_)), "{reply:?}");
    }
    number
}

/// Saved while it is called, between the second and the third call of one client; the file, and how
/// much of the load is in it.
fn save_under_load(cluster: &Cluster) -> (Vec<u8>, usize) {
    let address = cluster.primary();
    let mut caller = Caller::connect(address, RETRIES);
    caller.expect("journal", 1, b"abc", "3");
    caller.expect("journal", 2, b"de", "5");
    let stop = AtomicBool::new(false);
    let file = thread::scope(|scope| {
        let loading = scope.spawn(|| load(address, &stop));
        // It is under way: there is something between the calls above and what is saved.
        cluster.all("some load", |status| status.groups[0].executed.is_some_and(|it| it > 20));
        let file = cluster.admin(2).save("journal");
        cluster.all("more load", |status| status.groups[0].executed.is_some_and(|it| it > 40));
        stop.store(true, Ordering::Relaxed);
        assert!(loading.join().unwrap() > 30);
        file.unwrap()
    });
    let reply = caller.call("journal", 3, APPEND, b"never");
    assert!(matches!(reply.outcome, Outcome::Ok(_)), "{reply:?}");
    let (backup, content) = Backup::decode(&Bytes::copy_from_slice(&file)).unwrap();
    assert_eq!((&*backup.group, backup.node), ("journal", NodeId(2)));
    assert_eq!(content.sessions, 2);
    let service = content.service.unwrap();
    assert!(service.starts_with(b"abcde") && service[5..].iter().all(|byte| *byte == b'x'));
    assert_eq!(content.executed, 2 + service[5..].len() as u64);
    (file, service.len())
}

/// All replicas have what was saved; what was answered before that is not executed again, and what
/// came after was never there.
fn goes_on(cluster: &Cluster, file: &[u8], saved: usize) {
    let (_, content) = Backup::decode(&Bytes::copy_from_slice(file)).unwrap();
    let expected = digest(&content.service.unwrap());
    cluster.all("three replicas", |status| synced(status, "journal", 3));
    for id in 1..=3 {
        let answer = cluster.admin(id).digest("journal").unwrap();
        assert_eq!((answer.digest, answer.bytes), (expected.clone(), saved), "at n{id}");
    }
    let mut caller = Caller::connect(cluster.primary(), RETRIES);
    caller.expect("journal", 2, b"de", "5");
    caller.expect("journal", 3, b"f", &(saved + 1).to_string());
    for node in &cluster.nodes {
        wait_for(node, "one more call", |status| {
            status.groups[0].executed == Some(content.executed + 1)
        });
        assert_eq!(node.state("journal").unwrap().len(), saved + 1);
    }
}

fn saved_and_restored(group: GroupOptions) {
    let cluster = Cluster::start("plant");
    cluster.host(group);
    let (file, saved) = save_under_load(&cluster);

    let refused = cluster.admin(1).restore("journal", &file, false).unwrap_err();
    assert!(refused.to_string().contains("--replace"), "{refused}");
    cluster.end();
    cluster.admin(3).restore("journal", &file, false).unwrap();
    cluster.host(group);
    goes_on(&cluster, &file, saved);

    // The new one has replicas already, which nobody has called.
    let other = Cluster::start("depot");
    other.host(group);
    other.admin(2).restore("journal", &file, false).unwrap();
    goes_on(&other, &file, saved);
}

#[test]
fn a_group_in_memory_is_saved_under_load_and_restored_here_and_elsewhere() {
    saved_and_restored(GroupOptions::default());
}

#[test]
fn a_group_on_disk_is_saved_under_load_and_restored_here_and_elsewhere() {
    let durability = Durability::Disk;
    saved_and_restored(GroupOptions { durability, ..GroupOptions::default() });
}

#[test]
fn a_warm_passive_group_is_saved_under_load_and_restored_here_and_elsewhere() {
    let style = Style::WarmPassive;
    saved_and_restored(GroupOptions { style, ..GroupOptions::default() });
}

#[test]
fn what_is_no_file_of_the_group_changes_nothing() {
    let cluster = Cluster::start("plant");
    let node = &cluster.nodes[0];
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    wait_for(node, "a replica", |status| synced(status, "journal", 1));
    let backup = node.save("journal").unwrap();
    let file = backup.encode().to_vec();
    let refuse = |group: &str, file: &[u8], what: &str| {
        let error = cluster.admin(1).restore(group, file, false).unwrap_err();
        let AdminError::Refused(why) = error else { panic!("{error}") };
        assert!(why.contains(what), "{why}");
    };
    refuse("diary", &file, "the state of group journal");
    refuse("journal", &file[..file.len() - 1], "cut short");
    refuse("journal", b"", "cut short");
    refuse("journal", b"#!/bin/sh", "wrong magic number");
    for (place, what) in [(8, "a newer one"), (20, "head is damaged"), (file.len() - 1, "state")] {
        let mut bytes = file.clone();
        bytes[place] ^= 0x40;
        refuse("journal", &bytes, what);
    }
    let system = Backup { group: "steadfast.manager".into(), ..backup };
    refuse("steadfast.manager", &system.encode(), "deploy the services again");

    // The sender may die meanwhile.
    let mut dies = UnixStream::connect(cluster.path("1.sock")).unwrap();
    dies.write_all(b"{\"restore\":{\"group\":\"journal\",\"bytes\":1000000}}\nSFBK").unwrap();
    drop(dies);
    assert_eq!(node.status().groups[0].depositor, None);
    let deadline = Instant::now() + TIMEOUT;
    // Until the node has noticed that.
    while let Err(error) = cluster.admin(1).restore("journal", &file, false) {
        assert!(error.to_string().contains("another file is being restored"), "{error}");
        assert!(Instant::now() < deadline, "one file at a time, and this is the only one");
    }
}

#[test]
fn whoever_has_no_replica_says_who_has() {
    let cluster = Cluster::start("plant");
    cluster.nodes[0].host("journal", HostOptions::default(), Journal::default).unwrap();
    cluster.all("a replica", |status| synced(status, "journal", 1));
    let error = cluster.nodes[1].save("journal").unwrap_err();
    assert!(matches!(error, SaveError::Engine(_)) && error.to_string().ends_with("n1"), "{error}");
    let backup = cluster.nodes[0].save("journal").unwrap();
    let nameless = Backup { group: String::new(), ..backup };
    let error = cluster.nodes[1].restore(nameless, false).unwrap_err();
    assert!(matches!(error, RestoreError::Engine(_)), "{error}");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nightly/journal.state");
    write_backup(&path, b"one").unwrap();
    // The remains of a killed save are no obstacle.
    std::fs::write(folder.path().join("nightly/journal.state.new"), b"half").unwrap();
    write_backup(&path, b"two").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path().join("nightly")).unwrap().count(), 1);
    // A folder is in its place.
    let error = write_backup(&folder.path().join("nightly"), b"three");
    assert!(error.is_err());
    assert!(!folder.path().join("nightly.new").exists(), "nothing is left of it");
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
}
