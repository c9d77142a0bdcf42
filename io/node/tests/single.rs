//! A cluster of one node, called over TCP.

mod support;

use std::time::Duration;

use steadfast_node::admin::server::ServeError;
use steadfast_node::{
    Config, Execution, HostError, HostOptions, Interest, Node, StartError, admin,
};
use support::{APPEND, CONTEXT, Caller, HUGE, Journal, PANIC, synced, wait_for};
use wire::ClientId;
use wire::client::{Outcome, Refusal};

fn hosting(execution: Execution) -> (Node, Caller) {
    let node = Node::start(Config::single()).unwrap();
    let options = HostOptions { execution, ..HostOptions::default() };
    node.host("journal", options, Journal::default).unwrap();
    wait_for(&node, "a primary", |status| synced(status, "journal", 1));
    let caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    (node, caller)
}

fn serves(execution: Execution) {
    let (node, mut caller) = hosting(execution);
    let targets = caller.bind("journal").expect("the group is known");
    assert_eq!(targets.nodes[0].node, node.id());
    caller.expect("journal", 1, b"ab", "2");
    caller.expect("journal", 2, b"c", "3");
    assert_eq!(node.state("journal").unwrap(), b"abc");

    let reply = caller.call("journal", 3, PANIC, b"");
    assert!(matches!(reply.outcome, Outcome::Refused(Refusal::Failed, _)), "{reply:?}");
    let reply = caller.call("journal", 4, HUGE, b"");
    assert!(matches!(reply.outcome, Outcome::Refused(Refusal::ReplyTooLarge, _)), "{reply:?}");
    let reply = caller.call("journal", 5, CONTEXT, b"");
    let Outcome::Ok(text) = reply.outcome else { panic!("{reply:?}") };
    let text = String::from_utf8(text.to_vec()).unwrap();
    assert!(text.ends_with(&format!("{} 5", ClientId(7))), "{text}");
    let now = text.split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(now > 1_700_000_000_000_000_000, "ordered time is the wall clock's: {now}");
    caller.expect("journal", 6, b"d", "4");

    let status = node.status();
    assert_eq!(status.counters.handlers_panicked, 1);
    assert_eq!(status.counters.connections, 1);
    assert_eq!(status.counters.clients, 1);
    assert_eq!(status.groups[0].executed, Some(6));
    assert_eq!(status.ring.quorate, Some(true));
    node.stop().unwrap();
    assert!(caller.receive().is_none(), "a stopped node closes its clients' connections");
}

#[test]
fn a_replica_on_its_own_thread_serves() {
    serves(Execution::Thread);
}

#[test]
fn a_replica_on_the_data_plane_serves() {
    serves(Execution::Inline);
}

#[test]
fn what_cannot_be_hosted_is_refused() {
    let (node, mut caller) = hosting(Execution::Thread);
    let twice = node.host("journal", HostOptions::default(), Journal::default);
    assert!(matches!(twice, Err(HostError::Engine(engine::HostError::Twice))), "{twice:?}");
    let unnamed = node.host("", HostOptions::default(), Journal::default);
    assert!(matches!(unnamed, Err(HostError::Engine(engine::HostError::Name(0)))), "{unnamed:?}");
    assert!(matches!(node.unhost("other"), Err(HostError::NotHosted(_))));
    assert!(matches!(node.state("other"), Err(HostError::NotHosted(_))));
    caller.expect("journal", 1, b"a", "1");

    let reply = caller.call("other", 2, APPEND, b"");
    assert_eq!(reply.outcome, Outcome::NoSuchGroup);
}

#[test]
fn a_replica_can_be_taken_out_and_hosted_again() {
    let (node, mut caller) = hosting(Execution::Thread);
    caller.expect("journal", 1, b"abc", "3");
    node.unhost("journal").unwrap();
    wait_for(&node, "no group", |status| status.groups.is_empty());
    assert!(matches!(node.state("journal"), Err(HostError::NotHosted(_))));
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    wait_for(&node, "a primary", |status| synced(status, "journal", 1));
    caller.expect("journal", 2, b"d", "1");
}

