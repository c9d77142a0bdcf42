//! A generated service and its clients, end to end over three nodes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::{
    AsyncClient, Balancing, BytesCallError, CallError, Client, Context, HostOptions, Invocation,
    Node, Policy, Reading, Refusal, State,
};

const GROUP: &str = "account";
const LONG: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Overdrawn {
    balance: u64,
}

#[steadfast::service]
trait Account {
    fn pay_in(&mut self, cents: u64) -> u64;
    fn pay_out(&mut self, cents: u64) -> Result<u64, Overdrawn>;
    fn balance(&self) -> u64;
    /// The ordered time and a random number, as the last caller saw them.
    fn stamp(&mut self, context: &Context) -> (u64, u64);
    /// Waits at the gate.
    fn pass(&mut self) -> u64;
    fn fail(&mut self);
    fn large(&self, bytes: u32) -> Vec<u8>;
}

#[derive(Default, Serialize, Deserialize)]
struct Balance {
    cents: u64,
    stamp: (u64, u64),
    passed: u64,
}

static GATE: Mutex<()> = Mutex::new(());

fn gate() -> MutexGuard<'static, ()> {
    GATE.lock().expect("nobody panics at the gate")
}

impl Account for Balance {
    fn pay_in(&mut self, cents: u64) -> u64 {
        self.cents += cents;
        self.cents
    }

    fn pay_out(&mut self, cents: u64) -> Result<u64, Overdrawn> {
        self.cents = self.cents.checked_sub(cents).ok_or(Overdrawn { balance: self.cents })?;
        Ok(self.cents)
    }

    fn balance(&self) -> u64 {
        self.cents
    }

    fn stamp(&mut self, context: &Context) -> (u64, u64) {
        self.stamp = (context.now().0, context.random().next_u64());
        self.stamp
    }

    fn pass(&mut self) -> u64 {
        drop(gate());
        self.passed += 1;
        self.passed
    }

    fn fail(&mut self) {
        panic!("this method always fails");
    }

    fn large(&self, bytes: u32) -> Vec<u8> {
        vec![7; bytes as usize]
    }
}

/// Three nodes with a replica each, all with the state.
fn three_nodes() -> Vec<Node> {
    let nodes = cluster::start(3);
    for node in &nodes {
        node.host(GROUP, HostOptions::default(), || AccountService::new(Balance::default()))
            .expect("a new group");
    }
    for node in &nodes {
        cluster::wait_for_replicas(node, GROUP, 3);
    }
    nodes
}

/// Whichever replica may answer is asked.
const ANY: Balancing = Balancing::Random;

fn client(nodes: &[Node]) -> Client {
    Client::connect(cluster::addresses(nodes)).expect("the nodes are up")
}

/// A method with `&self` is answered by one replica, and nothing is ordered for it.
#[test]
fn what_takes_a_shared_reference_is_read_without_ordering() {
    let nodes = three_nodes();
    let client = Client::builder()
        .policy(Policy::default().balancing(ANY))
        .connect(cluster::addresses(&nodes))
        .expect("up");
    let account = AccountClient::new(&client, GROUP).within(LONG);
    account.pay_in(5).expect("paid");
    let executed = |node: &Node| {
        let status = node.status();
        status.groups.iter().find_map(|group| group.executed.filter(|_| group.name == GROUP))
    };
    let before = nodes[0].status().ring.delivered;
    for _ in 0..6 {
        assert_eq!(account.balance(), Ok(5), "whichever replica is asked");
    }
    let stale = account.reading(Reading::Stale(LONG));
    assert_eq!(stale.balance(), Ok(5));
    // That the payment was executed may be told meanwhile.
    assert!(nodes[0].status().ring.delivered <= before + 1);
    assert_eq!(executed(&nodes[0]), Some(1), "reads are in no history");
    // The node does not believe the client that a method changes nothing.
    let invocation = Invocation::new(GROUP, "pay_in").json().body("[7]").within(LONG);
    let refused = client.call(invocation.reading(Reading::Linearizable));
    let Err(BytesCallError::Refused { refusal: Refusal::NotReadOnly, reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("pay_in(cents: u64)"), "{reason}");
    assert_eq!(state(&nodes).cents, 5);
}

/// The state of every replica, which must be one and the same.
fn state(nodes: &[Node]) -> Balance {
    let states = cluster::states(nodes, GROUP);
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "replicas differ: {states:?}");
    let mut balance = Balance::default();
    balance.restore(&states[0]).expect("the service's own state");
    balance
}

#[test]
fn calls_are_executed_by_every_replica_and_errors_are_typed() {
    let nodes = three_nodes();
    let client = client(&nodes);
    let account = AccountClient::new(&client, GROUP).within(LONG);
    assert_eq!(account.pay_in(100), Ok(100));
    assert_eq!(account.pay_out(30), Ok(70));
    assert_eq!(account.pay_out(71), Err(CallError::Service(Overdrawn { balance: 70 })));
    assert_eq!(account.balance(), Ok(70));
    let stamp = account.stamp().expect("every replica is up");
    assert_ne!(stamp.0, 0, "the wall clock is ordered with the request");

    let lost = AccountClient::new(&client, "acount");
    assert_eq!(lost.balance(), Err(CallError::NoSuchGroup("acount".to_owned())));

    // Calls of the bytes' own level are refused with reasons; the state is what it was.
    let refused = |method: &str, body: &[u8]| {
        let answer = client.call(Invocation::new(GROUP, method).body(body.to_vec()).within(LONG));
        match answer {
            Err(BytesCallError::Refused { refusal, reason }) => (refusal, reason),
            other => panic!("not refused: {other:?}"),
        }
    };
    let (refusal, reason) = refused("pay_in", b"");
    assert_eq!(refusal, Refusal::BadArguments);
    assert!(reason.contains("pay_in(cents: u64) -> u64"), "{reason}");
    let (refusal, reason) = refused("payin", &[1]);
    assert_eq!(refusal, Refusal::NoSuchMethod);
    assert!(reason.contains("pay_in(cents: u64) -> u64"), "{reason}");

    account.balance().expect("after all other calls at every replica");
    let state = settled(&nodes);
    assert_eq!((state.cents, state.stamp), (70, stamp));
}

