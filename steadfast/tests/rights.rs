//! Clients make the calls for which they have the right, at whichever node, and are refused others
//! by the rule's name.

mod plant;

use plant::{ECHO, LONG, Plant, address, builder, start};
use steadfast::{
    BytesCallError as CallError, Client, Invocation, MethodId, Node, NodeConfig, Others, Refusal,
    Rule,
};
use tls::Identity;

fn rule(name: &str, methods: &[&str], clients: &[&str]) -> Rule {
    let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Rule {
        name: name.into(),
        groups: vec!["echo".into()],
        methods: owned(methods),
        clients: owned(clients),
    }
}

/// A node with these rules, and who may be its client.
fn node(plant: &Plant, others: Others, rules: Vec<Rule>) -> Node {
    let mut config: NodeConfig = plant.config();
    (config.rights.others, config.rights.rule) = (others, rules);
    start(config)
}

fn client(plant: &Plant, node: &Node, identity: &Identity) -> Client {
    let tls = plant.tls_of(&plant.authority.issue(identity, &[]).unwrap());
    builder(&tls).connect([address(node)]).unwrap()
}

fn call(client: &Client, method: MethodId) -> Result<Vec<u8>, CallError> {
    let body = b"x".to_vec();
    client.call(Invocation::new("echo", method).body(body).within(LONG)).map(|it| it.to_vec())
}

fn why(result: Result<Vec<u8>, CallError>) -> String {
    match result {
        Err(CallError::Refused { refusal: Refusal::Denied, reason }) => reason,
        other => panic!("it was not denied: {other:?}"),
    }
}

#[test]
fn a_call_without_the_right_is_refused_by_the_rules_name() {
    let plant = Plant::new();
    let rules = vec![rule("readers", &["echo"], &["hmi"]), rule("menders", &["mend"], &["desk"])];
    let node = node(&plant, Others::Allow, rules);
    let cluster = plant.authority.cluster();
    let hmi = client(&plant, &node, &plant.client_identity());
    let desk = client(&plant, &node, &Identity::client(cluster, "desk").unwrap());
    assert_eq!(call(&hmi, ECHO).unwrap(), b"x");
    let reason = why(call(&desk, ECHO));
    assert_eq!(reason, "\"client-desk\" is not among the clients of rule \"readers\"");
    assert!(why(call(&hmi, MethodId::of("mend"))).contains("rule \"menders\""));
    assert!(!matches!(
        call(&desk, MethodId::of("mend")),
        Err(CallError::Refused { refusal: Refusal::Denied, .. })
    ));
    // Neither is kept from what it may do, and nothing reached the service.
    assert_eq!(call(&hmi, ECHO).unwrap(), b"x");
    assert_eq!(node.status().counters.calls_denied, 2);
}

#[test]
fn where_others_are_refused_each_call_needs_a_rule() {
    let plant = Plant::new();
    let node = node(&plant, Others::Refuse, vec![rule("all", &["echo"], &["*"])]);
    let hmi = client(&plant, &node, &plant.client_identity());
    assert_eq!(call(&hmi, ECHO).unwrap(), b"x");
    assert!(why(call(&hmi, MethodId::of("mend"))).contains("no rule in [rights]"));
}

#[test]
fn rules_need_certificates() {
    let mut config = NodeConfig::single();
    config.rights.rule = vec![rule("all", &[], &["*"])];
    let error = Node::start(config).unwrap_err().to_string();
    assert!(error.contains("[rights]") && error.contains("steadfast init"), "{error}");
}
