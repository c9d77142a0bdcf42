//! Clients over TLS: who comes in, who does not and is told why, and that strangers at the gate
//! keep nobody out.

mod plant;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use plant::{ECHO, LONG, Plant, address, builder, start, until};
use steadfast::{AsyncClient, Client, ConnectError, Invocation, NodeConfig, Tls};
use tls::Identity;
use tls::issue::Authority;
use wire::limits::{MAX_BODY, MAX_HANDSHAKES};

fn refusal(tls: &Tls, address: SocketAddr) -> String {
    match builder(tls).connect([address]) {
        Err(ConnectError::Unreachable(why)) => why,
        other => panic!("it was let in, or failed otherwise: {other:?}"),
    }
}

#[test]
fn calls_of_any_length_travel_over_tls() {
    let plant = Plant::new();
    let node = plant.node();
    let client = builder(&plant.tls()).connect([address(&node)]).unwrap();
    for length in [0, 1, 1_000, 20_000, MAX_BODY] {
        let body: Vec<u8> = (0..length).map(|n| (n * 31 % 251) as u8).collect();
        let answer =
            client.call(Invocation::new("echo", ECHO).body(body.clone()).within(LONG)).unwrap();
        assert!(answer == body, "{length} bytes");
    }
    let status = node.status();
    assert_eq!(status.tls.certificate.as_deref(), Some("node-1.steadfast.steadfast"));
    assert_eq!(status.tls.clients, [("client-hmi.steadfast.steadfast".to_owned(), 1)]);
    assert_eq!(status.counters.handshakes.done, 1);
    assert_eq!(status.counters.clients, 1);
}

#[test]
fn many_calls_at_once_share_a_connection() {
    let plant = Plant::new();
    let node = plant.node();
    let client = builder(&plant.tls()).connect([address(&node)]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let client = client.clone();
            scope.spawn(move || {
                for round in 0..50u8 {
                    let body = vec![thread ^ round; 10_000 + usize::from(round)];
                    let answer =
                        client.call(Invocation::new("echo", ECHO).body(body.clone()).within(LONG));
                    assert!(answer.unwrap() == body);
                }
            });
        }
    });
}

#[tokio::test]
async fn the_asynchronous_client_talks_tls_too() {
    let plant = Plant::new();
    let node = plant.node();
    let connecting = AsyncClient::builder().tls(plant.tls()).connect_async([address(&node)]);
    let client = connecting.await.unwrap();
    for length in [0, 1_000, MAX_BODY] {
        let body = vec![7u8; length];
        let answer = client
            .call(Invocation::new("echo", ECHO).body(body.clone()).within(LONG))
            .await
            .unwrap();
        assert!(answer == body, "{length} bytes");
    }
    let stranger = AsyncClient::connect([address(&node)]).await.unwrap_err().to_string();
    assert!(stranger.contains("takes TLS only"), "{stranger}");
    let other = AsyncClient::builder().tls(Plant::new().tls());
    let other = other.connect_async([address(&node)]).await.unwrap_err().to_string();
    assert!(other.contains("not by the authority"), "{other}");
}

#[test]
fn a_client_that_comes_back_shakes_hands_in_short() {
    let plant = Plant::new();
    let node = plant.node();
    let tls = plant.tls();
    for connection in 0..3 {
        let client = builder(&tls).connect([address(&node)]).unwrap();
        client.call(Invocation::new("echo", ECHO).body(vec![connection]).within(LONG)).unwrap();
    }
    let handshakes = node.status().counters.handshakes;
    assert_eq!((handshakes.done, handshakes.resumed), (3, 2));
}

#[test]
fn plain_frames_are_refused_where_tls_is_spoken_and_the_client_is_told() {
    let plant = Plant::new();
    let node = plant.node();
    let error = Client::connect([address(&node)]).unwrap_err().to_string();
    assert!(error.contains("takes TLS only") && error.contains("steadfast init"), "{error}");
    assert_eq!(node.status().counters.handshakes.plaintext, 1);
    assert_eq!(node.status().counters.connections, 0, "the data plane has not seen it");
}

