//! A node takes certificates, denied ones, rights and labels anew, while calls flow.

mod plant;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use plant::{ECHO, LONG, Plant, address, builder, start, until};
use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::{BytesCallError, Client, Invocation, Node, NodeConfig, Others, Refusal};
use tls::Identity;

fn call(client: &Client) -> Result<(), BytesCallError> {
    client.call(Invocation::new("echo", ECHO).body(b"x".to_vec()).within(LONG)).map(drop)
}

/// A node that reads its configuration again as `change` has it.
fn node(config: &NodeConfig, change: impl Fn(&mut NodeConfig) + Send + Sync + 'static) -> Node {
    let node = start(config.clone());
    let config = config.clone();
    node.reloads_from(move || {
        let mut config = config.clone();
        change(&mut config);
        Ok(config)
    });
    node
}

#[test]
fn one_client_is_denied_and_the_others_lose_no_call() {
    let plant = Plant::new();
    let desk_identity = Identity::client(plant.authority.cluster(), "desk").unwrap();
    let desk_tls = plant.tls_of(&plant.authority.issue(&desk_identity, &[]).unwrap());
    let denied = plant.path("denied.txt");
    plant.write("denied.txt", "# nobody yet\n");
    let config = plant.config();
    let node = node(&config, move |config| config.security.denied = Some(denied.clone()));
    let desk = builder(&desk_tls).connect([address(&node)]).unwrap();
    call(&desk).unwrap();

    let hmi = builder(&plant.tls()).connect([address(&node)]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stops = stop.clone();
    let calls = thread::spawn(move || {
        let mut calls = 0;
        while !stops.load(Ordering::Relaxed) {
            call(&hmi).unwrap();
            calls += 1;
        }
        (hmi, calls)
    });
    // A renewed certificate of the node, in the same files; then one of a client is denied.
    plant.config();
    assert!(node.reload().unwrap().is_empty());
    plant.write("denied.txt", "client-desk  # stolen\n");
    node.reload().unwrap();
    until("the connection of the denied one has ended", || node.status().counters.clients == 1);
    let why = builder(&desk_tls).connect([address(&node)]).unwrap_err().to_string();
    assert!(why.contains("is denied here"), "{why}");
    let newcomer = builder(&plant.tls()).connect([address(&node)]).unwrap();
    call(&newcomer).unwrap();
    stop.store(true, Ordering::Relaxed);
    let (hmi, calls) = calls.join().unwrap();
    assert!(calls > 0 && hmi.stats().losses == 0, "its connection went on");
}

#[test]
fn what_is_wrong_changes_nothing_and_is_told() {
    let plant = Plant::new();
    let config = plant.config();
    let node = node(&config, |config| {
        config.rights.others = Others::Refuse;
        config.ring.window = 512;
    });
    let hmi = builder(&plant.tls()).connect([address(&node)]).unwrap();
    let good = std::fs::read_to_string(plant.path("node.pem")).unwrap();
    let identity = Identity::node(&config.cluster, config.node).unwrap();
    plant.write("node.pem", &plant.expired(&identity).certificate);
    let error = node.reload().unwrap_err().to_string();
    assert!(error.contains("nothing has changed"), "{error}");
    call(&hmi).unwrap();
    plant.write("node.pem", &good);
    assert_eq!(node.reload().unwrap(), ["ring"], "the window waits for a restart");
    match call(&hmi) {
        Err(BytesCallError::Refused { refusal: Refusal::Denied, .. }) => {}
        other => panic!("the new rights are in force: {other:?}"),
    }
}

#[test]
fn an_administrator_has_it_done_and_a_denied_one_is_out() {
    let plant = Plant::new();
    let denied = plant.path("denied.txt");
    plant.write("denied.txt", "");
    let config = NodeConfig {
        admin: Some(plant.path("node.sock")),
        admin_tls: Some((plant::LOCALHOST, 0).into()),
        ..plant.config()
    };
    let node = node(&config, move |config| config.security.denied = Some(denied.clone()));
    let mut here = AdminClient::connect(plant.path("node.sock")).unwrap();
    let tls = plant.admin_tls(&plant.admin_identity());
    let admin = node.admin_address().unwrap();
    let mut there = AdminClient::connect_tls(admin, &tls, LONG).unwrap();
    assert!(there.reload().unwrap().needs_restart.is_empty());
    plant.write("denied.txt", "admin-ops\n");
    here.reload().unwrap();
    assert!(there.status().is_err(), "its connection has ended");
    let again = AdminClient::connect_tls(admin, &tls, LONG).and_then(|mut it| it.status());
    match again {
        Err(AdminError::Refused(why) | AdminError::Distrusted(why)) => {
            assert!(why.contains("is denied here"), "{why}");
        }
        other => panic!("it was let in, or failed otherwise: {other:?}"),
    }
    plant.write("denied.txt", "ops\n");
    let why = here.reload().unwrap_err().to_string();
    assert!(why.contains("line 1 is \"ops\""), "{why}");
}
