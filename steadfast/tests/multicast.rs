//! All replicas of a group are asked at once.

use std::time::Duration;

use fixture::cluster;
use serde::{Deserialize, Serialize};
use steadfast::{
    Balancing, CallError, Client, GroupOptions, HostOptions, Invocation, Node, Policy, Refusal,
    Style,
};

const LONG: Duration = Duration::from_secs(20);

/// Says where it is, and how often it was called.
#[steadfast::service]
trait Sensor {
    fn node(&mut self) -> u32;
    fn calls(&mut self) -> u64;
}

#[derive(Serialize, Deserialize)]
struct Probe {
    node: u32,
    calls: u64,
}

impl Sensor for Probe {
    fn node(&mut self) -> u32 {
        self.node
    }

    fn calls(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }
}

/// Three nodes with a group of this style.
fn nodes(style: Style) -> Vec<Node> {
    let nodes = cluster::start(3);
    for node in &nodes {
        let id = node.id().0;
        let group = GroupOptions { style, ..GroupOptions::default() };
        let options = HostOptions { group, ..HostOptions::default() };
        let probe = move || SensorService::new(Probe { node: id, calls: 0 });
        node.host("sensor", options, probe).expect("a new group");
    }
    for node in &nodes {
        cluster::wait_for_replicas(node, "sensor", 3);
    }
    nodes
}

/// Each replica's reply to this method, in JSON.
fn gather(client: &Client, method: &str, balancing: Balancing) -> Vec<(u32, String)> {
    let invocation = Invocation::new("sensor", method).json().body("[]").within(LONG);
    let answers = client.gather(invocation.balancing(balancing)).expect("answered");
    let mut said: Vec<(u32, String)> = answers
        .into_iter()
        .map(|answer| {
            let json = answer.result.expect("a result").to_vec();
            (answer.node.0, String::from_utf8(json).expect("JSON"))
        })
        .collect();
    said.sort();
    said
}

#[test]
fn each_replica_of_a_stateless_group_answers_for_itself() {
    let mut nodes = nodes(Style::Stateless);
    let client = Client::connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let all = [(1, "1".into()), (2, "2".into()), (3, "3".into())];
    assert_eq!(gather(&client, "node", Balancing::All), all);
    assert_eq!(gather(&client, "node", Balancing::FirstReply).len(), 1);
    // They do not agree, which a typed call says.
    let builder = Client::builder().policy(Policy::default().balancing(Balancing::Majority));
    let voter = builder.connect(cluster::addresses(&nodes)).expect("the nodes are up");
    let sensor = SensorClient::new(&voter, "sensor").within(LONG);
    let refused = sensor.node().expect_err("three different answers");
    assert!(matches!(refused, CallError::Refused { refusal: Refusal::Split, .. }), "{refused:?}");
    // A lost replica is not waited for.
    drop(nodes.remove(2));
    assert_eq!(gather(&client, "node", Balancing::All), all[..2]);
}

#[test]
fn replicas_of_an_active_group_execute_a_call_once_and_say_the_same() {
    let nodes = nodes(Style::Active);
    let policy = Policy::default().balancing(Balancing::All);
    let client = Client::builder().policy(policy).connect(cluster::addresses(&nodes));
    let client = client.expect("the nodes are up");
    let sensor = SensorClient::new(&client, "sensor").within(LONG);
    assert_eq!((1..=20).map(|_| sensor.calls().expect("agreed")).max(), Some(20));
    let said: Vec<String> =
        gather(&client, "calls", Balancing::All).into_iter().map(|(_, said)| said).collect();
    assert_eq!(said, ["21", "21", "21"]);
}