#[test]
fn tls_is_refused_where_plain_frames_are_spoken_and_the_client_is_told() {
    let node = start(NodeConfig::single());
    let why = refusal(&Plant::new().tls(), address(&node));
    assert!(why.contains("does not speak TLS here"), "{why}");
    assert_eq!(node.status().counters.frames_malformed.magic, 1);
}

#[test]
fn strangers_are_told_why_they_are_not_let_in() {
    let (plant, other) = (Plant::new(), Plant::new());
    let node = plant.node();
    let me = plant.client_identity();
    // Neither knows the other.
    let why = refusal(&other.tls(), address(&node));
    assert!(why.contains("not by the authority that this client was given"), "{why}");
    // It knows the node, and the node does not know it.
    let forged = other.authority.issue(&me, &[]).unwrap();
    let why = refusal(&plant.tls_of(&forged), address(&node));
    assert!(why.contains("not by the node's authority"), "{why}");
    let why = refusal(&plant.tls_of(&plant.expired(&me)), address(&node));
    assert!(why.contains("expired") && why.contains("--renew"), "{why}");
    // An authority's own certificate, which it has signed itself.
    let (_, own) = Authority::new("steadfast").unwrap();
    let error = Tls::from_pem(plant.pem.as_bytes(), own.certificate.as_bytes(), own.key.as_bytes());
    assert!(error.unwrap_err().to_string().contains("names no node, client or admin"));
    // A client of another cluster that has the same authority.
    let mill = Identity::client("mill", "hmi").unwrap();
    let why = refusal(&plant.tls_of(&plant.authority.issue(&mill, &[]).unwrap()), address(&node));
    assert!(why.contains("of a node of the cluster that this client's"), "{why}");
    // Some are over for the client before the node has read that they are.
    until("all are counted", || node.status().counters.handshakes.failed == 4);
    assert_eq!(node.status().counters.handshakes.done, 0);
    // And it is none the worse for it.
    assert!(builder(&plant.tls()).connect([address(&node)]).is_ok());
}

#[test]
fn a_node_with_another_nodes_certificate_does_not_start_and_says_why() {
    let plant = Plant::new();
    let config = NodeConfig { cluster: "mill".into(), ..plant.config() };
    let error = steadfast::Node::start(config).unwrap_err().to_string();
    assert!(
        error.contains("node-1.steadfast.steadfast") && error.contains("node-1.mill"),
        "{error}"
    );
    let mut config = plant.config();
    let issued = plant.expired(&Identity::node("steadfast", config.node).unwrap());
    plant.write("node.pem", &issued.certificate);
    plant.write("node.key", &issued.key);
    let error = steadfast::Node::start(config.clone()).unwrap_err().to_string();
    assert!(error.contains("expired") && error.contains("--renew"), "{error}");
    config.security.authority = Some(plant.path("none.pem"));
    let error = steadfast::Node::start(config).unwrap_err().to_string();
    assert!(error.contains("none.pem") && error.contains("steadfast init"), "{error}");
}

#[test]
fn half_open_handshakes_keep_nobody_out_and_end() {
    let plant = Plant::new();
    let node = plant.node();
    let mut crowd: Vec<TcpStream> = Vec::new();
    for number in 0..MAX_HANDSHAKES + 50 {
        let mut stream = TcpStream::connect(address(&node)).unwrap();
        if number % 2 == 0 {
            // The head of a greeting of which the rest never comes.
            stream.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]).unwrap();
        }
        crowd.push(stream);
        if number % 50 == 0 {
            let client = builder(&plant.tls()).connect([address(&node)]).unwrap();
            client.call(Invocation::new("echo", ECHO).body(vec![1]).within(LONG)).unwrap();
        }
    }
    let client = builder(&plant.tls()).connect([address(&node)]).unwrap();
    client.call(Invocation::new("echo", ECHO).body(vec![1]).within(LONG)).unwrap();
    // All of them are dismissed in the end, the first to make room, the others because they are
    // late.
    for mut stream in crowd {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let ended = stream.read(&mut [0; 8]).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(0) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
    }
    let handshakes = node.status().counters.handshakes;
    assert!(handshakes.crowded >= 50 && handshakes.late > 0, "{handshakes:?}");
    client.call(Invocation::new("echo", ECHO).body(vec![1]).within(LONG)).unwrap();
}