/// The state once every replica has executed what the first one has.
fn settled(nodes: &[Node]) -> Balance {
    let executed = |node: &Node| {
        let group = node.status().groups.into_iter().find(|group| group.name == GROUP);
        group.and_then(|group| group.executed).expect("it has a replica")
    };
    let goal = nodes.iter().map(executed).max().expect("there are nodes");
    for node in nodes {
        let events = node.subscribe();
        while executed(node) < goal {
            events.recv_timeout(LONG).expect("the replica catches up");
        }
    }
    state(nodes)
}

#[test]
fn a_method_that_fails_is_refused_and_the_service_goes_on() {
    let nodes = three_nodes();
    let account = AccountClient::new(&client(&nodes), GROUP).within(LONG);
    let Err(CallError::<Infallible>::Refused { refusal, .. }) = account.fail() else {
        panic!("a panic has no result");
    };
    assert_eq!(refusal, Refusal::Failed);
    assert_eq!(account.pay_in(1), Ok(1));
}

#[test]
fn what_is_too_large_is_refused_in_both_directions() {
    let nodes = three_nodes();
    let client = client(&nodes);
    let body = vec![0; wire::limits::MAX_BODY + 1];
    let Err(BytesCallError::Refused { refusal: Refusal::TooLarge, reason }) =
        client.call(Invocation::new(GROUP, "pay_in").body(body).within(LONG))
    else {
        panic!("taken, or refused otherwise");
    };
    assert!(reason.contains("1048576"), "the limit is named: {reason}");

    let account = AccountClient::new(&client, GROUP).within(LONG);
    let most = wire::limits::MAX_BODY as u32 - 32;
    assert_eq!(account.large(most).map(|bytes| bytes.len()), Ok(most as usize));
    let Err(CallError::Refused { refusal, .. }) = account.large(most + 32) else {
        panic!("a reply above the limit came through");
    };
    assert_eq!(refusal, Refusal::ReplyTooLarge);
    assert_eq!(account.pay_in(1), Ok(1));
}

#[test]
fn a_deadline_is_kept_and_the_late_call_is_executed_once() {
    let nodes = three_nodes();
    let account = AccountClient::new(&client(&nodes), GROUP).within(LONG);
    let closed = gate();
    let hurried = account.within(Duration::from_millis(100)).pass();
    assert_eq!(hurried, Err(CallError::DeadlineExceeded));
    drop(closed);
    assert_eq!(account.pass(), Ok(2), "the late call was executed before, once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn async_clients_call_all_at_once() {
    let nodes = tokio::task::spawn_blocking(three_nodes).await.expect("three nodes");
    let client = AsyncClient::connect(cluster::addresses(&nodes)).await.expect("they are up");
    let account = AccountAsyncClient::new(&client, GROUP).within(LONG);
    let calls: Vec<_> = (1..=50)
        .map(|cents| {
            let account = account.clone();
            tokio::spawn(async move { account.pay_in(cents).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("every replica is up");
    }
    assert_eq!(account.balance().await, Ok(50 * 51 / 2));
    assert_eq!(account.pay_out(9_999).await, Err(CallError::Service(Overdrawn { balance: 1_275 })));
}

#[test]
fn the_loss_of_the_primary_under_load_loses_and_repeats_nothing() {
    let mut nodes = three_nodes();
    let primary = cluster::wait_for_replicas(&nodes[0], GROUP, 3).primary.expect("all have it");
    let addresses = cluster::addresses(&nodes);
    let (paid, payments) = channel();
    let acknowledged: u64 = thread::scope(|scope| {
        let payer = || {
            let (addresses, paid) = (&addresses, paid.clone());
            scope.spawn(move || pay_in_one_by_one(addresses, &paid))
        };
        let payers: Vec<_> = (0..4).map(|_| payer()).collect();
        wait_for_payments(&payments, 200);
        let index = nodes.iter().position(|node| node.id() == primary.node).expect("it is ours");
        nodes.remove(index).stop().expect("it hands over and ends");
        wait_for_payments(&payments, 200);
        drop(payments);
        payers.into_iter().map(|payer| payer.join().expect("no payment failed")).sum()
    });
    let account = AccountClient::new(&client(&nodes), GROUP).within(LONG);
    assert_eq!(account.balance(), Ok(acknowledged));
    assert_eq!(settled(&nodes).cents, acknowledged);
}

/// Pays until nobody listens; returns how many payments were acknowledged.
fn pay_in_one_by_one(addresses: &[SocketAddr], paid: &Sender<()>) -> u64 {
    let client = Client::connect(addresses).expect("the nodes are up");
    let account = AccountClient::new(&client, GROUP).within(LONG);
    for acknowledged in 1.. {
        account.pay_in(1).expect("two of three replicas are always up");
        if paid.send(()).is_err() {
            return acknowledged;
        }
    }
    unreachable!("somebody stops listening before the numbers end")
}

fn wait_for_payments(payments: &Receiver<()>, count: usize) {
    for _ in 0..count {
        payments.recv_timeout(LONG).expect("payments go on");
    }
}
