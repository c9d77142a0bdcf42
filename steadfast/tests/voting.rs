//! A voting group with a replica that lies, asks another group something else, or says nothing, on
//! real nodes: nobody hears of it, and the replica gets the state of another.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fixture::cluster;
use steadfast::events::{EventKind, EventRecord, Interest};
use steadfast::{
    BoxError, Call, Client, Context, GroupOptions, HostOptions, Invocation, MethodId, Node, NodeId,
    Service, ServiceOutcome, Style,
};

const GROUP: &str = "tally";
const LONG: Duration = Duration::from_secs(60);

/// The group that the handlers call.
const LEDGER: &str = "ledger";

const COUNT: MethodId = MethodId::of("count");
/// Counts, and has the count written down.
const BOOK: MethodId = MethodId::of("book");
const WRITE: MethodId = MethodId::of("write");

/// How a replica is at fault, once. It is no part of its state.
#[derive(Clone)]
enum Fault {
    /// It tells one too many at this count.
    Answer { at: u64 },
    /// It counts one too many at this count, and goes on from there.
    State { at: u64 },
    /// At this count it says nothing before it is let go.
    Hang { at: u64, gate: Arc<Mutex<Receiver<()>>> },
    /// It has one too many written down at this count.
    Ask { at: u64 },
}

struct Tally {
    counted: u64,
    fault: Option<Fault>,
}

impl Tally {
    fn count(&mut self) -> u64 {
        self.counted += 1;
        let due = |fault: &mut Fault| {
            let (Fault::Answer { at }
            | Fault::State { at }
            | Fault::Hang { at, .. }
            | Fault::Ask { at }) = fault;
            *at == self.counted && !matches!(fault, Fault::Ask { .. })
        };
        match self.fault.take_if(due) {
            None => {}
            Some(Fault::Answer { .. }) => return self.counted + 1,
            Some(Fault::State { .. }) => self.counted += 1,
            Some(Fault::Ask { .. }) => unreachable!("it counts right"),
            Some(Fault::Hang { gate, .. }) => {
                gate.lock().expect("one waits").recv().expect("the test lets it go");
            }
        }
        self.counted
    }
}

impl Tally {
    /// Has what was counted written down.
    fn book(&mut self, context: &Context) -> ServiceOutcome {
        let counted = self.count();
        let lies = matches!(self.fault, Some(Fault::Ask { at }) if at == counted);
        self.fault.take_if(|_| lies);
        let written = (counted + u64::from(lies)).to_le_bytes();
        match context.call(
            Invocation::new(LEDGER, WRITE).body(Bytes::copy_from_slice(&written)).within(LONG),
        ) {
            Ok(length) => ServiceOutcome::Ok(length),
            Err(error) => ServiceOutcome::Error(error.to_string().into()),
        }
    }
}

impl Service for Tally {
    fn call(&mut self, context: &Context, call: Call<'_>) -> ServiceOutcome {
        if call.method == BOOK {
            return self.book(context);
        }
        ServiceOutcome::Ok(Bytes::copy_from_slice(&self.count().to_le_bytes()))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.counted.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.counted = u64::from_le_bytes(state.try_into().map_err(|_| "no count")?);
        Ok(())
    }
}

/// A ledger of all calls.
#[derive(Default)]
struct Ledger(Vec<u8>);

impl Service for Ledger {
    fn call(&mut self, _: &Context, call: Call<'_>) -> ServiceOutcome {
        self.0.extend_from_slice(call.body);
        ServiceOutcome::Ok(Bytes::copy_from_slice(&(self.0.len() as u64 / 8).to_le_bytes()))
    }

    fn snapshot(&self) -> Result<Vec<u8>, BoxError> {
        Ok(self.0.clone())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.0 = state.to_vec();
        Ok(())
    }
}

fn count(client: &Client) -> u64 {
    ask(client, COUNT)
}

fn ask(client: &Client, method: MethodId) -> u64 {
    let reply = client.call(Invocation::new(GROUP, method).within(LONG)).expect("it is answered");
    u64::from_le_bytes(reply[..].try_into().expect("a count"))
}

