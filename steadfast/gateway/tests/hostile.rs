//! Callers that break the rules: the others are served meanwhile, and memory is bounded.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use support::{Caller, Gateway, LONG, nodes};
use tonic::Code;
use wire::Random;
use wire::limits::MAX_BODY;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the gateway listens");
    stream.set_read_timeout(Some(LONG)).expect("a time-out");
    stream.set_write_timeout(Some(LONG)).expect("a time-out");
    stream
}

/// Reads until the gateway closes.
fn drain(stream: &mut TcpStream) {
    let mut scratch = [0; 4096];
    while matches!(stream.read(&mut scratch), Ok(count) if count > 0) {}
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short one").to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

fn is_served(caller: &Caller) {
    assert_eq!(caller.result("/counter/get", "[]", &[]), "0");
}

#[test]
fn frames_that_make_no_sense_end_their_connection_alone() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    let mut random = Random::new(7);
    let settings = frame(4, 0, 0, &[]);
    for round in 0..200 {
        let mut stream = connect(gateway.address);
        let mut bytes = PREFACE.to_vec();
        bytes.extend(&settings);
        for _ in 0..8 {
            let length = random.below(200) as usize;
            let payload: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            let kind = random.below(11) as u8;
            let id = [0, 1, 3, u32::MAX][random.below(4) as usize];
            bytes.extend(frame(kind, random.next_u64() as u8, id, &payload));
        }
        bytes.truncate(bytes.len() - random.below(9) as usize);
        // The gateway may close before it has read all.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        drain(&mut stream);
        if round % 20 == 0 {
            is_served(&caller);
        }
    }
    is_served(&caller);
}

#[test]
fn silent_and_half_open_connections_do_not_keep_others_out() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(gateway.address)).collect();
    let mut halves: Vec<TcpStream> = (0..200).map(|_| connect(gateway.address)).collect();
    for half in &mut halves {
        half.write_all(&PREFACE[..10]).expect("it reads");
    }
    let mut streams: Vec<TcpStream> = (0..100).map(|_| connect(gateway.address)).collect();
    for stream in &mut streams {
        // A request in HTTP/1 whose body does not come.
        let head = "POST /v1/groups/counter/add HTTP/1.1\r\nhost: x\r\n\
                    content-type: application/json\r\ncontent-length: 100\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("it reads");
    }
    is_served(&gateway.caller());
    // Those that say nothing are closed in the end.
    for mut stream in silent.into_iter().chain(halves).take(210) {
        let mut one = [0];
        let read = stream.read(&mut one);
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
        let timed_out = read.as_ref().is_err_and(|it| it.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!timed_out, "it is closed within {LONG:?}");
    }
}

#[test]
fn messages_that_never_come_take_no_place() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    // POST, http, and the path `/a/b`, without Huffman and without a table.
    let headers =
        [&[0x83, 0x86, 0x04, 4][..], b"/a/b", &[0x0f, 0x10, 16], b"application/grpc"].concat();
    let crowd: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(gateway.address);
            let mut bytes = [PREFACE.to_vec(), frame(4, 0, 0, &[])].concat();
            for id in (1..500).step_by(2) {
                // The head, and the beginning of a message.
                bytes.extend(frame(1, 4, id, &headers));
                bytes.extend(frame(0, 0, id, &[0, 0, 0, 0, 9, b'[']));
            }
            stream.write_all(&bytes).expect("it reads");
            stream
        })
        .collect();
    for _ in 0..20 {
        is_served(&caller);
    }
    // Each is told in the end that its message did not come.
    for mut stream in crowd {
        let (mut told, mut scratch) = (0, [0; 16 << 10]);
        while told < 250 * 20 {
            let count = stream.read(&mut scratch).expect("within the time");
            assert!(count > 0, "it closes only what is wrong");
            told += count;
        }
    }
    is_served(&caller);
}

#[test]
fn a_flood_of_resets_ends_its_connection() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    let mut stream = connect(gateway.address);
    stream.write_all(PREFACE).expect("it reads");
    stream.write_all(&frame(4, 0, 0, &[])).expect("it reads");
    // POST, http, and the path `/a/b`, without Huffman and without a table.
    let headers =
        [&[0x83, 0x86, 0x04, 4][..], b"/a/b", &[0x0f, 0x10, 16], b"application/grpc"].concat();
    for id in (1..40_000).step_by(2) {
        let opened = stream.write_all(&frame(1, 4, id, &headers));
        let reset = opened.and_then(|()| stream.write_all(&frame(3, 0, id, &[0, 0, 0, 8])));
        if reset.is_err() {
            break;
        }
    }
    drain(&mut stream);
    is_served(&caller);
}

#[test]
fn a_message_that_is_too_large_is_refused() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let caller = gateway.caller();
    let large = format!("[{}1]", " ".repeat(MAX_BODY));
    let refused = caller.call("/counter/add", &large, &[]).expect_err("too large");
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    assert_eq!(refused.metadata().get("steadfast-executed").expect("told"), "no");
    is_served(&caller);
}

#[test]
fn more_connections_than_there_are_places_wait() {
    let nodes = nodes(1);
    let gateway = Gateway::beside(&nodes);
    let mut crowd: Vec<TcpStream> = (0..1100).map(|_| connect(gateway.address)).collect();
    // A place is free again as soon as one leaves.
    crowd.truncate(1000);
    is_served(&gateway.caller());
}
