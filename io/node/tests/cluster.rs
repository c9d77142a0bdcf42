//! Clusters of three nodes in one process, over real sockets.

mod support;

use std::net::SocketAddr;

use steadfast_node::{
    Config, Event, Execution, HostOptions, Interest, MoveError, Node, free_ring_addresses,
};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::client::Outcome;
use wire::{ClientId, NodeId};

struct Cluster {
    rings: Vec<SocketAddr>,
    nodes: Vec<Node>,
}

impl Cluster {
    fn start(size: u32, execution: Execution) -> Cluster {
        let rings = free_ring_addresses(size as usize);
        let start = |id| start(NodeId(id), &rings, execution);
        let nodes: Vec<Node> = (1..=size).map(start).collect();
        for node in &nodes {
            wait_for(node, "all replicas synced", |s| synced(s, "journal", size as usize));
        }
        Cluster { rings, nodes }
    }

    fn take_primary(&mut self) -> Node {
        let status = self.nodes[0].status();
        let primary = status.groups[0].primary.expect("there is a primary").node;
        let index = self.nodes.iter().position(|node| node.id() == primary).unwrap();
        self.nodes.remove(index)
    }

    fn primary_address(&self) -> SocketAddr {
        let status = self.nodes[0].status();
        let primary = status.groups[0].primary.expect("there is a primary").node;
        let node = self.nodes.iter().find(|node| node.id() == primary).unwrap();
        node.client_address().unwrap()
    }
}

fn start(id: NodeId, rings: &[SocketAddr], execution: Execution) -> Node {
    let node = Node::start(Config::member(id, rings)).unwrap();
    let options = HostOptions { execution, ..HostOptions::default() };
    node.host("journal", options, Journal::default).unwrap();
    node
}

fn survives_a_stop(execution: Execution) {
    let mut cluster = Cluster::start(3, execution);
    let client = ClientId(99);
    let mut caller = Caller::connect(cluster.primary_address(), client);
    caller.expect("journal", 1, b"abc", "3");
    caller.expect("journal", 2, b"de", "5");

    let stopped = cluster.take_primary();
    let id = stopped.id();
    stopped.stop().unwrap();
    assert!(caller.receive().is_none(), "the stopped node closed the connection");
    for node in &cluster.nodes {
        wait_for(node, "another primary", |status| {
            synced(status, "journal", 2)
                && status.groups[0].primary.is_some_and(|primary| primary.node != id)
                && status.ring.quorate == Some(true)
        });
    }

    let mut caller = Caller::connect(cluster.primary_address(), client);
    // A retry of an answered call gets the kept answer and is not executed again.
    caller.expect("journal", 2, b"de", "5");
    caller.expect("journal", 3, b"f", "6");

    let back = start(id, &cluster.rings, execution);
    wait_for(&back, "the returned replica synced", |status| synced(status, "journal", 3));
    caller.expect("journal", 4, b"g", "7");
    // Backups execute when the call is delivered there, which the reply does not wait for.
    for node in cluster.nodes.iter().chain([&back]) {
        wait_for(node, "four calls executed", |status| status.groups[0].executed == Some(4));
        assert_eq!(node.state("journal").unwrap(), b"abcdefg");
    }
}

#[test]
fn a_group_outlives_the_stop_of_its_primary() {
    survives_a_stop(Execution::Thread);
}

#[test]
fn a_group_outlives_the_stop_of_its_primary_inline() {
    survives_a_stop(Execution::Inline);
}

#[test]
fn another_node_says_who_is_primary() {
    let cluster = Cluster::start(3, Execution::Thread);
    let primary = cluster.primary_address();
    let other = cluster.nodes.iter().find(|node| node.client_address() != Some(primary)).unwrap();
    let mut caller = Caller::connect(other.client_address().unwrap(), ClientId(5));
    let reply = caller.call("journal", 1, support::APPEND, b"a");
    assert_eq!(reply.outcome, Outcome::NotPrimary);
    assert_eq!(reply.targets.expect("and where to go").nodes[0].address, primary);
}

