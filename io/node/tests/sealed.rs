//! Rings whose datagrams are sealed, over real sockets.

mod support;

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use steadfast_node::admin::{Client, KeyAsk};
use steadfast_node::{
    Config, HostOptions, Node, StartError, Status, free_ring_addresses, key_file,
};
use support::{Caller, Journal, synced, wait_for};
use tempfile::TempDir;
use wire::{ClientId, NodeId};

fn key(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    key_file::create(&path).unwrap();
    path
}

fn start(id: u32, rings: &[SocketAddr], key: Option<&Path>) -> Node {
    let mut config = Config::member(NodeId(id), rings);
    config.security.cluster_key = key.map(Path::to_owned);
    let node = Node::start(config).unwrap();
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    node
}

/// As `wait_for`, of what no event tells.
fn look_for(node: &Node, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
    let events = node.subscribe();
    let deadline = Instant::now() + support::TIMEOUT;
    loop {
        let status = node.status();
        if wanted(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "never: {what}; {status:#?}");
        let _ = events.recv_timeout(Duration::from_millis(5));
    }
}

fn seal(status: &Status) -> steadfast_node::SealCounters {
    status.seal.as_ref().expect("it has a key").counters
}

#[test]
fn nodes_with_one_key_form_a_ring_again_and_again() {
    let folder = TempDir::new().unwrap();
    let key = key(&folder, "cluster.key");
    let rings = free_ring_addresses(3);
    let start = |id| start(id, &rings, Some(&key));
    let mut nodes: Vec<Node> = (1..=3).map(start).collect();
    for node in &nodes {
        wait_for(node, "all replicas synced", |status| synced(status, "journal", 3));
    }
    let mut caller = Caller::connect(nodes[0].client_address().unwrap(), ClientId(9));
    let primary = nodes[0].status().groups[0].primary.unwrap().node;
    if primary == nodes[0].id() {
        caller.expect("journal", 1, b"abc", "3");
    }
    // A node that comes back has forgotten whom it met, and the others meet another life.
    nodes.pop().unwrap().stop().unwrap();
    wait_for(&nodes[0], "two nodes", |status| status.ring.members.len() == 2);
    nodes.push(start(3));
    for node in &nodes {
        let status = wait_for(node, "all synced again", |status| synced(status, "journal", 3));
        let counters = seal(&status);
        assert!(counters.sealed > 0 && counters.opened > 0 && counters.met >= 2, "{counters:?}");
        assert_eq!(
            counters.forged + counters.plain + counters.misaddressed + counters.unknown_key,
            0,
            "{counters:?}"
        );
        let fingerprint = status.seal.unwrap().fingerprint;
        assert_eq!(fingerprint, key_file::read(&key).unwrap().sealing().fingerprint().to_string());
    }
}

#[test]
fn a_node_with_another_key_or_none_does_not_get_in() {
    let folder = TempDir::new().unwrap();
    let (ours, other) = (key(&folder, "ours"), key(&folder, "other"));
    let rings = free_ring_addresses(4);
    let nodes = [1, 2].map(|id| start(id, &rings, Some(&ours)));
    let stranger = start(3, &rings, Some(&other));
    let plain = start(4, &rings, None);
    for node in &nodes {
        let status = look_for(node, "forged and plain datagrams", |status| {
            let counters = seal(status);
            let alone = status.ring.members.len() == 2 && status.ring.state == "operational";
            counters.forged > 5 && counters.plain > 5 && alone
        });
        assert!(status.ring.members.iter().all(|member| member.node <= NodeId(2)), "{status:?}");
    }
    for outsider in [&stranger, &plain] {
        assert_eq!(outsider.status().ring.members.len(), 1);
    }
    assert!(plain.status().seal.is_none());
}

#[test]
fn a_key_that_others_may_read_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let key = key(&folder, "cluster.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut config = Config::single();
    config.security.cluster_key = Some(key);
    let error = Node::start(config).unwrap_err();
    assert!(matches!(error, StartError::ClusterKey(_)));
    assert!(error.to_string().contains("chmod 600"), "{error}");
}

