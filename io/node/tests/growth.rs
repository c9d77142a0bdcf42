//! Nodes come to a running cluster, go, and are elsewhere.

mod support;

use std::net::SocketAddr;
use std::path::Path;

use config::NodeAddress;
use steadfast_node::{Config, HostOptions, Node, free_ring_addresses};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::ordered::{Durability, GroupOptions};
use wire::{ClientId, NodeId};

/// Node `id`, which knows the first so many nodes, and keeps all that it has in a folder of its own.
fn config(folder: &Path, id: u32, known: &[SocketAddr]) -> Config {
    let mut config = Config::member(NodeId(id), known);
    let data = folder.join(format!("{id}/data"));
    config.storage = Some(folder.join(format!("{id}/store")));
    // That the machine is busy is no fault.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    if id == 1 && !data.exists() {
        config::founder::mark(&data).unwrap();
    }
    config.data_dir = Some(data);
    config
}

fn start(config: Config) -> Node {
    let node = Node::start(config).unwrap();
    let group = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
    let options = HostOptions { group, ..HostOptions::default() };
    node.host("journal", options, Journal::default).unwrap();
    node
}

fn counts(node: &Node, nodes: &[u32]) {
    let nodes: Vec<NodeId> = nodes.iter().copied().map(NodeId).collect();
    let what = format!("{nodes:?} count");
    wait_for(node, &what, |status| status.nodes.counted == nodes && status.nodes.moving.is_none());
}

/// The node has ended by itself; the reason.
fn end_of(node: Node) -> String {
    let events = node.subscribe();
    // Until the data plane drops its end.
    while events.recv_timeout(TIMEOUT).is_ok() {}
    node.stop().unwrap_err().to_string()
}

/// A call at whichever node has the primary.
fn append(nodes: &[&Node], number: u64, expected: &str) {
    let primary = nodes[0].status().groups[0].primary.unwrap().node;
    let at = nodes.iter().find(|it| it.id() == primary).unwrap();
    let mut caller = Caller::connect(at.client_address().unwrap(), ClientId(number));
    caller.expect("journal", 1, b"x", expected);
}

#[test]
fn a_cluster_of_one_grows_and_its_first_node_is_retired_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let rings = free_ring_addresses(3);
    let first = start(config(folder.path(), 1, &rings[..1]));
    wait_for(&first, "it is alone", |status| synced(status, "journal", 1));
    append(&[&first], 1, "1");

    let mut others: Vec<Node> = Vec::new();
    for id in [2, 3] {
        let node = start(config(folder.path(), id, &rings[..id as usize]));
        let ring = rings[id as usize - 1];
        first.admit(NodeAddress::new(NodeId(id), ring)).unwrap();
        others.push(node);
        let all: Vec<u32> = (1..=id).collect();
        for node in others.iter().chain([&first]) {
            counts(node, &all);
            wait_for(node, "all have the state", |status| synced(status, "journal", id as usize));
        }
        let all: Vec<&Node> = others.iter().chain([&first]).collect();
        append(&all, id.into(), &id.to_string());
    }
    let error = first.admit(NodeAddress::new(NodeId(3), rings[2])).unwrap_err().to_string();
    assert!(error.contains("already"), "{error}");
    let error = first.admit(NodeAddress::new(NodeId(4), rings[2])).unwrap_err().to_string();
    assert!(error.contains("has that address already"), "{error}");

    // An address that no node here can reach harms nobody.
    for (wrong, why) in
        [("[::1]:7201", "[::1]:7201"), ("10.0.0.4:7201", "10.0.0.4"), ("127.0.0.9:0", "port")]
    {
        let comer = NodeAddress::new(NodeId(4), wrong.parse().unwrap());
        let error = first.admit(comer).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    others[0].retire(NodeId(1)).unwrap();
    let [second, third] = &others[..] else { panic!("two came") };
    for node in [second, third] {
        counts(node, &[2, 3]);
        wait_for(node, "the others go on", |status| synced(status, "journal", 2));
    }
    let ended = end_of(first);
    assert!(ended.contains("retired") && ended.contains("another number"), "{ended}");
    append(&[second, third], 4, "4");

    // Its disk is lost: with its old configuration it would be a cluster of its own.
    let old = folder.path().join("1");
    std::fs::rename(&old, folder.path().join("old")).unwrap();
    let mut config_of_old = config(folder.path(), 1, &rings[..1]);
    config_of_old.data_dir = Some(folder.path().join("empty"));
    let error = Node::start(config_of_old).unwrap_err().to_string();
    assert!(error.contains("its disk is lost") && error.contains("another number"), "{error}");
    std::fs::remove_dir_all(&old).unwrap();
    std::fs::rename(folder.path().join("old"), &old).unwrap();

    // It has its old disk, and comes again.
    let again = start(config(folder.path(), 1, &rings[..1]));
    let ended = end_of(again);
    assert!(ended.contains("retired") && ended.contains("another number"), "{ended}");
    let error = second.admit(NodeAddress::new(NodeId(1), rings[0])).unwrap_err().to_string();
    assert!(error.contains("never used again"), "{error}");

    // All nodes stop and start: what they know of each other is on their disks, and their
    // configurations are as they were.
    for node in others {
        node.stop().unwrap();
    }
    let second = start(config(folder.path(), 2, &rings[..2]));
    let third = start(config(folder.path(), 3, &rings));
    for node in [&second, &third] {
        counts(node, &[2, 3]);
        wait_for(node, "both have the state", |status| synced(status, "journal", 2));
    }
    append(&[&second, &third], 5, "5");
}

/// A node in memory, which knows the nodes by the names of their hosts.
fn named(id: u32, ports: [u16; 2]) -> Config {
    let nodes: String = (1..)
        .zip(ports)
        .map(|(id, port)| format!("[[nodes]]\nid = {id}\nring = \"localhost:{port}\"\n"))
        .collect();
    let text = format!("node = {id}\nlisten.client = \"127.0.0.1:0\"\n{nodes}");
    let mut config = Config::from_toml(&text).unwrap();
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    config
}

#[test]
fn nodes_are_found_by_the_names_of_their_hosts_and_elsewhere_after_a_reload() {
    let free = free_ring_addresses(3);
    let ports = |second: usize| [free[0].port(), free[second].port()];
    let both = |status: &steadfast_node::Status| {
        status.ring.members.len() == 2 && status.ring.quorate == Some(true)
    };
    let first = Node::start(named(1, ports(1))).unwrap();
    let second = Node::start(named(2, ports(1))).unwrap();
    wait_for(&first, "both are there", both);
    second.stop().unwrap();
    wait_for(&first, "it is alone", |status| status.ring.members.len() == 1);

    // Its host has another address now.
    let second = Node::start(named(2, ports(2))).unwrap();
    let there = ports(2);
    first.reloads_from(move || Ok(named(1, there)));
    assert_eq!(first.reload().unwrap(), [""; 0], "no restart");
    wait_for(&first, "both are there again", both);
    wait_for(&second, "both are there again", both);
}
