//! The asynchronous client against scripted nodes on loopback.

mod fake;

use std::time::{Duration, Instant};

use bytes::Bytes;
use fake::{FakeNode, GROUP, METHOD, Manner, SECOND, closed_address, cluster, targets};
use steadfast_client::{AsyncClient, CallError, Cause, ConnectError, Event, Invocation};
use wire::client::Outcome;

fn body(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn connect(addresses: [std::net::SocketAddr; 1]) -> AsyncClient {
    AsyncClient::connect(addresses).await.unwrap()
}

async fn call(client: &AsyncClient, text: &'static str) -> Result<Bytes, CallError> {
    client.call(Invocation::new(GROUP, METHOD).body(body(text)).within(5 * SECOND)).await
}

/// A client that is bound, and connected to the first two targets.
async fn bound(nodes: &[FakeNode]) -> AsyncClient {
    let client = connect([nodes.last().unwrap().address]).await;
    assert_eq!(call(&client, "hello").await, Ok(body("hello")));
    while client.stats().connects < nodes.len().min(3) as u64 {
        call(&client, "hello").await.unwrap();
    }
    client
}

#[tokio::test]
async fn a_call_finds_the_group_through_any_node() {
    let nodes = cluster(3);
    let client = connect([nodes[2].address]).await;
    assert_eq!(call(&client, "one").await, Ok(body("one")));
    assert_eq!(nodes[0].requests().len(), 1);
}

#[tokio::test]
async fn a_redirection_is_followed() {
    let nodes = cluster(3);
    let client = bound(&nodes).await;
    let news = targets(2, &[&nodes[2], &nodes[0]]);
    nodes[0].once(Manner::Answer(Outcome::NotPrimary, Some(news)));
    assert_eq!(call(&client, "two").await, Ok(body("two")));
    assert_eq!(nodes[2].requests().len(), 1);
}

#[tokio::test]
async fn a_closed_connection_is_survived_on_the_warm_one_with_the_same_number() {
    let nodes = cluster(3);
    let client = bound(&nodes).await;
    client.take_events();
    nodes[0].behave(Manner::Close);
    assert_eq!(call(&client, "two").await, Ok(body("two")));
    let (first, second) = (nodes[0].requests(), nodes[1].requests());
    assert_eq!(first.last().unwrap().number, second[0].number);
    let moved = client.take_events().into_iter().find_map(|(_, event)| match event {
        Event::FailedOver { from, to, cause, .. } => Some((from, to, cause)),
        _ => None,
    });
    assert_eq!(moved, Some((nodes[0].address, nodes[1].address, Cause::Lost)));
}

#[tokio::test]
async fn a_hung_attempt_goes_to_the_next_target() {
    let nodes = cluster(2);
    let client = bound(&nodes).await;
    nodes[0].behave(Manner::AckLevel);
    assert_eq!(call(&client, "two").await, Ok(body("two")));
    assert_eq!(nodes[0].requests().last().unwrap().number, nodes[1].requests()[0].number);
}

#[tokio::test]
async fn the_deadline_is_kept() {
    let nodes = cluster(1);
    nodes[0].behave(Manner::AckLevel);
    let client = connect([nodes[0].address]).await;
    let before = Instant::now();
    let deadline = Duration::from_millis(80);
    let result = client.call(Invocation::new(GROUP, METHOD).body(body("x")).within(deadline)).await;
    assert_eq!(result, Err(CallError::DeadlineExceeded));
    assert!(before.elapsed() >= deadline && before.elapsed() < 4 * SECOND);
    let long = Duration::from_secs(61);
    let result = client.call(Invocation::new(GROUP, METHOD).body(body("x")).within(long)).await;
    assert_eq!(result, Err(CallError::DeadlineTooLong(long)));
}

#[tokio::test]
async fn bytes_that_are_no_frame_cost_the_connection_and_nothing_else() {
    let nodes = cluster(2);
    let client = bound(&nodes).await;
    nodes[0].behave(Manner::Garbage);
    assert_eq!(call(&client, "two").await, Ok(body("two")));
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions() {
    let nodes = cluster(1);
    let client = connect([nodes[0].address]).await;
    let large = Bytes::from(vec![7; wire::limits::MAX_BODY]);
    let result =
        client.call(Invocation::new(GROUP, METHOD).body(large.clone()).within(20 * SECOND)).await;
    assert_eq!(result, Ok(large));
}

#[tokio::test]
async fn addresses_that_do_not_serve_are_told_when_connecting() {
    let closed = closed_address();
    let error = AsyncClient::connect([closed]).await.unwrap_err();
    assert!(error.to_string().contains(&format!("{closed} does not accept")), "{error}");
    let node = FakeNode::start();
    node.speak(3);
    let error = AsyncClient::connect([node.address]).await.unwrap_err();
    assert_eq!(error, ConnectError::Version { theirs: wire::VersionRange::new(3, 3) });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_share_a_client_and_each_gets_its_own_answer() {
    let nodes = cluster(3);
    let client = bound(&nodes).await;
    let tasks: Vec<_> = (0..200u8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let body = Bytes::from(vec![n; 3]);
                assert_eq!(
                    client
                        .call(Invocation::new(GROUP, METHOD).body(body.clone()).within(20 * SECOND))
                        .await,
                    Ok(body)
                );
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_future_gives_its_call_up_and_frees_its_number() {
    let nodes = cluster(1);
    let client = bound(&nodes).await;
    nodes[0].once(Manner::AckLevel);
    let count = nodes[0].requests().len();
    let (nodes, client) = (std::sync::Arc::new(nodes), client);
    let waiter = tokio::task::spawn_blocking({
        let nodes = nodes.clone();
        move || nodes[0].wait_for_requests(count + 1)
    });
    tokio::select! {
        _ = call(&client, "held") => panic!("nothing answers it"),
        waited = waiter => waited.unwrap(),
    }
    assert_eq!(call(&client, "next").await, Ok(body("next")));
    let last = nodes[0].requests().pop().unwrap();
    assert_eq!(last.unanswered, last.number, "the number below is not waited for");
}

#[tokio::test]
async fn the_last_client_closes_the_connections() {
    let nodes = cluster(1);
    let client = bound(&nodes).await;
    let other = client.clone();
    drop(client);
    assert_eq!(call(&other, "still there").await, Ok(body("still there")));
    drop(other);
    tokio::task::spawn_blocking(move || nodes[0].wait_for_no_stream()).await.unwrap();
}