/// Its port refuses datagrams, but its connection stands: as if the refusals were forged.
#[test]
fn refusals_are_not_believed_of_a_node_whose_connection_stands() {
    let rings = free_ring_addresses(2);
    let alive = TcpListener::bind(rings[1]).unwrap();
    let node = Node::start(Config::member(NodeId(1), &rings)).unwrap();
    let connection = alive.accept().unwrap();
    // From here on they are not: until the connection stood, both said that nobody is there.
    let before = node.status().counters;
    let status = look_for(&node, "refusals", |status| {
        status.counters.unreachable_doubted > before.unreachable_doubted + 3
    });
    assert_eq!(status.ring.members.len(), 1);
    drop((connection, alive));
    // The ring's reaction to a closed port is tested where processes die (death.rs).
    drop(UdpSocket::bind(rings[1]).unwrap());
}

#[test]
fn the_key_changes_at_all_nodes_while_they_answer() {
    let folder = TempDir::new().unwrap();
    let first = key(&folder, "cluster.key");
    let rings = free_ring_addresses(3);
    let file = |id: u32| folder.path().join(format!("{id}.key"));
    let socket = |id: u32| folder.path().join(format!("{id}.sock"));
    let start = |id: u32| {
        let mut config = Config::member(NodeId(id), &rings);
        config.security.cluster_key = Some(file(id));
        config.admin = Some(socket(id));
        let node = Node::start(config).unwrap();
        node.host("journal", HostOptions::default(), Journal::default).unwrap();
        node
    };
    for id in 1..=3 {
        std::fs::copy(&first, file(id)).unwrap();
    }
    let mut nodes: Vec<Node> = (1..=3).map(start).collect();
    for node in &nodes {
        wait_for(node, "all replicas synced", |status| synced(status, "journal", 3));
    }
    let ring = nodes[0].status().ring.id;
    // One is away: the others wait for it, and say so.
    nodes.pop().unwrap().stop().unwrap();
    wait_for(&nodes[0], "two nodes", |s| s.ring.members.len() == 2 && s.ring.quorate == Some(true));
    let ask = |id: u32, ask| Client::connect(socket(id)).unwrap().key(ask);
    // The installation of the two's component may still be on its way.
    let deadline = Instant::now() + support::TIMEOUT;
    while let Err(error) = ask(2, KeyAsk::Rotate) {
        assert!(Instant::now() < deadline, "{error}");
    }
    let waits = look_for(&nodes[0], "a change that waits for node 3", |status| {
        let change = status.seal.as_ref().and_then(|seal| seal.change.as_ref());
        change.is_some_and(|change| change.lacking == [NodeId(3)] && !change.switched)
    });
    assert_eq!(waits.seal.unwrap().key, 1);
    let refused = ask(1, KeyAsk::Rotate).unwrap_err().to_string();
    assert!(refused.contains("under way"), "{refused}");
    // It comes, and all change.
    nodes.push(start(3));
    for node in &nodes {
        let status = look_for(node, "the second key alone", |status| {
            let seal = status.seal.as_ref().unwrap();
            seal.key == 2 && seal.opens == [2] && seal.change.is_none()
        });
        assert_eq!(seal(&status).unknown_key, 0, "nobody was locked out for a moment");
        assert!(seal(&status).opened > 0 && status.ring.id != ring);
    }
    for id in 1..=3 {
        let keys = key_file::read(&file(id)).unwrap();
        let numbers: Vec<u8> = keys.iter().map(|key| key.number()).collect();
        assert_eq!(numbers, [2], "and on its disk, for its owner alone");
    }
    // The next life starts with the written file.
    nodes.remove(0).stop().unwrap();
    let back = start(1);
    wait_for(&back, "all replicas synced", |status| synced(status, "journal", 3));
    assert!(ask(1, KeyAsk::Abort).unwrap_err().to_string().contains("no change"));
}