#[test]
fn a_file_with_the_admin_sockets_name_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    std::fs::write(&path, "mine").unwrap();
    let error = Node::start(Config { admin: Some(path.clone()), ..Config::single() }).unwrap_err();
    assert!(
        matches!(&error, StartError::Admin(ServeError::NotASocket(named)) if *named == path),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn the_admin_socket_tells_what_the_node_knows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    config::founder::mark(&directory.path().join("data")).unwrap();
    let config = || Config {
        admin: Some(path.clone()),
        data_dir: Some(directory.path().join("data")),
        ..Config::single()
    };
    let node = Node::start(config()).unwrap();
    let taken = Node::start(Config { data_dir: None, ..config() }).unwrap_err();
    assert!(matches!(taken, StartError::Admin(ServeError::Taken(_))), "{taken}");
    let shared = Node::start(config()).unwrap_err();
    assert!(matches!(shared, StartError::DataDirTaken(_)), "{shared}");

    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    wait_for(&node, "a primary", |status| synced(status, "journal", 1));
    let mut caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    caller.expect("journal", 1, b"abc", "3");

    let mut client = admin::Client::connect(&path).unwrap();
    let status = client.status().unwrap();
    assert_eq!((status.node, status.groups.len()), (node.id(), 1));
    assert_eq!(status.client, node.client_address());
    let (answer, state) = client.state("journal").unwrap();
    assert_eq!((answer.bytes, &state[..]), (3, &b"abc"[..]));
    assert_eq!(answer.digest, admin::digest(b"abc"));
    assert_eq!(client.digest("journal").unwrap().digest, answer.digest);
    let refused = client.state("other").unwrap_err().to_string();
    assert!(refused.contains("hosts no replica of group \"other\""), "{refused}");

    let poisoned = client.poisoned("journal").unwrap();
    assert_eq!((poisoned.node, poisoned.calls.len()), (node.id(), 0));
    let refused = client.poisoned("other").unwrap_err().to_string();
    assert!(refused.contains("hosts no replica of group \"other\""), "{refused}");

    let past = admin::Client::connect(&path).unwrap().events(false, false).unwrap();
    let past: Vec<_> = past.map(Result::unwrap).collect();
    assert!(past.iter().any(|record| matches!(
        &record.kind,
        steadfast_node::EventKind::View { group, primary: Some(_), .. } if group == "journal"
    )));

    let mut follow = client.events(true, true).unwrap();
    // With the first past event the subscription is in place.
    follow.next().unwrap().unwrap();
    caller.expect("journal", 2, b"d", "4");
    assert!(follow.by_ref().any(|record| matches!(
        record.unwrap().kind,
        steadfast_node::EventKind::Executed { number: 2, .. }
    )));
    node.stop().unwrap();
    let last = follow.last().expect("events before the end").unwrap();
    assert_eq!(last.kind, steadfast_node::EventKind::Left, "following ends with the node");
    assert!(!path.exists(), "a clean stop removes the socket");
}

#[test]
fn subscribers_get_what_they_asked_for() {
    let (node, mut caller) = hosting(Execution::Inline);
    let all = node.subscribe();
    let membership = node.subscribe_to(Interest::Membership);
    caller.expect("journal", 1, b"a", "1");
    let timeout = Duration::from_secs(30);
    let (time, first) = all.recv_timeout(timeout).unwrap();
    assert!(matches!(first, steadfast_node::Event::Executed { number: 1, .. }), "{first:?}");
    assert!(time > 1_700_000_000_000_000_000);
    node.stop().unwrap();
    let rest: Vec<_> = membership.iter().collect();
    assert!(rest.iter().any(|(_, event)| *event == steadfast_node::Event::Left), "{rest:?}");
    assert!(!rest.iter().any(|(_, event)| matches!(event, steadfast_node::Event::Executed { .. })));
}

#[test]
fn a_taken_port_is_named_with_the_remedy() {
    let node = Node::start(Config::single()).unwrap();
    let client = Config { client: node.client_address(), ..Config::single() };
    let error = Node::start(client).unwrap_err().to_string();
    assert!(error.contains("clients") && error.contains("choose another port"), "{error}");

    let rings = steadfast_node::free_ring_addresses(1);
    let first = Node::start(Config::member(wire::NodeId(1), &rings)).unwrap();
    let error = Node::start(Config::member(wire::NodeId(1), &rings)).unwrap_err().to_string();
    assert!(error.contains(&rings[0].to_string()), "{error}");
    assert!(error.contains("is the node running already?"), "{error}");
    first.stop().unwrap();
    Node::start(Config::member(wire::NodeId(1), &rings)).expect("the port is free again");
}