#[test]
fn a_minority_acknowledges_nothing() {
    let mut cluster = Cluster::start(3, Execution::Thread);
    let last = cluster.nodes.pop().unwrap();
    for node in cluster.nodes.drain(..) {
        node.stop().unwrap();
    }
    // Those that left cleanly do not count against the last one only if the rules say so: with a
    // majority of the configured nodes gone it must not go on.
    wait_for(&last, "no quorum", |status| {
        status.ring.members.len() == 1 && status.ring.quorate == Some(false)
    });
    let mut caller = Caller::connect(last.client_address().unwrap(), ClientId(5));
    let reply = caller.call("journal", 1, support::APPEND, b"a");
    assert_eq!(reply.outcome, Outcome::NoReplica);
}

#[test]
fn a_stop_is_seen_as_a_leaving_not_as_a_failure() {
    let mut cluster = Cluster::start(3, Execution::Thread);
    let witness = cluster.nodes[0].id();
    let stopped = cluster.nodes.pop().unwrap();
    let events = cluster.nodes[0].subscribe_to(Interest::Membership);
    stopped.stop().unwrap();
    let seen = std::iter::from_fn(|| events.recv_timeout(TIMEOUT).ok())
        .map(|(_, event)| event)
        .take_while(|event| !matches!(event, steadfast_node::Event::Quorum { quorate: true, .. }))
        .collect::<Vec<_>>();
    assert!(!seen.is_empty(), "node {witness} saw nothing");
    assert!(
        !seen.iter().any(|event| matches!(
            event,
            steadfast_node::Event::Ring(ring::Event::TokenLost { .. })
        )),
        "{seen:?}"
    );
}

#[test]
fn a_primary_moves_while_it_is_called() {
    let cluster = Cluster::start(3, Execution::Thread);
    let events = cluster.nodes[0].subscribe_to(Interest::Membership);
    let old = cluster.nodes[0].status().groups[0].primary.expect("a primary").node;
    let new = cluster.nodes.iter().find(|node| node.id() != old).unwrap();
    let address = |id| {
        let node = cluster.nodes.iter().find(|node| node.id() == id).unwrap();
        node.client_address().unwrap()
    };
    let mut caller = Caller::connect(address(old), ClientId(7));
    caller.expect("journal", 1, b"a", "1");
    let view = cluster.nodes[0].move_primary("journal", new.id()).unwrap();
    let again = cluster.nodes[1].move_primary("journal", new.id());
    assert_eq!(again, Ok(view), "it is there");
    let refused = cluster.nodes[2].move_primary("journal", NodeId(9)).unwrap_err();
    assert!(matches!(refused, MoveError::Engine(_)), "{refused:?}");
    for node in &cluster.nodes {
        wait_for(node, "the new primary", |status| {
            status.groups[0].primary.is_some_and(|primary| primary.node == new.id())
        });
    }
    let mut caller = Caller::connect(address(new.id()), ClientId(7));
    // A retry of what the old one has answered, and a new call.
    caller.expect("journal", 1, b"a", "1");
    caller.expect("journal", 2, b"b", "2");
    let told = std::iter::from_fn(|| events.recv_timeout(TIMEOUT).ok());
    let moved = told.map(|(_, event)| event).find(|event| matches!(event, Event::Moved { .. }));
    let Some(Event::Moved { name, from, to, view: told, .. }) = moved else { panic!("not told") };
    assert_eq!((name.as_str(), from.node, to.node, told), ("journal", old, new.id(), view));
}

#[test]
fn who_stops_is_excluded_and_who_starts_again_has_restarted() {
    let mut cluster = Cluster::start(3, Execution::Thread);
    let stopped = cluster.nodes.pop().unwrap();
    let id = stopped.id();
    let events = cluster.nodes[0].subscribe_to(Interest::Membership);
    stopped.stop().unwrap();
    let await_event = |wanted: fn(&Event) -> Option<NodeId>| {
        while let Ok((_, event)) = events.recv_timeout(TIMEOUT) {
            if wanted(&event) == Some(id) {
                return;
            }
        }
        panic!("not told");
    };
    await_event(|event| match event {
        Event::Excluded { member, .. } => Some(member.node),
        _ => None,
    });
    let _back = start(id, &cluster.rings, Execution::Thread);
    await_event(|event| match event {
        Event::Restarted { member, .. } => Some(member.node),
        _ => None,
    });
}
