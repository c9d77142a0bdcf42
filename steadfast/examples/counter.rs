//! A service, a node and a client: `cargo run -p steadfast --example counter`
use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{Client, HostOptions, Node, NodeConfig};

#[steadfast::service]
trait Counter {
    /// Adds `n` and returns the sum.
    fn add(&mut self, n: u64) -> u64;
}

#[derive(Default, Serialize, Deserialize)]
struct Tally(u64);

impl Counter for Tally {
    fn add(&mut self, n: u64) -> u64 {
        self.0 += n;
        self.0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let node = Node::start(NodeConfig::single())?;
    node.host("counter", HostOptions::default(), || CounterService::new(Tally::default()))?;

    let client = Client::connect([node.client_address().ok_or("the node takes no clients")?])?;
    let counter = CounterClient::new(&client, "counter").within(Duration::from_millis(500));
    for n in 1..=10 {
        println!("add {n:2}: the counter stands at {}", counter.add(n)?);
    }

    node.stop()?;
    Ok(())
}
