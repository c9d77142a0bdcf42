//! A group that calls another: `cargo run -p steadfast --example nested`
//!
//! A shop sells what a stock has. Both are groups of three replicas; each order is taken from the
//! stock exactly once, whichever node fails.
use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{Client, Context, HostOptions, Node, NodeConfig, NodeId};

#[steadfast::service]
trait Stock {
    /// Takes `pieces` out; says how many are left.
    fn take(&mut self, pieces: u32) -> Result<u32, String>;
}

#[derive(Serialize, Deserialize)]
struct Shelf(u32);

impl Stock for Shelf {
    fn take(&mut self, pieces: u32) -> Result<u32, String> {
        let left = self.0.checked_sub(pieces);
        self.0 = left.ok_or_else(|| format!("{} are left", self.0))?;
        Ok(self.0)
    }
}

#[steadfast::service]
trait Shop {
    /// Sells `pieces`; says how many were sold so far.
    fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String>;
}

#[derive(Default, Serialize, Deserialize)]
struct Till {
    sold: u32,
}

impl Shop for Till {
    fn sell(&mut self, context: &Context, pieces: u32) -> Result<u32, String> {
        let stock = StockNested::new(context, "stock");
        stock.take(pieces).map_err(|error| error.to_string())?;
        self.sold += pieces;
        Ok(self.sold)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rings = steadfast::free_ring_addresses(3);
    let nodes: Result<Vec<Node>, _> =
        (1..=3).map(|id| Node::start(NodeConfig::member(NodeId(id), &rings))).collect();
    let nodes = nodes?;
    for node in &nodes {
        node.host("stock", HostOptions::default(), || StockService::new(Shelf(10)))?;
        node.host("shop", HostOptions::default(), || ShopService::new(Till::default()))?;
    }

    let addresses = nodes.iter().filter_map(Node::client_address);
    let client = Client::connect(addresses.collect::<Vec<_>>())?;
    let shop = ShopClient::new(&client, "shop").within(Duration::from_secs(5));
    for pieces in [3, 4, 5] {
        match shop.sell(pieces) {
            Ok(sold) => println!("sold {pieces}: {sold} so far"),
            Err(error) => println!("not sold {pieces}: {error}"),
        }
    }

    for node in nodes {
        node.stop()?;
    }
    Ok(())
}
