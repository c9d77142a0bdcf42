//! Two groups on disk, of which one calls the other: every node's process is killed at once, under
//! load, and each call is done once. The nodes are this program as well.

use std::env;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{Client, Context, Durability, GroupOptions, HostOptions, Node, NodeConfig, NodeId};

/// Longer than anything here may take: a test that waits so long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

const NODES: usize = 3;

/// So often all are killed, each time after so many answered calls.
const LIVES: u32 = 5;
const CALLS: u32 = 20;

/// Pieces of each sale, taken out one by one.
const PIECES: u32 = 3;

/// Says that this process is a node: its number, folder, client address, and all ring addresses.
const NODE: &str = "STEADFAST_TEST_NODE";

#[steadfast::service]
trait Stock {
    /// Takes one piece; says how many were taken.
    fn take(&mut self) -> u32;
}

#[derive(Default, Serialize, Deserialize)]
struct Shelf(u32);

impl Stock for Shelf {
    fn take(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

#[steadfast::service]
trait Shop {
    /// The stock's reply to each of the sale's pieces.
    fn sell(&mut self, context: &Context) -> Result<Vec<u32>, String>;
}

#[derive(Default, Serialize, Deserialize)]
struct Till {
    sales: u32,
}

impl Shop for Till {
    fn sell(&mut self, context: &Context) -> Result<Vec<u32>, String> {
        let stock = StockNested::new(context, "stock");
        let pieces = (0..PIECES).map(|_| stock.take().map_err(|error| error.to_string()));
        self.sales += 1;
        pieces.collect()
    }
}

fn serve(words: &str) {
    let mut words = words.split('|');
    let mut next = || words.next().expect("it was given");
    let id = NodeId(next().parse().expect("a number"));
    let folder = Path::new(next()).to_owned();
    let client: SocketAddr = next().parse().expect("an address");
    let rings: Vec<SocketAddr> = words.map(|ring| ring.parse().expect("an address")).collect();
    let mut config = NodeConfig::member(id, &rings);
    config.client = Some(client);
    config.data_dir = Some(folder.join("data"));
    config.storage = Some(folder.join("store"));
    // Processes die, hosts do not: nothing here is about the time-out.
    config.ring.timing.token_timeout = 2 * TIMEOUT;
    config.ring.timing.token_timeout_max = 2 * TIMEOUT;
    let node = Node::start(config).expect("free ports");
    let group = GroupOptions { durability: Durability::Disk, ..GroupOptions::default() };
    let options = HostOptions { group, ..HostOptions::default() };
    node.host("stock", options, || StockService::new(Shelf::default())).expect("a good name");
    node.host("shop", options, || ShopService::new(Till::default())).expect("a good name");
    println!("it takes calls");
    loop {
        thread::park(); // until it is killed
    }
}

/// The nodes' processes; they end with this.
struct Cluster {
    words: Vec<String>,
    processes: Vec<Child>,
}

impl Cluster {
    fn start(&mut self) {
        let own = env::current_exe().expect("this program has a path");
        let run = |words| {
            let mut command = Command::new(&own);
            command.env(NODE, words).stdout(Stdio::piped()).spawn().expect("it runs")
        };
        self.processes = self.words.iter().map(run).collect();
        for process in &mut self.processes {
            let mut line = String::new();
            let told = process.stdout.as_mut().expect("it is piped");
            BufReader::new(told).read_line(&mut line).expect("it can be read");
            assert_eq!(line.trim(), "it takes calls");
        }
    }

    fn kill(&mut self) {
        for process in &mut self.processes {
            process.kill().expect("it runs");
        }
        for mut process in self.processes.drain(..) {
            process.wait().expect("it ends");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sells, again and again, one call after the other, and tells what came of each.
fn sell(addresses: Vec<SocketAddr>) -> Receiver<Vec<u32>> {
    let (told, sales) = channel();
    thread::spawn(move || {
        let client = Client::connect(&addresses).expect("one of the nodes is up");
        let shop = ShopClient::new(&client, "shop").within(TIMEOUT);
        loop {
            let sale = shop.sell().expect("answered when the nodes are back");
            if told.send(sale).is_err() {
                return;
            }
        }
    });
    sales
}

/// No one else takes anything: each sale has the next pieces, whichever node died while they were
/// taken.
fn nodes_that_are_killed_while_groups_call_each_other_do_each_call_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let addresses = steadfast::free_ring_addresses(2 * NODES);
    let (rings, clients) = addresses.split_at(NODES);
    let all: Vec<String> = rings.iter().map(SocketAddr::to_string).collect();
    let words = (1..).zip(clients).map(|(id, client): (u32, _)| {
        let here = folder.path().join(format!("node-{id}"));
        std::fs::create_dir(&here).expect("a new folder");
        format!("{id}|{}|{client}|{}", here.display(), all.join("|"))
    });
    let mut cluster = Cluster { words: words.collect(), processes: Vec::new() };
    cluster.start();
    let sales = sell(clients.to_vec());
    let mut taken = 0;
    for life in 0..LIVES {
        for _ in 0..CALLS {
            let sale = sales.recv_timeout(TIMEOUT).expect("the client goes on");
            let next: Vec<u32> = (taken + 1..=taken + PIECES).collect();
            assert_eq!(sale, next, "in life {life}");
            taken += PIECES;
        }
        cluster.kill();
        cluster.start();
    }
    let sale = sales.recv_timeout(TIMEOUT).expect("the client goes on");
    assert_eq!(sale.first(), Some(&(taken + 1)));
}

fn main() {
    match env::var(NODE) {
        Ok(words) => serve(&words),
        Err(_) => nodes_that_are_killed_while_groups_call_each_other_do_each_call_once(),
    }
}
