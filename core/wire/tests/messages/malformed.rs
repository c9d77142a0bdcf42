//! Bytes that are not a message: truncated, mutated, foreign. Nothing here may panic, and what is
//! read all the same must be a message that a sender could have written.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use wire::client::{FIRST_OPTIONAL_FRAME, FRAME_OVERHEAD, Frame, Hello};
use wire::limits::MAX_FRAME;
use wire::ordered::{Change, LoggedState, Ordered, ReplicaState, Update};
use wire::ring::Datagram;
use wire::versions::{CLIENT, RING};
use wire::{ClientId, ClusterId, Malformed, VersionRange};

use crate::{samples, strategies};

/// Any bytes are refused, or are a message that survives its own round trip.
fn try_datagram(bytes: &Bytes) -> Result<(), Malformed> {
    let read = Datagram::decode(samples::CLUSTER, RING, bytes)?;
    assert_eq!(Datagram::decode(samples::CLUSTER, RING, &read.encode()), Ok(read));
    Ok(())
}

fn try_ordered(bytes: &Bytes) -> Result<(), Malformed> {
    let read = Ordered::decode(bytes)?;
    assert_eq!(Ordered::decode(&read.encode()), Ok(read));
    Ok(())
}

fn try_state(bytes: &Bytes) -> Result<(), Malformed> {
    let read = ReplicaState::decode(bytes)?;
    assert_eq!(ReplicaState::decode(&read.encode().whole()), Ok(read));
    Ok(())
}

fn try_logged(bytes: &Bytes) -> Result<(), Malformed> {
    let read = LoggedState::decode(bytes)?;
    assert_eq!(LoggedState::decode(&read.encode().whole()), Ok(read));
    Ok(())
}

fn try_update(bytes: &Bytes) -> Result<(), Malformed> {
    let read = Update::decode(bytes)?;
    let change = Change::decode(&read.change)?;
    assert_eq!(Change::decode(&change.encode()), Ok(change));
    assert_eq!(Update::decode(&read.encode()), Ok(read));
    Ok(())
}

fn try_frame(bytes: &Bytes) -> Result<Option<()>, Malformed> {
    let mut buffer = BytesMut::from(&bytes[..]);
    let Some(read) = Frame::take(&mut buffer)? else { return Ok(None) };
    let mut again = BytesMut::from(&read.encode()[..]);
    assert_eq!(Frame::take(&mut again), Ok(Some(read)));
    Ok(Some(()))
}

/// The same bytes with one of them changed: every place, and values that matter to varints and
/// flags.
fn mutations(bytes: &Bytes) -> impl Iterator<Item = Bytes> + '_ {
    let patterns = (0..8).map(|bit| 1u8 << bit).chain([0xff, 0x7f, 0x81]);
    (0..bytes.len()).flat_map(move |place| {
        patterns.clone().map(move |pattern| {
            let mut changed = bytes.to_vec();
            changed[place] ^= pattern;
            changed.into()
        })
    })
}

/// A frame whose header is right about the length of this body.
fn framed(kind: u8, body: &[u8]) -> Bytes {
    let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
    frame.extend_from_slice(&[kind, 0, 0, 0]);
    frame.extend_from_slice(body);
    frame.into()
}

#[test]
fn truncated_datagrams_are_refused_or_whole() {
    for (name, datagram) in samples::datagrams() {
        let bytes = datagram.encode();
        let whole = (0..bytes.len()).filter(|&n| try_datagram(&bytes.slice(..n)).is_ok()).count();
        // Data may end after any chunk: before the first of two, and between them.
        let expected = match name {
            "safe data" => 1,
            "data" | "recovered data" => 2,
            _ => 0,
        };
        assert_eq!(whole, expected, "{name}");
    }
}

#[test]
fn truncated_ordered_messages_are_refused_or_whole() {
    for (name, message) in samples::ordered() {
        let bytes = message.encode();
        let whole = (0..bytes.len()).filter(|&n| try_ordered(&bytes.slice(..n)).is_ok()).count();
        // The bytes behind these headers may have any length.
        let expected = match name {
            "request" | "request that is compared" | "request with a key" | "nested request" => {
                "body".len()
            }
            "state chunk" | "merge chunk" => "state".len(),
            "load" => "content".len(),
            "update chunk" => "update".len(),
            "checkpoint chunk" => "checkpoint".len(),
            // Without its digest it is one that nobody compares.
            "relay of a call that is compared" => 1,
            _ => 0,
        };
        assert_eq!(whole, expected, "{name}");
    }
}

#[test]
fn truncated_states_are_refused_or_whole() {
    let bytes = samples::replica_state().encode().whole();
    let whole = (0..bytes.len()).filter(|&n| try_state(&bytes.slice(..n)).is_ok()).count();
    assert_eq!(whole, "service".len());
}

#[test]
fn truncated_logs_are_refused() {
    let bytes = samples::logged_state().encode().whole();
    assert!((0..bytes.len()).all(|n| try_logged(&bytes.slice(..n)).is_err()));
}

