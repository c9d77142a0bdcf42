//! Nodes that have lost their disks found no second cluster: they wait for the one that has not.

mod support;

use std::fs;
use std::path::Path;

use steadfast_node::{Config, HostOptions, Node, free_ring_addresses};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::ordered::{Durability, GroupOptions};
use wire::{ClientId, NodeId};

/// Node `id` of three, which keeps all that it has in a folder of its own.
fn config(folder: &Path, id: u32, rings: &[std::net::SocketAddr]) -> Config {
    let mut config = Config::member(NodeId(id), rings);
    config.data_dir = Some(folder.join(format!("{id}/data")));
    config.storage = Some(folder.join(format!("{id}/store")));
    // That the machine is busy is no fault.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    config
}

fn host(node: &Node) {
    let group = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
    let options = HostOptions { group, ..HostOptions::default() };
    node.host("journal", options, Journal::default).unwrap();
}

#[test]
fn two_of_three_nodes_that_lost_their_disks_wait_for_the_third() {
    let folder = tempfile::tempdir().unwrap();
    let rings = free_ring_addresses(3);
    let start = |id: u32| {
        let node = Node::start(config(folder.path(), id, &rings)).unwrap();
        host(&node);
        node
    };
    let nodes = [1, 2, 3].map(start);
    for node in &nodes {
        wait_for(node, "all have the state", |status| synced(status, "journal", 3));
    }
    let primary = nodes[0].status().groups[0].primary.unwrap().node;
    let of = |node: NodeId| nodes.iter().find(|it| it.id() == node).unwrap();
    let mut caller = Caller::connect(of(primary).client_address().unwrap(), ClientId(7));
    caller.expect("journal", 1, b"abc", "3");
    for node in nodes {
        node.stop().unwrap();
    }
    for id in [1, 2] {
        fs::remove_dir_all(folder.path().join(id.to_string())).unwrap();
    }

    let wiped = [1, 2].map(start);
    for node in &wiped {
        wait_for(node, "both are in a ring, and answer nothing", |status| {
            status.ring.members.len() == 2 && status.ring.quorate == Some(false)
        });
    }
    let third = start(3);
    for node in wiped.iter().chain([&third]) {
        wait_for(node, "all have the state again", |status| synced(status, "journal", 3));
    }
    let primary = third.status().groups[0].primary.unwrap().node;
    let of = |node: NodeId| wiped.iter().chain([&third]).find(|it| it.id() == node).unwrap();
    let mut caller = Caller::connect(of(primary).client_address().unwrap(), ClientId(8));
    caller.expect("journal", 1, b"d", "4");
}
