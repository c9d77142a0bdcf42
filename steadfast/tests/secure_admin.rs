//! Access to a node's administration from other hosts: administrators only. Others receive a
//! refusal.

mod plant;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plant::{LONG, Plant, address, builder, start, until};
use steadfast::admin::{AdminError, Client as AdminClient};
use steadfast::{Backup, Node, NodeConfig, Tls};

fn node(plant: &Plant) -> (Node, SocketAddr) {
    let any = SocketAddr::new(plant::LOCALHOST, 0);
    let socket = plant.path("node.sock");
    let node = start(NodeConfig { admin: Some(socket), admin_tls: Some(any), ..plant.config() });
    let admin = node.admin_address().unwrap();
    (node, admin)
}

fn refusal(tls: &Tls, admin: SocketAddr) -> String {
    let asked = AdminClient::connect_tls(admin, tls, LONG).and_then(|mut it| it.status());
    match asked {
        Err(AdminError::Refused(why) | AdminError::Distrusted(why)) => why,
        other => panic!("it was let in, or failed otherwise: {other:?}"),
    }
}

#[test]
fn an_administrator_sees_from_afar_what_is_seen_at_the_socket() {
    let plant = Plant::new();
    let (node, admin) = node(&plant);
    let tls = plant.admin_tls(&plant.admin_identity());
    let mut afar = AdminClient::connect_tls(admin, &tls, LONG).unwrap();
    let mut here = AdminClient::connect(plant.path("node.sock")).unwrap();
    let (far, near) = (afar.status().unwrap(), here.status().unwrap());
    assert_eq!(
        (far.node, far.incarnation, far.ring.id),
        (near.node, near.incarnation, near.ring.id)
    );
    assert_eq!(far.tls.certificate.as_deref(), Some("node-1.steadfast.steadfast"));
    assert_eq!(near.counters.admin_handshakes.done, 1);
    // A stream of events, from which the administrator goes away and the node notices.
    let mut events = afar.events(true, false).unwrap();
    assert!(events.next().unwrap().is_ok());
    drop(events);
    // The state of a replica is a long line.
    let (answer, state) = here.state("echo").unwrap();
    let mut afar = AdminClient::connect_tls(admin, &tls, LONG).unwrap();
    assert_eq!(afar.state("echo").unwrap(), (answer, state));
    // A file goes both ways.
    let file = afar.save("echo").unwrap();
    let (backup, _) = Backup::decode(&file.clone().into()).unwrap();
    assert_eq!(backup.group, "echo");
    assert_eq!(afar.restore("echo", &file, false).unwrap().group, "echo");
    assert_eq!(node.status().counters.admin_handshakes.resumed, 1);
}

#[test]
fn whoever_is_no_administrator_is_told_so() {
    let plant = Plant::new();
    let (node, admin) = node(&plant);
    let why = refusal(&plant.admin_tls(&plant.client_identity()), admin);
    assert!(why.contains("client-hmi") && why.contains("for administrators"), "{why}");
    let ops = plant.admin_identity();
    let why = refusal(&Plant::new().admin_tls(&ops), admin);
    assert!(why.contains("not by the authority"), "{why}");
    // The two ports are not mistaken for each other.
    let why = builder(&plant.tls()).connect([admin]).unwrap_err().to_string();
    assert!(why.contains("this port is for something else"), "{why}");
    let why = refusal(&plant.admin_tls(&ops), address(&node));
    assert!(why.contains("this port is for something else"), "{why}");
    // Plain JSON, as at the Unix socket, is answered in JSON.
    let mut plain = TcpStream::connect(admin).unwrap();
    plain.write_all(b"{\"status\":{}}\n").unwrap();
    let mut line = String::new();
    BufReader::new(plain).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"error\":\"this node takes TLS only"), "{line}");
    until("all are counted", || {
        let handshakes = node.status().counters.admin_handshakes;
        (handshakes.refused, handshakes.plaintext) == (1, 1) && handshakes.failed >= 2
    });
    assert_eq!(node.status().counters.admin_requests, 0);
    // An administrator may also call.
    assert!(
        builder(&plant.tls_of(&plant.authority.issue(&ops, &[]).unwrap()))
            .connect([address(&node)])
            .is_ok()
    );
}

#[test]
fn the_unix_socket_is_for_its_owner_alone() {
    let plant = Plant::new();
    let (_node, _) = node(&plant);
    let mode = fs::metadata(plant.path("node.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_node_that_stops_ends_its_administrators_connections_and_frees_the_port() {
    let plant = Plant::new();
    let (node, admin) = node(&plant);
    let tls = plant.admin_tls(&plant.admin_identity());
    let client = AdminClient::connect_tls(admin, &tls, LONG).unwrap();
    client.set_timeout(Some(LONG)).unwrap();
    let mut events = client.events(true, false).unwrap();
    assert!(events.next().unwrap().is_ok(), "it is served");
    node.stop().unwrap();
    let begun = std::time::Instant::now();
    events.take_while(Result::is_ok).for_each(drop);
    assert!(begun.elapsed() < LONG, "the connection has not ended, only the timeout");
    assert!(std::net::TcpListener::bind(admin).is_ok());
    let gone = AdminClient::connect_tls(admin, &tls, Duration::from_secs(5)).unwrap_err();
    assert!(matches!(gone, AdminError::Dial { .. }), "{gone}");
}

#[test]
fn the_deeds_of_administrators_are_in_the_audit_log() {
    let plant = Plant::new();
    steadfast::founder::mark(&plant.path("data")).unwrap();
    let config = NodeConfig { data_dir: Some(plant.path("data")), ..plant.config() };
    let (socket, any) = (plant.path("node.sock"), SocketAddr::new(plant::LOCALHOST, 0));
    let node = start(NodeConfig { admin: Some(socket.clone()), admin_tls: Some(any), ..config });
    let mut here = AdminClient::connect(&socket).unwrap();
    here.status().unwrap();
    here.state("echo").unwrap();
    here.status().unwrap();
    let tls = plant.admin_tls(&plant.admin_identity());
    let mut there = AdminClient::connect_tls(node.admin_address().unwrap(), &tls, LONG).unwrap();
    there.move_primary("nothing", wire::NodeId(1)).unwrap_err();
    // The next answer on a connection comes after the line about the last one.
    there.status().unwrap();
    let read = || std::fs::read_to_string(plant.path("data/audit.log")).unwrap();
    let text = read();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[..2].iter().all(|it| it["who"].as_str().unwrap().starts_with("uid ")), "{text}");
    assert_eq!(lines[0]["asked"]["state"]["group"], "echo");
    assert_eq!(lines[1]["done"], true);
    assert_eq!(lines[0]["connection"], lines[1]["connection"]);
    assert!(lines[3]["who"].as_str().unwrap().starts_with("admin-ops from 127.0.0.1:"), "{text}");
    assert_eq!(lines[2]["asked"]["move"]["group"], "nothing");
    assert!(lines[3]["refused"].as_str().unwrap().contains("no such group"), "{text}");
    assert_eq!(lines[2]["connection"], lines[3]["connection"]);
    assert_ne!(lines[0]["connection"], lines[2]["connection"]);
    // A request that does not end, for its file does not come, has its line.
    let mut half = UnixStream::connect(&socket).unwrap();
    half.write_all(b"{\"restore\":{\"group\":\"echo\",\"bytes\":7}}\n").unwrap();
    until("it is in the log", || read().contains("\"restore\""));
    assert_eq!(read().matches("\"refused\"").count(), 1, "{}", read());
    drop(half);
    until("its end is in the log", || read().matches("\"refused\"").count() == 2);
}