#[test]
fn truncated_updates_are_refused_or_whole() {
    let bytes = samples::update().encode();
    let whole = (0..bytes.len()).filter(|&n| try_update(&bytes.slice(..n)).is_ok()).count();
    assert_eq!(whole, "news".len());
}

#[test]
fn a_truncated_frame_waits_for_the_rest() {
    for (name, frame) in samples::frames() {
        let bytes = frame.encode();
        for n in 0..bytes.len() {
            assert_eq!(try_frame(&bytes.slice(..n)), Ok(None), "{name}, {n} bytes");
        }
    }
}

#[test]
fn truncated_bodies_in_whole_frames_are_refused_or_whole() {
    for (name, frame) in samples::frames() {
        let bytes = frame.encode();
        let body = &bytes[FRAME_OVERHEAD..];
        let read = |n: usize| try_frame(&framed(bytes[4], &body[..n])).is_ok();
        let whole = (0..body.len()).filter(|&n| read(n)).count();
        // Bodies, results and reasons may have any length; their headers and targets may not.
        let expected = match name {
            "request" => 4,
            "reply" => 6,
            "reply of the service" => 5,
            _ => 0,
        };
        assert_eq!(whole, expected, "{name}");
    }
}

#[test]
fn longer_bodies_are_refused_unless_their_end_is_free() {
    for (name, datagram) in samples::datagrams() {
        let bytes: Bytes = datagram.encode().into_iter().chain([0]).collect();
        assert_eq!(try_datagram(&bytes), Err(Malformed::Length), "{name}");
    }
    let open_ended = [
        "request",
        "request that is compared",
        "request with a key",
        "nested request",
        "state chunk",
        "update chunk",
        "checkpoint chunk",
        "merge chunk",
        "load",
    ];
    for (name, message) in samples::ordered() {
        if open_ended.contains(&name) {
            continue;
        }
        let bytes: Bytes = message.encode().into_iter().chain([0]).collect();
        // A digest may follow, and none of them is 0.
        let refused = if name == "relay" { Malformed::Field("asked") } else { Malformed::Length };
        assert_eq!(try_ordered(&bytes), Err(refused), "{name}");
    }
}

#[test]
fn mutated_messages_do_no_harm() {
    let (mut refused, mut read) = (0, 0);
    let mut count = |ok: bool| if ok { read += 1 } else { refused += 1 };
    for (_, datagram) in samples::datagrams() {
        mutations(&datagram.encode()).for_each(|bytes| count(try_datagram(&bytes).is_ok()));
    }
    for (_, message) in samples::ordered() {
        mutations(&message.encode()).for_each(|bytes| count(try_ordered(&bytes).is_ok()));
    }
    for (_, frame) in samples::frames() {
        mutations(&frame.encode()).for_each(|bytes| count(try_frame(&bytes).is_ok()));
    }
    mutations(&samples::replica_state().encode().whole())
        .for_each(|bytes| count(try_state(&bytes).is_ok()));
    mutations(&samples::logged_state().encode().whole())
        .for_each(|bytes| count(try_logged(&bytes).is_ok()));
    mutations(&samples::update().encode()).for_each(|bytes| count(try_update(&bytes).is_ok()));
    // Both happen: the checks are reached, and are not so strict that they refuse all.
    assert!(refused > 1_000 && read > 1_000, "{refused} refused, {read} read");
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        kind in 0..12u8,
    ) {
        let bytes = Bytes::from(bytes);
        // Behind a right header, so that the bodies' readers are reached.
        let mut datagram = samples::datagrams()[0].1.encode()[..24].to_vec();
        datagram[3] = kind;
        datagram.extend_from_slice(&bytes);
        let _ = try_datagram(&datagram.into());
        let _ = try_datagram(&bytes);
        let _ = try_ordered(&[&[kind][..], &bytes].concat().into());
        let _ = try_frame(&framed(kind, &bytes));
        let _ = try_state(&bytes);
        let _ = try_frame(&bytes);
    }

    #[test]
    fn mutations_of_any_message_do_no_harm(
        datagram in strategies::datagram(),
        message in strategies::ordered(),
        frame in strategies::frame(),
        place in any::<prop::sample::Index>(),
        pattern in 1..=255u8,
    ) {
        let changed = |bytes: Bytes| {
            let mut bytes = bytes.to_vec();
            let place = place.index(bytes.len());
            bytes[place] ^= pattern;
            Bytes::from(bytes)
        };
        let _ = try_datagram(&changed(datagram.encode()));
        let _ = try_ordered(&changed(message.encode()));
        let _ = try_frame(&changed(frame.encode()));
    }
}

