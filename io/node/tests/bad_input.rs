//! Bytes of outsiders at every port: the node goes on serving, and its counters tell.

mod support;

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

use bytes::BytesMut;
use steadfast_node::{Config, HostOptions, Node, admin};
use support::{Caller, Journal, TIMEOUT, synced, wait_for};
use wire::client::{Frame, Hello};
use wire::limits::MAX_DATAGRAM;
use wire::versions::{CLIENT, RING, VersionRange};
use wire::{ClientId, Random};

fn hosting(config: Config) -> (Node, Caller) {
    let node = Node::start(config).unwrap();
    node.host("journal", HostOptions::default(), Journal::default).unwrap();
    wait_for(&node, "a primary", |status| synced(status, "journal", 1));
    let caller = Caller::connect(node.client_address().unwrap(), ClientId(7));
    (node, caller)
}

fn noise(random: &mut Random, longest: u64) -> Vec<u8> {
    (0..=random.below(longest)).map(|_| random.next_u64() as u8).collect()
}

#[test]
fn garbage_at_the_ring_port_is_counted() {
    let (node, mut caller) = hosting(Config::single());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut random = Random::new(1);
    // Little enough for the socket's buffer, whatever the system's limit.
    for _ in 0..200 {
        socket.send_to(&noise(&mut random, 300), node.ring_address()).unwrap();
    }
    socket.send_to(&vec![b'S'; MAX_DATAGRAM + 1], node.ring_address()).unwrap();
    socket.send_to(&[], node.ring_address()).unwrap();
    // Ours by its first bytes, of another version.
    let mut theirs = vec![b'S', b'F', RING.greatest + 1];
    theirs.resize(64, 0);
    socket.send_to(&theirs, node.ring_address()).unwrap();
    let status = wait_for(&node, "the last datagram counted", |status| {
        status.counters.malformed.version >= 1
    });
    assert_eq!(status.counters.malformed.total(), 202, "{:?}", status.counters);
    assert!(status.counters.malformed.length >= 1);
    caller.expect("journal", 1, b"a", "1");
}

#[test]
fn garbage_at_the_client_port_is_counted() {
    let (node, mut caller) = hosting(Config::single());
    let address = node.client_address().unwrap();
    let mut random = Random::new(2);
    for round in 0..200 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        if round % 2 == 1 {
            // Garbage after a proper greeting: a header without sense.
            stream.write_all(&Frame::Hello(Hello::new(ClientId(round))).encode()).unwrap();
            stream.write_all(&[0xff; 8]).unwrap();
        } else {
            let mut bytes = noise(&mut random, 100);
            bytes[0] |= 0x80;
            stream.write_all(&bytes).unwrap();
        }
        // The node closes; a reset is its answer to bytes that it did not read.
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    let counters = node.status().counters;
    assert_eq!(counters.frames_malformed.total(), 200, "{counters:?}");
    assert_eq!(counters.clients, 1, "{counters:?}");
    caller.expect("journal", 1, b"a", "1");
}

#[test]
fn a_client_of_another_version_is_told_so_and_counted() {
    let (node, _caller) = hosting(Config::single());
    let mut stream = TcpStream::connect(node.client_address().unwrap()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let newer = CLIENT.greatest + 1;
    let speaks = VersionRange::new(newer, newer);
    let hello = Hello { speaks, ..Hello::new(ClientId(1)) };
    stream.write_all(&Frame::Hello(hello).encode()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    match Frame::take(&mut BytesMut::from(&bytes[..])) {
        Ok(Some(Frame::Farewell(farewell))) => {
            let reason = farewell.reason;
            assert!(reason.contains("upgrade"), "{reason}");
            assert!(reason.contains(&format!("version {newer}")), "{reason}");
            assert!(reason.contains(&format!("this node {CLIENT}")), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(node.status().counters.frames_malformed.version, 1);
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let (node, mut caller) = hosting(Config::single());
    let mut stream = TcpStream::connect(node.client_address().unwrap()).unwrap();
    stream.write_all(&Frame::Hello(Hello::new(ClientId(1))).encode()).unwrap();
    // Each binding is answered with several times the bytes of its question's share; the client
    // reads none, until the node's end of the stream is closed.
    let name = "journal".to_string();
    let bind = Frame::Bind(wire::client::Bind { name }).encode();
    let many: Vec<u8> = std::iter::repeat_n(&bind[..], 4096).flatten().copied().collect();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    let mut written = 0u64;
    while stream.write_all(&many).is_ok() {
        written += many.len() as u64;
        assert!(written < 1 << 30, "the node takes in without end");
    }
    let counters = node.status().counters;
    assert_eq!((counters.clients_slow, counters.clients), (1, 1), "{counters:?}");
    caller.expect("journal", 1, b"a", "1");
}

#[test]
fn garbage_at_the_admin_socket_is_answered_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.sock");
    let (node, mut caller) = hosting(Config { admin: Some(path.clone()), ..Config::single() });
    let lines: [&[u8]; 5] = [
        b"\n",
        b"{\"status\":{}\n",
        b"{\"state\":{}}\n",
        b"{\"status\":{\"more\":1}}\n",
        b"\xff\xfe\n",
    ];
    for line in lines {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(line).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\":"), "{line:?} gives {answer:?}");
        assert!(answer.contains("one JSON request a line"), "{answer}");
    }
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    // Without an end; the node may close before all is written.
    let _ = stream.write_all(&vec![b'x'; 1 << 20]);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    let status = admin::Client::connect(&path).unwrap().status().unwrap();
    assert_eq!(status.counters.admin_malformed, 6);
    assert_eq!(status.counters.admin_requests, 7);
    caller.expect("journal", 1, b"a", "1");
    drop(node);
}
