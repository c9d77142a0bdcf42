//! A stateless service with load-aware fail-over: `cargo run -p steadfast --example stateless`
//!
//! Any of three nodes resizes a picture. The client draws two of them for each call and asks the
//! less loaded one, so a slow node gets few calls. One node ends, and the calls go on.
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{Balancing, Client, HostOptions, Node, NodeConfig, NodeId, Policy, Style};

const SLOW: NodeId = NodeId(3);
/// The example fails if anything takes longer.
const TIMEOUT: Duration = Duration::from_secs(20);

#[steadfast::service]
trait Resizer {
    /// Resizes a picture; returns the node that did it.
    fn resize(&mut self, picture: Vec<u8>) -> NodeId;
}

/// A stateless service keeps nothing between calls. This one knows where it runs.
#[derive(Serialize, Deserialize)]
struct Worker(NodeId);

impl Resizer for Worker {
    fn resize(&mut self, _picture: Vec<u8>) -> NodeId {
        // This stands for the work, which takes a slow host ten times as long.
        thread::sleep(Duration::from_millis(if self.0 == SLOW { 20 } else { 2 }));
        self.0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = HostOptions::default().style(Style::Stateless);
    let rings = steadfast::free_ring_addresses(3);
    let mut nodes = Vec::new();
    for id in (1..=3).map(NodeId) {
        let mut config = NodeConfig::member(id, &rings);
        // The manager ranks the nodes by their hosts' load: clients go to the least loaded next.
        config.manager.on = true;
        let node = Node::start(config)?;
        node.host("resizer", options, move || ResizerService::new(Worker(id)))?;
        nodes.push(node);
    }
    nodes[0].wait_for_replicas("resizer", 3, TIMEOUT)?;

    let addresses: Vec<_> = nodes.iter().filter_map(Node::client_address).collect();
    let policy = Policy::default().balancing(Balancing::TwoChoices);
    let client = Client::builder().policy(policy).connect(addresses)?;
    let resizer = ResizerClient::new(&client, "resizer").within(TIMEOUT);

    let answers = call(resizer.clone(), 600);
    let calls = count(&answers, 300)?;
    println!("calls by node: {calls:?}");
    assert!(calls.get(&SLOW).is_none_or(|&calls| calls < 100), "the slow node gets few");

    // The node with most calls ends while the client calls. No call fails.
    let busiest = calls.iter().max_by_key(|&(_, calls)| calls).map(|(&id, _)| id);
    nodes.retain(|node| Some(node.id()) != busiest); // dropping a node stops it
    println!("calls by node while one ends: {:?}", count(&answers, 300)?);
    let calls = count(&call(resizer, 100), 100)?;
    println!("calls by node afterwards: {calls:?}");
    assert!(calls.keys().all(|&id| Some(id) != busiest), "it has ended");
    Ok(())
}

/// Calls so often, in a thread; sends the node that answers each call.
fn call(resizer: ResizerClient, count: u32) -> Receiver<NodeId> {
    let (done, answers) = channel();
    thread::spawn(move || {
        for _ in 0..count {
            let node = resizer.resize(vec![0; 1_000]).expect("two nodes are up");
            done.send(node).expect("main counts the answers");
        }
    });
    answers
}

/// Counts the next answers of each node.
fn count(answers: &Receiver<NodeId>, next: u32) -> Result<BTreeMap<NodeId, u32>, RecvTimeoutError> {
    let mut calls = BTreeMap::new();
    for _ in 0..next {
        *calls.entry(answers.recv_timeout(TIMEOUT)?).or_default() += 1;
    }
    Ok(calls)
}