/// Three nodes; the replica of one has a fault.
fn start(at_fault: usize, fault: &Fault) -> Vec<Node> {
    let nodes = cluster::start(3);
    for (place, node) in nodes.iter().enumerate() {
        let fault = (place == at_fault).then(|| fault.clone());
        let host = move || Tally { counted: 0, fault: fault.clone() };
        let group = GroupOptions { style: Style::Voting, ..GroupOptions::default() };
        node.host(GROUP, HostOptions { group, ..HostOptions::default() }, host)
            .expect("a new group");
        cluster::wait_for_replicas(&nodes[0], GROUP, place + 1);
    }
    nodes
}

/// The node whose replica deviated, and how: the first that this node reports.
fn deviation(node: &Node, events: &Receiver<steadfast::events::Stamped>) -> (NodeId, String) {
    let end = Instant::now() + LONG;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let (time, event) = events.recv_timeout(left).expect("the replica is found out");
        if let EventKind::Deviated { member, cause, .. } =
            EventRecord::new(time, node.id(), &event).kind
        {
            return (member.node, format!("{cause:?}"));
        }
    }
}

/// All replicas have the state, and it is the same.
fn are_alike(nodes: &[Node]) {
    for node in nodes {
        cluster::wait_for_replicas(node, GROUP, nodes.len());
    }
    let states = cluster::states(nodes, GROUP);
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "{states:?}");
}

#[test]
fn a_lie_is_outvoted_told_and_mended_wherever_the_liar_is() {
    let lies: [fn(u64) -> Fault; 2] = [|at| Fault::Answer { at }, |at| Fault::State { at }];
    for (at_fault, lie) in [(0, lies[0]), (2, lies[0]), (0, lies[1]), (1, lies[1])] {
        let nodes = start(at_fault, &lie(20));
        let events = nodes[1].subscribe_to(Interest::Membership);
        let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
        for counted in 1..=60 {
            assert_eq!(count(&client), counted, "no client hears of a lie");
        }
        let (liar, cause) = deviation(&nodes[1], &events);
        assert_eq!(liar, nodes[at_fault].id(), "{cause}");
        assert!(cause.starts_with("Outcome"), "{cause}");
        are_alike(&nodes);
    }
}

#[test]
fn who_says_nothing_is_told_and_replaced_and_delays_nobody() {
    let (let_go, gate) = sync_channel(1);
    let fault = Fault::Hang { at: 20, gate: Arc::new(Mutex::new(gate)) };
    let nodes = start(2, &fault);
    let events = nodes[1].subscribe_to(Interest::Membership);
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    for counted in 1..=60 {
        assert_eq!(count(&client), counted, "the others are a majority");
    }
    let (silent, cause) = deviation(&nodes[1], &events);
    assert_eq!((silent, cause.as_str()), (nodes[2].id(), "Silent"));
    let_go.send(()).expect("it waits");
    are_alike(&nodes);
    assert_eq!(count(&client), 61);
}

#[test]
fn who_asks_another_group_something_else_is_outvoted_told_and_mended() {
    for at_fault in [0, 1, 2] {
        let nodes = start(at_fault, &Fault::Ask { at: 20 });
        for (place, node) in nodes.iter().enumerate() {
            node.host(LEDGER, HostOptions::default(), Ledger::default).expect("a new group");
            let synced = |group: &steadfast::status::GroupStatus| group.replicas.len() == place + 1;
            cluster::wait_for(&nodes[0], LEDGER, synced);
        }
        let events = nodes[1].subscribe_to(Interest::Membership);
        let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
        for booked in 1..=40 {
            assert_eq!(ask(&client, BOOK), booked, "each is written down once");
        }
        let (liar, cause) = deviation(&nodes[1], &events);
        assert_eq!(liar, nodes[at_fault].id(), "{cause}");
        assert!(cause.starts_with("Outcome"), "{cause}");
        are_alike(&nodes);
        cluster::wait_for_replicas(&nodes[0], LEDGER, nodes.len());
        let right: Vec<u8> = (1..=40u64).flat_map(u64::to_le_bytes).collect();
        assert_eq!(
            nodes[0].state(LEDGER).expect("it has one"),
            right,
            "what a majority asks is written down"
        );
    }
}
