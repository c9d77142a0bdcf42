//! Calls the built-in counter of a running cluster:
//! `cargo run --manifest-path examples/client/Cargo.toml -- 127.0.0.1:7100`

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{CallError, Client};

/// Why a counter does not count.
#[derive(Debug, Serialize, Deserialize)]
enum CounterError {
    Overflow(u64),
}

/// The service's trait: in a crate that service and clients share.
#[steadfast::service]
trait Counter {
    /// Adds `n` and returns the sum.
    fn add(&mut self, n: u64) -> Result<u64, CounterError>;
    /// The sum.
    fn get(&self) -> u64;
}

fn main() -> Result<(), Box<dyn Error>> {
    let addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        return Err("give the client addresses of nodes, such as 127.0.0.1:7100".into());
    }
    let client = Client::connect(addresses)?;
    let counter = CounterClient::new(&client, "counter").within(Duration::from_secs(5));
    match counter.add(1) {
        Ok(sum) => println!("the counter stands at {sum}"),
        Err(CallError::Service(CounterError::Overflow(sum))) => println!("full at {sum}"),
        Err(error) => {
            let executed = match error.was_executed() {
                Some(true) => "was executed",
                Some(false) => "was not executed",
                None => "may have been executed",
            };
            return Err(format!("{error:?}: the call {executed}").into());
        }
    }
    println!("read without ordering: {}", counter.get()?);
    Ok(())
}
