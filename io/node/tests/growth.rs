//! Nodes come to a running cluster, and go.

mod support;

use std::net::SocketAddr;
use std::path::Path;

use config::NodeAddress;
use steadfast_node::{Config, HostOptions, Node, free_ring_addresses};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::ordered::{Durability, GroupOptions};
use wire::{ClientId, NodeId, Time};

/// Node `id`, which knows the first so many nodes, and keeps all that it has in a folder of its own.
fn config(folder: &Path, id: u32, known: &[SocketAddr]) -> Config {
    let mut config = Config::member(NodeId(id), known);
    let data = folder.join(format!("{id}/data"));
    config.storage = Some(folder.join(format!("{id}/store")));
    // That the machine is busy is no fault.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    if id == 1 && !data.exists() {
        std::fs::create_dir_all(&data).unwrap();
        let mark = config::founder::text(Time(os::clock::wall_clock()));
        std::fs::write(data.join(config::founder::FILE), mark).unwrap();
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

    others[0].retire(NodeId(1)).unwrap();
    let [second, third] = &others[..] else { panic!("two came") };
    for node in [second, third] {
        counts(node, &[2, 3]);
        wait_for(node, "the others go on", |status| synced(status, "journal", 2));
    }
    let ended = end_of(first);
    assert!(ended.contains("retired") && ended.contains("another number"), "{ended}");
    append(&[second, third], 4, "4");

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