#[test]
fn foreign_datagrams_are_told_apart() {
    let datagram = samples::datagrams().remove(0).1;
    let good = datagram.encode();
    let with = |place: usize, value: u8| {
        let mut bytes = good.to_vec();
        bytes[place] = value;
        try_datagram(&bytes.into())
    };
    assert_eq!(with(0, b'X'), Err(Malformed::Magic));
    let theirs = VersionRange::new(99, 99);
    assert_eq!(with(2, 99), Err(Malformed::Version { theirs, ours: RING }));
    assert_eq!(with(3, 0), Err(Malformed::Kind(0)));
    assert_eq!(with(3, 99), Err(Malformed::Kind(99)));
    // The part of the second chunk: the first one's message is agreed.
    assert_eq!(with(64 + 4 + 3 + 2, 7), Err(Malformed::Field("chunk level")));
    assert_eq!(with(12, 1), Err(Malformed::Field("reserved")));
    let another = ClusterId::of("another");
    assert_eq!(Datagram::decode(another, RING, &good), Err(Malformed::Cluster));
    assert_eq!(try_datagram(&Bytes::new()), Err(Malformed::Length));
}

/// Nodes of any versions read what they need in order to refuse each other, and nothing else.
#[test]
fn joins_beacons_and_rosters_are_read_by_programs_of_any_version() {
    let later = VersionRange::new(7, 8);
    for (name, datagram) in samples::datagrams() {
        let bytes = datagram.encode();
        let read = Datagram::decode(samples::CLUSTER, later, &bytes);
        match name {
            "join" | "beacon" | "roster" => assert_eq!(read, Ok(datagram), "{name}"),
            _ => assert!(matches!(read, Err(Malformed::Version { .. })), "{name}: {read:?}"),
        }
    }
}

#[test]
fn optional_frames_are_skipped_and_others_of_no_known_kind_are_refused() {
    let frame = Frame::Hello(Hello::new(ClientId(1)));
    let optional = |kind: u8| [&[3, 0, 0, 0, kind, 0, 0, 0, 1, 2, 3], &frame.encode()[..]].concat();
    let taken = |bytes: &[u8]| Frame::take(&mut BytesMut::from(bytes));
    for kind in [FIRST_OPTIONAL_FRAME, 255] {
        let bytes = optional(kind);
        assert_eq!(taken(&bytes), Ok(Some(frame.clone())));
        assert_eq!(taken(&bytes[..10]), Ok(None), "it has to come whole");
    }
    assert_eq!(taken(&optional(127)), Err(Malformed::Kind(127)));
}

#[test]
fn a_request_with_a_flag_that_nobody_knows_is_refused() {
    let flags = Malformed::Field("request flags");
    let (_, ordered) = samples::ordered().remove(0);
    let ordered = ordered.encode();
    let request = Frame::Request(samples::request()).encode();
    let with = |bytes: &Bytes, place: usize, bit: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] |= 1 << bit;
        Bytes::from(bytes)
    };
    // A key without a comparison makes no sense: bit 3 alone.
    for bit in 3..8 {
        assert_eq!(try_ordered(&with(&ordered, 1, bit)), Err(flags), "bit {bit}");
    }
    for bit in 5..8 {
        let refused = try_frame(&with(&request, FRAME_OVERHEAD + 48, bit));
        assert_eq!(refused, Err(flags), "bit {bit}");
    }
}

#[test]
fn a_stream_that_is_not_ours_is_refused_by_its_first_bytes() {
    let http = Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(try_frame(&http), Err(Malformed::Length));
    for kind in [0, 10, 127] {
        assert_eq!(try_frame(&framed(kind, b"")), Err(Malformed::Kind(kind)));
    }
    let mut reserved = framed(3, b"\0").to_vec();
    reserved[6] = 1;
    assert_eq!(try_frame(&reserved.into()), Err(Malformed::Field("reserved")));
}

#[test]
fn an_oversize_frame_is_refused_by_its_header() {
    let header = |length: usize| {
        let mut header = u32::try_from(length).unwrap().to_le_bytes().to_vec();
        header.extend_from_slice(&[5, 0, 0, 0]);
        Bytes::from(header)
    };
    assert_eq!(try_frame(&header(MAX_FRAME)), Ok(None));
    assert_eq!(try_frame(&header(MAX_FRAME + 1)), Err(Malformed::Length));
}

#[test]
fn a_hello_with_a_wrong_magic_is_refused_and_one_of_another_version_is_read() {
    let hello = Frame::Hello(Hello::new(ClientId(1)));
    let mut bytes = hello.encode().to_vec();
    bytes[FRAME_OVERHEAD] = b'X';
    assert_eq!(try_frame(&bytes.into()), Err(Malformed::Magic));

    // The node answers another version with a farewell that names both: it must be able to read it.
    let speaks = VersionRange::new(CLIENT.greatest + 1, CLIENT.greatest + 2);
    let newer = Hello { speaks, ..Hello::new(ClientId(1)) };
    let mut bytes = BytesMut::from(&Frame::Hello(newer.clone()).encode()[..]);
    assert_eq!(Frame::take(&mut bytes), Ok(Some(Frame::Hello(newer))));
}

#[test]
fn the_messages_say_what_to_do() {
    let theirs = VersionRange::new(9, 9);
    let version = Malformed::Version { theirs, ours: RING }.to_string();
    assert!(version.contains("version 9") && version.contains("upgrade"), "{version}");
    let cluster = Malformed::Cluster.to_string();
    assert!(cluster.contains("same cluster name"), "{cluster}");
}
