//! A group that calls another, end to end over three nodes.

use std::time::Duration;

use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::{
    CallError, Client, Context, Execution, GroupOptions, HostOptions, NestedError, Node, Style,
};

const LONG: Duration = Duration::from_secs(20);

#[steadfast::service]
trait Stock {
    fn take(&mut self, pieces: u32) -> Result<u32, String>;
    fn left(&self) -> u32;
}

#[derive(Serialize, Deserialize)]
struct Shelf(u32);

impl Stock for Shelf {
    fn take(&mut self, pieces: u32) -> Result<u32, String> {
        self.0 = self.0.checked_sub(pieces).ok_or("not so many")?;
        Ok(self.0)
    }

    fn left(&self) -> u32 {
        self.0
    }
}

#[steadfast::service]
trait Shop {
    /// Takes so many pieces out of a stock, one by one.
    fn sell(&mut self, context: &Context, stock: String, pieces: u32) -> Result<u32, String>;
}

#[derive(Default, Serialize, Deserialize)]
struct Till {
    sold: u32,
    /// Why something was not sold.
    refused: Vec<String>,
}

fn word(error: &CallError<String>) -> String {
    match error {
        CallError::Service(why) => why.clone(),
        CallError::Nested(NestedError::Unable(why)) => (*why).to_owned(),
        error => format!("{error:?}"),
    }
}

impl Shop for Till {
    fn sell(&mut self, context: &Context, stock: String, pieces: u32) -> Result<u32, String> {
        let stock = StockNested::new(context, stock);
        for _ in 0..pieces {
            if let Err(error) = stock.take(1) {
                self.refused.push(word(&error));
                return Err(word(&error));
            }
            self.sold += 1;
        }
        Ok(self.sold)
    }
}

/// Three nodes with a stock and a shop each.
fn plant(style: Style, execution: Execution) -> (Vec<Node>, Client) {
    let nodes = cluster::start(3);
    let group = GroupOptions { style, ..GroupOptions::default() };
    for node in &nodes {
        let options = HostOptions { group, ..HostOptions::default() };
        node.host("stock", options, || StockService::new(Shelf(100))).expect("a good name");
        let options = HostOptions { group, execution };
        node.host("shop", options, || ShopService::new(Till::default())).expect("a good name");
    }
    for node in &nodes {
        for group in ["stock", "shop"] {
            cluster::wait_for_replicas(node, group, 3);
        }
    }
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    (nodes, client)
}

fn sells(style: Style) {
    let (mut nodes, client) = plant(style, Execution::Thread);
    let shop = ShopClient::new(&client, "shop").within(LONG);
    let stock = StockClient::new(&client, "stock").within(LONG);
    assert_eq!(shop.sell("stock".into(), 3), Ok(3));
    assert_eq!(shop.sell("stock".into(), 20), Ok(23));
    assert_eq!(stock.left(), Ok(77));
    // The first node is gone, and the others go on.
    nodes.remove(0).stop().expect("it stops");
    assert_eq!(shop.sell("stock".into(), 7), Ok(30));
    assert_eq!(stock.left(), Ok(70));
    let refused = CallError::Service("not so many".to_owned());
    assert_eq!(shop.sell("stock".into(), 71), Err(refused));
    assert_eq!(stock.left(), Ok(0));
    let states = cluster::states(&nodes, "shop");
    assert_eq!(states[0], states[1], "both were told the same");
    let counters = nodes.iter().map(|node| node.status().counters);
    assert!(counters.map(|counters| counters.nested_calls).sum::<u64>() > 0);
}

#[test]
fn a_semi_active_group_calls_another_and_each_call_is_done_once() {
    sells(Style::SemiActive);
}

#[test]
fn an_active_group_calls_another_and_each_call_is_done_once() {
    sells(Style::Active);
}

#[test]
fn a_warm_passive_group_calls_another_and_each_call_is_done_once() {
    sells(Style::WarmPassive);
}

#[test]
fn what_cannot_be_called_is_an_error_with_the_remedy() {
    let (_nodes, client) = plant(Style::SemiActive, Execution::Thread);
    let shop = ShopClient::new(&client, "shop").within(LONG);
    let why = |stock: &str| match shop.sell(stock.into(), 1) {
        Err(CallError::Service(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why("stok"), "NoSuchGroup(\"stok\")");
    assert_eq!(why("shop"), "Nested(Cycle)");
    let stock = StockClient::new(&client, "stock").within(LONG);
    assert_eq!(stock.left(), Ok(100));
    // A handler may make so many calls.
    let many = CallError::Service("not so many".to_owned());
    assert_eq!(shop.sell("stock".into(), 101), Err(many));
}

#[test]
fn a_handler_on_the_data_plane_cannot_call() {
    let (_nodes, client) = plant(Style::SemiActive, Execution::Inline);
    let shop = ShopClient::new(&client, "shop").within(LONG);
    let Err(CallError::Service(why)) = shop.sell("stock".into(), 1) else { panic!("it was sold") };
    assert!(why.contains("Execution::Thread"), "{why}");
}

#[test]
fn a_context_of_a_test_says_that_it_calls_nobody() {
    let context = Context::new(steadfast::Time(1), 2, steadfast::ClientId(3), 4);
    let mut till = Till::default();
    let why = till.sell(&context, "stock".into(), 1).expect_err("nobody is there");
    assert!(why.contains("a test's own"), "{why}");
}
