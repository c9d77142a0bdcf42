//! A voting group with a replica that lies, or says nothing, on real nodes: no client hears of it, and the replica gets the state of another.

mod cluster;

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast::events::{EventKind, EventRecord, Interest};
use steadfast::{
    Call, Client, Context, GroupOptions, HostOptions, MethodId, Node, NodeId, Service,
    ServiceOutcome, Style,
};

const GROUP: &str = "tally";
const LONG: Duration = Duration::from_secs(60);

const COUNT: MethodId = MethodId::of("count");

/// How a replica is at fault, once. It is no part of its state.
#[derive(Clone)]
enum Fault {
    /// It tells one too many at this count.
    Answer { at: u64 },
    /// It counts one too many at this count, and goes on from there.
    State { at: u64 },
    /// At this count it says nothing before it is let go.
    Hang { at: u64, gate: Arc<Mutex<Receiver<()>>> },
}

struct Tally {
    counted: u64,
    fault: Option<Fault>,
}

impl Tally {
    fn count(&mut self) -> u64 {
        self.counted += 1;
        let due = |fault: &mut Fault| {
            let (Fault::Answer { at } | Fault::State { at } | Fault::Hang { at, .. }) = fault;
            *at == self.counted
        };
        match self.fault.take_if(due) {
            None => {}
            Some(Fault::Answer { .. }) => return self.counted + 1,
            Some(Fault::State { .. }) => self.counted += 1,
            Some(Fault::Hang { gate, .. }) => {
                gate.lock().expect("one waits").recv().expect("the test lets it go");
            }
        }
        self.counted
    }
}

impl Service for Tally {
    fn call(&mut self, _: &Context, _: Call<'_>) -> ServiceOutcome {
        ServiceOutcome::Ok(Bytes::copy_from_slice(&self.count().to_le_bytes()))
    }

    fn snapshot(&self) -> Result<Vec<u8>, String> {
        Ok(self.counted.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        self.counted = u64::from_le_bytes(state.try_into().map_err(|_| "no count")?);
        Ok(())
    }
}

fn count(client: &Client) -> u64 {
    let reply = client.call(GROUP, COUNT, false, Bytes::new(), LONG).expect("it is answered");
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

/// Whose replica was found out, and how: the first that this node tells of.
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
    let states: Vec<_> = nodes.iter().map(|node| node.state(GROUP).expect("it has one")).collect();
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
