//! The blocking client against scripted nodes on loopback.

mod fake;

use std::time::{Duration, Instant};

use bytes::Bytes;
use fake::{FakeNode, GROUP, METHOD, Manner, SECOND, closed_address, cluster, targets};
use steadfast_client::{CallError, Cause, Client, ConnectError, Event, Invocation};
use wire::client::Outcome;

fn body(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn connect<const N: usize>(addresses: [std::net::SocketAddr; N]) -> Client {
    Client::connect(addresses).unwrap()
}

fn call(client: &Client, text: &'static str) -> Result<Bytes, CallError> {
    client.call(Invocation::new(GROUP, METHOD).body(body(text)).within(5 * SECOND))
}

/// A client that is bound, and connected to the first two targets.
fn bound(nodes: &[FakeNode]) -> Client {
    let client = connect([nodes.last().unwrap().address]);
    assert_eq!(call(&client, "hello"), Ok(body("hello")));
    // The second connection is made while calls are made: nothing runs between them.
    while client.stats().connects < nodes.len().min(3) as u64 {
        call(&client, "hello").unwrap();
    }
    client
}

#[test]
fn a_call_finds_the_group_through_any_node() {
    let nodes = cluster(3);
    let client = connect([nodes[2].address]);
    assert_eq!(call(&client, "one"), Ok(body("one")));
    assert_eq!(nodes[0].requests().len(), 1);
    assert!(nodes[1].requests().is_empty() && nodes[2].requests().is_empty());
}

#[test]
fn a_redirection_is_followed() {
    let nodes = cluster(3);
    let client = bound(&nodes);
    let news = targets(2, &[&nodes[2], &nodes[0]]);
    nodes[0].once(Manner::Answer(Outcome::NotPrimary, Some(news)));
    assert_eq!(call(&client, "two"), Ok(body("two")));
    assert_eq!(nodes[2].requests().len(), 1);
}

#[test]
fn a_closed_connection_is_survived_on_the_warm_one_with_the_same_number() {
    let nodes = cluster(3);
    let client = bound(&nodes);
    client.take_events();
    nodes[0].behave(Manner::Close);
    assert_eq!(call(&client, "two"), Ok(body("two")));
    let (first, second) = (nodes[0].requests(), nodes[1].requests());
    assert_eq!(first.last().unwrap().number, second[0].number);
    let moved = client.take_events().into_iter().find_map(|(_, event)| match event {
        Event::FailedOver { from, to, cause, .. } => Some((from, to, cause)),
        _ => None,
    });
    assert_eq!(moved, Some((nodes[0].address, nodes[1].address, Cause::Lost)));
    assert_eq!(client.stats().fail_overs, 1);
}

#[test]
fn a_node_that_died_between_calls_costs_the_next_call_nothing() {
    let nodes = cluster(3);
    let client = bound(&nodes);
    nodes[0].kill();
    // Meanwhile the client's threads are busy with something else.
    let other = bound(&nodes[1..]);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(20) {
        call(&other, "busy").unwrap();
    }
    assert_eq!(call(&client, "two"), Ok(body("two")));
    assert_eq!(client.stats().fail_overs, 0, "the loss is noticed before the call is sent");
    nodes[1].kill();
    assert_eq!(call(&client, "three"), Ok(body("three")));
    assert_eq!(nodes[2].requests().len(), 1);
}

#[test]
fn a_hung_attempt_goes_to_the_next_target_after_a_tenth_of_a_second() {
    let nodes = cluster(2);
    let client = bound(&nodes);
    nodes[0].behave(Manner::AckLevel);
    let before = Instant::now();
    assert_eq!(call(&client, "two"), Ok(body("two")));
    assert!(before.elapsed() >= Duration::from_millis(100));
    assert_eq!(nodes[0].requests().last().unwrap().number, nodes[1].requests()[0].number);
}

#[test]
fn a_call_that_nobody_wants_any_more_is_given_up_and_other_threads_go_on() {
    let nodes = cluster(1);
    let client = bound(&nodes);
    nodes[0].once(Manner::AckLevel);
    let before = Instant::now();
    std::thread::scope(|threads| {
        let (asked, told) = std::sync::mpsc::channel();
        let waiting = &client;
        let waits = threads.spawn(move || {
            let mut questions = 0;
            let invocation = Invocation::new(GROUP, METHOD).body(body("lost"));
            let ended = waiting.call_while(invocation.within(30 * SECOND), SECOND / 100, || {
                questions += 1;
                asked.send(()).unwrap();
                questions < 20
            });
            (ended, questions)
        });
        // The thread above polls now, and hands that over when it asks itself.
        told.recv().unwrap();
        for _ in 0..100 {
            assert_eq!(call(&client, "two"), Ok(body("two")));
        }
        assert_eq!(waits.join().unwrap(), (None, 20));
    });
    assert!(before.elapsed() < 10 * SECOND);
    // The session has room for it again, and its number is never used twice.
    assert_eq!(call(&client, "three"), Ok(body("three")));
    let wanted = client.call_while(Invocation::new(GROUP, METHOD).body(body("x")), SECOND, || true);
    assert_eq!(wanted, Some(Ok(body("x"))));
}

#[test]
fn the_deadline_is_kept() {
    let nodes = cluster(2);
    nodes.iter().for_each(|node| node.behave(Manner::AckLevel));
    let client = connect([nodes[0].address]);
    let before = Instant::now();
    let deadline = Duration::from_millis(150);
    let result = client.call(Invocation::new(GROUP, METHOD).body(body("x")).within(deadline));
    assert_eq!(result, Err(CallError::DeadlineExceeded));
    assert!(before.elapsed() >= deadline && before.elapsed() < 4 * SECOND);
}

#[test]
fn bytes_that_are_no_frame_cost_the_connection_and_nothing_else() {
    let nodes = cluster(2);
    let client = bound(&nodes);
    nodes[0].behave(Manner::Garbage);
    assert_eq!(call(&client, "two"), Ok(body("two")));
    assert_eq!(nodes[1].requests().len(), 1);
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let nodes = cluster(1);
    let client = connect([nodes[0].address]);
    let large = Bytes::from(vec![7; wire::limits::MAX_BODY]);
    let result =
        client.call(Invocation::new(GROUP, METHOD).body(large.clone()).within(20 * SECOND));
    assert_eq!(result, Ok(large));
}

#[test]
fn addresses_that_do_not_serve_are_told_when_connecting() {
    let none = Client::connect(Vec::<std::net::SocketAddr>::new()).unwrap_err();
    assert_eq!(none, ConnectError::NoAddress);
    let closed = closed_address();
    let error = Client::connect([closed]).unwrap_err();
    assert!(error.to_string().contains(&format!("{closed} does not accept")), "{error}");
    let node = FakeNode::start();
    node.speak(3);
    assert_eq!(
        Client::connect([node.address]).unwrap_err(),
        ConnectError::Version { theirs: wire::VersionRange::new(3, 3) }
    );
    let unresolved = Client::connect(["no port"]).unwrap_err();
    assert!(matches!(unresolved, ConnectError::Resolve(_)));
}

#[test]
fn one_address_that_serves_is_enough() {
    let nodes = cluster(1);
    let client = connect([closed_address(), nodes[0].address, closed_address()]);
    assert_eq!(call(&client, "one"), Ok(body("one")));
}

#[test]
fn many_threads_share_a_client_and_each_gets_its_own_answer() {
    let nodes = cluster(3);
    let client = bound(&nodes);
    let before = nodes[0].requests().len();
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let client = client.clone();
            scope.spawn(move || {
                for n in 0..100u8 {
                    let body = Bytes::from(vec![thread, n]);
                    let result = client.call(
                        Invocation::new(GROUP, METHOD).body(body.clone()).within(20 * SECOND),
                    );
                    assert_eq!(result, Ok(body));
                }
            });
        }
    });
    let mut numbers: Vec<u64> =
        nodes[0].requests()[before..].iter().map(|request| request.number).collect();
    numbers.sort_unstable();
    let first = numbers[0];
    assert_eq!(numbers, (first..first + 800).collect::<Vec<_>>(), "each call once");
}

#[test]
fn threads_that_wait_survive_the_loss_of_the_node_together() {
    let nodes = cluster(3);
    let client = bound(&nodes);
    nodes[0].behave(Manner::AckLevel);
    let before = nodes[0].requests().len();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| call(&client, "held"))).collect();
        nodes[0].wait_for_requests(before + 4);
        nodes[0].kill();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(body("held")));
        }
    });
    assert_eq!(nodes[1].requests().len(), 4);
}

#[test]
fn the_last_client_closes_the_connections() {
    let nodes = cluster(1);
    let client = bound(&nodes);
    let other = client.clone();
    drop(client);
    assert_eq!(call(&other, "still there"), Ok(body("still there")));
    drop(other);
    nodes[0].wait_for_no_stream();
}