#[test]
fn nonsense_at_the_gate_is_answered_and_counted() {
    let plant = Plant::new();
    let node = plant.node();
    let ask = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address(&node)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    };
    let answer = ask(b"GET / HTTP/1.1\r\n\r\n");
    assert!(String::from_utf8_lossy(&answer).contains("takes TLS only"));
    assert_eq!(ask(&[22; 3_000])[0], 21, "a TLS alert");
    for seed in 0..200u32 {
        let noise = (0..500).map(|n: u32| (seed.wrapping_mul(n).wrapping_add(n) % 257) as u8);
        ask(&[[22, 3, 1].to_vec(), noise.collect()].concat());
    }
    until("all are counted", || {
        let handshakes = node.status().counters.handshakes;
        handshakes.plaintext == 1 && handshakes.failed == 201
    });
    assert!(builder(&plant.tls()).connect([address(&node)]).is_ok());
}

#[test]
fn a_connection_whose_bytes_are_changed_on_the_way_ends() {
    let plant = Plant::new();
    let node = plant.node();
    // By hand, to have the bytes.
    let mut records = plant.tls().connect(address(&node));
    let mut stream = TcpStream::connect(address(&node)).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut read = [0; 16 << 10];
    while !records.is_open() {
        while records.wants_to_write() {
            records.write(&mut stream).unwrap();
        }
        let count = stream.read(&mut read).unwrap();
        records.receive(&read[..count], |_| ()).unwrap();
    }
    while records.wants_to_write() {
        records.write(&mut stream).unwrap();
    }
    let hello = wire::client::Frame::Hello(wire::client::Hello::new(wire::ClientId(1))).encode();
    records.seal(&[std::io::IoSlice::new(&hello)]);
    let mut sealed = Vec::new();
    records.write(&mut sealed).unwrap();
    let last = sealed.len() - 1;
    sealed[last] ^= 1;
    until("it is in", || node.status().counters.connections == 1);
    stream.write_all(&sealed).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    until("it is out", || node.status().counters.clients == 0);
    let counters = node.status().counters;
    assert_eq!((counters.frames_in, counters.frames_malformed.field), (0, 1));
}

/// A server that has a node's certificate, and says that it is another.
fn impostor(plant: &Plant) -> SocketAddr {
    let listener = std::net::TcpListener::bind((plant::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let identity = Identity::node("steadfast", plant::node_id(1)).unwrap();
    let issued = plant.authority.issue(&identity, &[]).unwrap();
    let (authority, chain) = (plant.pem.as_bytes(), issued.certificate.as_bytes());
    let credentials = tls::Credentials::from_pem(authority, chain, issued.key.as_bytes()).unwrap();
    let server = tls::Server::new(&credentials, tls::Port::Client).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut records = server.accept().unwrap();
        let welcome = wire::client::Welcome {
            version: wire::versions::CLIENT.greatest,
            node: plant::node_id(2),
            cluster: "steadfast".to_owned(),
            extension: wire::Extension::default(),
        };
        let welcome = wire::client::Frame::Welcome(welcome).encode();
        let (mut read, mut said) = ([0; 16 << 10], false);
        while let Ok(count @ 1..) = stream.read(&mut read) {
            records.receive(&read[..count], |_| ()).unwrap();
            if records.is_open() && !said {
                said = true;
                records.seal(&[std::io::IoSlice::new(&welcome)]);
            }
            while records.wants_to_write() {
                records.write(&mut stream).unwrap();
            }
        }
    });
    address
}

#[test]
fn a_node_that_says_it_is_another_is_not_believed() {
    let plant = Plant::new();
    let why = refusal(&plant.tls(), impostor(&plant));
    assert!(why.contains("claims to be node 2") && why.contains("node-1.steadfast"), "{why}");
}
