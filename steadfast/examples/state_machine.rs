//! A replicated state machine with a typed client: `cargo run -p steadfast --example state_machine`
//!
//! Three nodes keep a ledger. A client moves money while the primary's node ends. Each transfer
//! happens exactly once, and the sums are right afterwards.
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast::{CallError, Client, HostOptions, Node, NodeConfig, NodeId};

/// The example fails if anything takes longer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Why the ledger refuses a transfer. The client gets it as `CallError::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
enum TransferError {
    #[error("there is no account {0}")]
    NoAccount(String),
    #[error("the account has only {balance}")]
    Overdrawn { balance: u64 },
}

#[steadfast::service]
trait Ledger {
    /// Opens an account, or adds to it.
    fn pay_in(&mut self, account: String, amount: u64);
    /// Moves an amount; returns what is left at the first account.
    fn transfer(&mut self, from: String, to: String, amount: u64) -> Result<u64, TransferError>;
    /// All accounts. A method that takes `&self` is a read: nothing is ordered for it.
    fn accounts(&self) -> BTreeMap<String, u64>;
}

/// The state. Serde carries it to new replicas. A `BTreeMap` has the same order everywhere.
#[derive(Default, Serialize, Deserialize)]
struct Accounts(BTreeMap<String, u64>);

impl Accounts {
    fn balance(&self, account: &str) -> Result<u64, TransferError> {
        self.0.get(account).copied().ok_or_else(|| TransferError::NoAccount(account.to_owned()))
    }
}

impl Ledger for Accounts {
    fn pay_in(&mut self, account: String, amount: u64) {
        *self.0.entry(account).or_default() += amount;
    }

    /// Every check comes before the first change, so that an error changes nothing.
    fn transfer(&mut self, from: String, to: String, amount: u64) -> Result<u64, TransferError> {
        let balance = self.balance(&from)?;
        self.balance(&to)?;
        let left = balance.checked_sub(amount).ok_or(TransferError::Overdrawn { balance })?;
        self.0.insert(from, left);
        *self.0.entry(to).or_default() += amount;
        Ok(left)
    }

    fn accounts(&self) -> BTreeMap<String, u64> {
        self.0.clone()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rings = steadfast::free_ring_addresses(3);
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let node = Node::start(NodeConfig::member(NodeId(id), &rings))?;
        node.host("ledger", HostOptions::default(), || LedgerService::new(Accounts::default()))?;
        nodes.push(node);
    }
    let primary = nodes[0].wait_for_replicas("ledger", 3, TIMEOUT)?;

    let addresses: Vec<_> = nodes.iter().filter_map(Node::client_address).collect();
    let client = Client::connect(addresses)?;
    let ledger = LedgerClient::new(&client, "ledger").within(TIMEOUT);
    ledger.pay_in("alice".into(), 1_000)?;
    ledger.pay_in("bob".into(), 0)?;

    // The client calls on while the primary's node ends. No call fails, and none is repeated.
    let transfers = transfer_one_by_one(ledger.clone(), 400);
    for number in 1..=100 {
        assert_eq!(transfers.recv_timeout(TIMEOUT)?, 1_000 - number);
    }
    println!("100 transfers are done; the primary, {primary}, ends");
    nodes.retain(|node| node.id() != primary); // dropping a node stops it
    for number in 101..=400 {
        assert_eq!(transfers.recv_timeout(TIMEOUT)?, 1_000 - number, "once, and in order");
    }
    let primary = nodes[0].wait_for_replicas("ledger", 2, TIMEOUT)?;
    println!("400 transfers are done; the primary is {primary}");

    let accounts = ledger.accounts()?;
    println!("the accounts: {accounts:?}");
    assert_eq!((accounts["alice"], accounts["bob"]), (600, 400));

    // The service's own errors are typed, and tell that nothing has happened.
    let refused = ledger.transfer("alice".into(), "bob".into(), 601);
    assert_eq!(refused, Err(CallError::Service(TransferError::Overdrawn { balance: 600 })));
    let refused = ledger.transfer("alice".into(), "carol".into(), 1);
    assert_eq!(refused, Err(CallError::Service(TransferError::NoAccount("carol".into()))));
    assert_eq!(ledger.accounts()?, accounts);
    Ok(())
}

/// Moves one from alice to bob so many times, in a thread; sends the rest after each.
fn transfer_one_by_one(ledger: LedgerClient, count: usize) -> Receiver<u64> {
    let (done, transfers) = channel();
    thread::spawn(move || {
        for _ in 0..count {
            let left = ledger.transfer("alice".into(), "bob".into(), 1).expect("a replica answers");
            done.send(left).expect("main counts the transfers");
        }
    });
    transfers
}
