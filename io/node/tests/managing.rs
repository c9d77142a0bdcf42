//! Nodes that tell what their hosts have to do, and one that manages.

mod support;

use std::time::Instant;

use steadfast_node::{
    Config, Event, Execution, HostOptions, Interest, Node, Status, admin, explain,
    free_ring_addresses,
};
use support::{APPEND, Caller, Journal, TIMEOUT, synced, wait_for};
use wire::client::Outcome;
use wire::{ClientId, Duration, NodeId, Share};

/// Looks at its host often, and tells it often.
fn start(id: u32, rings: &[std::net::SocketAddr], folder: &std::path::Path) -> Node {
    let mut config = Config::member(NodeId(id), rings);
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    config.manager.on = true;
    config.manager.sample = Duration::from_millis(5);
    config.manager.window = Duration::from_millis(200);
    config.manager.period = Duration::from_millis(100);
    config.admin = Some(folder.join(format!("{id}.sock")));
    let node = Node::start(config).unwrap();
    let options = HostOptions { execution: Execution::Thread, ..HostOptions::default() };
    node.host("journal", options, Journal::default).unwrap();
    node
}

/// Reports of load cause no events: look again and again.
fn look_until(node: &Node, wanted: impl Fn(&Status) -> bool) {
    let events = node.subscribe();
    let deadline = Instant::now() + TIMEOUT;
    while !wanted(&node.status()) {
        assert!(Instant::now() < deadline, "{:#?}", node.status());
        let _ = events.recv_timeout(std::time::Duration::from_millis(5));
    }
}

#[test]
fn every_node_knows_what_all_hosts_have_to_do_and_can_say_what_follows() {
    let (rings, folder) = (free_ring_addresses(3), tempfile::tempdir().unwrap());
    let nodes: Vec<Node> = (1..=3).map(|id| start(id, &rings, folder.path())).collect();
    for node in &nodes {
        wait_for(node, "all replicas synced", |status| synced(status, "journal", 3));
        look_until(node, |status| status.hosts.len() == 3);
    }
    let status = nodes[2].status();
    let leads = status.manager.as_ref().and_then(|manager| manager.leads);
    assert_eq!(leads, Some(NodeId(1)));
    for host in &status.hosts {
        assert!(host.capacity > Share::ZERO && host.used <= host.capacity, "{host:?}");
    }
    let explanation = explain(&status, "journal").expect("the group is known");
    let primary = status.groups[0].primary.expect("there is one").node;
    assert_eq!((explanation.primary, explanation.decides), (Some(primary), Some(NodeId(1))));
    assert_eq!((explanation.hosts.len(), explanation.if_lost.len()), (3, 3));
    assert_eq!(explanation.hosts[0].node, primary);
    assert!(explanation.hosts[1..].iter().all(|host| host.then.is_some()));
    let next = explanation.hosts[1].node;
    for lost in &explanation.if_lost {
        let then = if lost.node == primary { next } else { primary };
        assert_eq!(lost.primary, Some(then), "{lost:?}");
    }
    assert!(explain(&status, "ledger").is_none());

    // Over the admin socket the same is known.
    let mut client = admin::Client::connect(folder.path().join("2.sock")).unwrap();
    assert_eq!(client.status().unwrap().hosts.len(), 3);
    for node in nodes {
        node.stop().unwrap();
    }
}

#[test]
fn what_a_replica_uses_is_told_as_long_as_it_works() {
    let (rings, folder) = (free_ring_addresses(1), tempfile::tempdir().unwrap());
    let node = start(1, &rings, folder.path());
    wait_for(&node, "a primary", |status| synced(status, "journal", 1));
    let events = node.subscribe_to(Interest::Membership);
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    let uses = |node: &Node| {
        let hosts = node.status().hosts;
        hosts.iter().flat_map(|host| &host.replicas).any(|it| it.group == "journal")
    };
    // However slow the host is: its thread has something to do as long as it is called.
    for number in 1.. {
        let reply = caller.call("journal", number, APPEND, &[b'x'; 4_096]);
        assert!(matches!(reply.outcome, Outcome::Ok(_)), "{reply:?}");
        if number % 16 == 0 && uses(&node) {
            break;
        }
    }
    node.stop().unwrap();
    let told = |event: &Event| matches!(event, Event::Ranked { .. } | Event::Moved { .. });
    assert!(!events.iter().any(|(_, event)| told(&event)), "there is nobody to take over");
}
