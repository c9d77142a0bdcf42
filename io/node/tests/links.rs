//! Three nodes of this process with two links, 127.0.0.1 and 127.0.0.2; the first goes through
//! relays that can be cut.

#[path = "support/relay.rs"]
mod relay;
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use relay::Relay;
use steadfast_node::{
    Config, HostOptions, Node, Status, free_ring_addresses, free_ring_addresses_at,
};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::{ClientId, NodeId};

const NODES: usize = 3;

struct Cluster {
    nodes: Vec<Node>,
    /// The first network is cut.
    cut: Arc<AtomicBool>,
    _relays: Vec<Relay>,
}

fn start() -> Cluster {
    let cut = Arc::default();
    let first = free_ring_addresses(NODES);
    let second = free_ring_addresses_at([127, 0, 0, 2].into(), NODES);
    // The addresses of the others that each node is given.
    let mut seen: Vec<Vec<SocketAddr>> = vec![first.clone(); NODES];
    let mut relays = Vec::new();
    for a in 0..NODES {
        for b in a + 1..NODES {
            let relay = Relay::between(first[a], first[b], &cut);
            (seen[a][b], seen[b][a]) = (relay.second, relay.first);
            relays.push(relay);
        }
    }
    let node = |place: usize| {
        let rings: Vec<[SocketAddr; 2]> =
            seen[place].iter().zip(&second).map(|(a, b)| [*a, *b]).collect();
        let mut config = Config::linked(NodeId(place as u32 + 1), &rings);
        // That the machine is busy changes no membership: only a ring that both networks lose would
        // end, long after the test.
        config.ring.timing.token_timeout = 2 * TIMEOUT;
        config.ring.timing.token_timeout_max = 2 * TIMEOUT;
        let node = Node::start(config).unwrap();
        node.host("journal", HostOptions::default(), Journal::default).unwrap();
        node
    };
    let nodes: Vec<Node> = (0..NODES).map(node).collect();
    for node in &nodes {
        wait_for(node, "all replicas synced", |status| synced(status, "journal", NODES));
        wait_for_links(node, "both links to carry", |status| lost(status) == [0, 0]);
    }
    Cluster { nodes, cut, _relays: relays }
}

/// By each link, how many of the others are not reached, or not known.
fn lost(status: &Status) -> [usize; 2] {
    [0, 1].map(|link| {
        let links = status.ring.links.iter().map(|node| node.links[link]);
        links.filter(|link| !link.up || link.heard_ms.is_none()).count()
    })
}

/// A link's change is not always an event of the stack: look until it is as wanted.
fn wait_for_links(node: &Node, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let status = node.status();
        if wanted(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "waited for {what} at {}: {status:#?}", node.id());
        std::thread::yield_now();
    }
}

#[test]
fn the_loss_of_one_network_is_reported_and_changes_no_membership() {
    let cluster = start();
    let before: Vec<_> = cluster.nodes.iter().map(|node| node.status().ring.id).collect();
    let primary = cluster.nodes[0].status().groups[0].primary.expect("it has a primary").node;
    let address = cluster.nodes[primary.0 as usize - 1].client_address().unwrap();
    let mut caller = Caller::connect(address, ClientId(7));
    caller.bind("journal").expect("the group is known");
    let mut number = 0;
    let mut call_until = |done: &dyn Fn() -> bool| -> Duration {
        let mut longest = Duration::ZERO;
        let deadline = Instant::now() + TIMEOUT;
        while !done() {
            assert!(Instant::now() < deadline, "calls go on, but nothing is reported");
            number += 1;
            let asked = Instant::now();
            caller.expect("journal", number, b"x", &number.to_string());
            longest = longest.max(asked.elapsed());
        }
        longest
    };
    let all = |wanted: [usize; 2]| {
        let nodes = &cluster.nodes;
        move || nodes.iter().all(|node| lost(&node.status()) == wanted)
    };

    cluster.cut.store(true, Ordering::Relaxed);
    let gap = call_until(&all([NODES - 1, 0]));
    eprintln!("longest call while a network fails: {gap:?}");
    cluster.cut.store(false, Ordering::Relaxed);
    call_until(&all([0, 0]));

    for (node, before) in cluster.nodes.iter().zip(before) {
        let Status { ring, counters, .. } = node.status();
        assert_eq!(ring.id, before, "the membership has not changed");
        let others = NODES as u64 - 1;
        assert_eq!((counters.links_lost, counters.links_back), (others, others));
    }
}
