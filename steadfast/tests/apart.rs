//! A service that is not deterministic, on real nodes: replicas compare their states, and people are
//! told.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::events::{EventKind, EventRecord, Interest, Stamped};
use steadfast::{Client, HostOptions, Node, NodeId};

const LONG: Duration = Duration::from_secs(60);

#[steadfast::service]
trait Notes {
    /// Keeps a note, and tells how many there are.
    fn keep(&mut self, number: u32) -> usize;
}

/// The order of its entries is another one at each replica.
#[derive(Default, Serialize, Deserialize)]
struct Notebook {
    stamps: HashMap<u32, u64>,
    own: bool,
}

impl Notes for Notebook {
    fn keep(&mut self, number: u32) -> usize {
        // Each hasher of this kind has a secret of its own.
        let stamp = if self.own { RandomState::new().hash_one(number) } else { number.into() };
        self.stamps.insert(number, stamp);
        self.stamps.len()
    }
}

fn start(group: &str, own: bool) -> Vec<Node> {
    let nodes = cluster::start(3);
    for node in &nodes {
        let make = move || NotesService::new(Notebook { own, ..Notebook::default() });
        node.host(group, HostOptions::default(), make).expect("a new group");
    }
    cluster::wait_for_replicas(&nodes[0], group, 3);
    nodes
}

/// The member of which this node is told that its replica is apart.
fn apart(node: &Node, events: &Receiver<Stamped>) -> Option<NodeId> {
    let (time, event) = events.recv_timeout(LONG).expect("it is told in time");
    match EventRecord::new(time, node.id(), &event).kind {
        EventKind::StateNote { member, about, text: Some(_), .. } => {
            assert_eq!(about.to_string(), "has another state than the others");
            Some(member.node)
        }
        _ => None,
    }
}

#[test]
fn a_random_number_of_ones_own_in_the_state_is_an_alarm_at_every_node() {
    let nodes = start("notes", true);
    let events = nodes[1].subscribe_to(Interest::Membership);
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let notes = NotesClient::new(&client, "notes").within(LONG);
    (1..=20).for_each(|number| _ = notes.keep(number).expect("it is kept"));
    let mut told: Vec<NodeId> = Vec::new();
    while told.len() < nodes.len() {
        told.extend(apart(&nodes[1], &events));
    }
    told.sort_unstable();
    assert_eq!(told, [1, 2, 3].map(NodeId), "no two are alike");
    let status = cluster::wait_for(&nodes[1], "notes", |group| group.notes.len() == 3);
    let troubles: Vec<String> = status.state_troubles().collect();
    let text = "notes: n1 has another state than the others: after call ";
    assert!(troubles[0].starts_with(text), "{troubles:?}");
    assert!(troubles[0].contains("its context's clock and random numbers"), "{troubles:?}");
}

#[test]
fn the_order_of_a_hash_map_is_no_alarm() {
    let nodes = start("notes", false);
    let events = nodes[1].subscribe_to(Interest::Membership);
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let notes = NotesClient::new(&client, "notes").within(LONG);
    (1..=20).for_each(|number| _ = notes.keep(number).expect("it is kept"));
    // The first comparison comes a second after the first call.
    let end = Instant::now() + Duration::from_secs(3);
    while let Ok((time, event)) = events.recv_timeout(end.saturating_duration_since(Instant::now()))
    {
        let kind = EventRecord::new(time, nodes[1].id(), &event).kind;
        assert!(!matches!(kind, EventKind::StateNote { .. }), "{kind:?}");
    }
}
