//! A replica in a process of its own. With a node running (`steadfast node --config node.toml`):
//!
//! ```sh
//! cargo build -p steadfast --examples
//! steadfast run --group counter --config node.toml -- target/debug/examples/attached
//! steadfast call counter add '[5]' --at 127.0.0.1:7100
//! ```
use serde::{Deserialize, Serialize};

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

fn main() -> Result<(), steadfast::AttachError> {
    steadfast::attach(|| CounterService::new(Tally::default()))
}
