//! Frames between an agent and a rank: their bytes, their way through a stream, what is refused.

use std::fmt::Write;

use bytes::BytesMut;
use expect_test::expect;
use steadfast_wire as wire;
use wire::limits::MAX_FRAME;
use wire::rank::{
    Array, Choice, Choices, Counts, Every, Frame, Hello, Log, MAX_ARRAY_NAME, MAX_ARRAYS,
    MAX_PIECES, PAGE, Saved, Snapshot, Span, Step, Welcome,
};
use wire::{Malformed, Random};

fn array(name: &str, length: u64) -> Array {
    Array { name: name.into(), form: "<f8 (2,)".into(), length }
}

fn snapshot(spans: &[(u32, u64, u64)]) -> Frame {
    let spans = spans.iter().map(|&(array, offset, length)| Span { array, offset, length });
    Frame::Snapshot(Snapshot {
        step: 7,
        full: false,
        stop_us: 300,
        arrays: vec![array("a", 3 * PAGE), array("b", 16)],
        spans: spans.collect(),
        counts: vec![Counts { first: 3, sent: 5, below: 7, taken: 9, start: 2, checks: [11, 13] }],
    })
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
        restored: true,
        full: false,
        blocking: true,
        regrouped: false,
        rank: 2,
        ranks: 4,
        job: 1,
        start: 3,
        step: 7,
        every: Every::Micros(10_000_000),
        age_us: 9,
        generation: 5,
        after: 3,
        noted: 2,
        arrays: vec![array("a", 16)],
    }
}

fn saved(generation: u64, outcome: Result<(), String>) -> Saved {
    Saved { step: 7, generation, outcome, full: false }
}

fn samples() -> Vec<(&'static str, Frame)> {
    let token = std::array::from_fn(|place| place as u8);
    let choices = [Choice::From(3), Choice::There(true), Choice::Number(1 << 40)];
    vec![
        ("hello", Frame::Hello(Hello::new(token))),
        ("welcome", Frame::Welcome(welcome())),
        ("snapshot", snapshot(&[(0, PAGE, 2 * PAGE), (1, 0, 16)])),
        ("saved", Frame::Saved(saved(6, Ok(())))),
        ("not saved", Frame::Saved(Saved { full: true, ..saved(0, Err("full".into())) })),
        ("step", Frame::Step(Step { step: 8, steps: 100 })),
        ("save", Frame::Save),
        ("finish", Frame::Finish),
        ("finished", Frame::Finished),
        ("farewell", Frame::Farewell("bye".into())),
        ("bell", Frame::Bell(3)),
        ("log", Frame::Log(Log { rank: 3, start: 2 })),
        ("needless", Frame::Needless(vec![(0, 17), (3, 4)])),
        ("oldest", Frame::Oldest(4)),
        ("choices", Frame::Choices(Choices { after: 9, choices: choices.into() })),
        ("noted", Frame::Noted(12)),
        ("waits", Frame::Waits),
        ("diverged", Frame::Diverged("another message".into())),
        ("keeper", Frame::Keeper(128)),
        ("kept", Frame::Kept(3)),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The bytes of the protocol's first version: a change here breaks every program of a user.
#[test]
fn the_bytes_are_these() {
    let mut seen = String::new();
    for (name, frame) in samples() {
        writeln!(seen, "{name}: {}", hex(&frame.encode())).unwrap();
    }
    expect![[r#"
        hello: 28000000010000005346524b01000000000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
        welcome: 610000000200000001050100020000000400000001000000000000000300000000000000070000000000000080969800000000000900000000000000050000000000000003000000000000000200000000000000010008001000000000000000613c66382028322c29
        snapshot: 9e000000030000000700000000000000000000002c010000020000000200000001000000010008000030000000000000613c66382028322c29010008001000000000000000623c66382028322c2900000000001000000000000000200000000000000100000000000000000000001000000000000000030000000000000005000000000000000700000000000000090000000000000002000000000000000b0000000d000000
        saved: 1200000004000000070000000000000006000000000000000100
        not saved: 160000000400000007000000000000000000000000000000000166756c6c
        step: 100000000500000008000000000000006400000000000000
        save: 0000000006000000
        finish: 0000000007000000
        finished: 0000000008000000
        farewell: 0300000009000000627965
        bell: 040000000a00000003000000
        log: 0c0000000b000000030000000200000000000000
        needless: 180000000c000000000000001100000000000000030000000400000000000000
        oldest: 080000000d0000000400000000000000
        choices: 230000000e0000000900000000000000010300000000000000020100000000000000030000000000010000
        noted: 080000000f0000000c00000000000000
        waits: 0000000010000000
        diverged: 0f00000011000000616e6f74686572206d657373616765
        keeper: 040000001200000080000000
        kept: 040000001300000003000000
    "#]]
    .assert_eq(&seen);
}

#[test]
fn frames_survive_any_cut_of_the_stream() {
    let mut random = Random::new(1);
    let frames: Vec<Frame> = samples().into_iter().map(|(_, frame)| frame).collect();
    let stream: Vec<u8> = frames.iter().flat_map(|frame| frame.encode()).collect();
    for _ in 0..200 {
        let (mut buffer, mut rest, mut taken) = (BytesMut::new(), &stream[..], Vec::new());
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + random.below(rest.len() as u64) as usize);
            buffer.extend_from_slice(piece);
            rest = behind;
            while let Some(frame) = Frame::take(&mut buffer).unwrap() {
                taken.push(frame);
            }
        }
        assert_eq!(taken, frames);
    }
}

#[test]
fn what_no_rank_says_is_refused() {
    let refused =
        |frame: &Frame| Frame::take(&mut BytesMut::from(&frame.encode()[..])).unwrap_err();
    for spans in [
        &[(2, 0, 16)][..],
        &[(1, 0, 17)],
        &[(1, 0, 8)],
        &[(0, 8, PAGE)],
        &[(0, 0, 0)],
        &[(0, u64::MAX - PAGE + 1, PAGE)],
        &[(0, PAGE, PAGE), (0, PAGE, PAGE)],
        &[(1, 0, 16), (0, 0, PAGE)],
    ] {
        let malformed = refused(&snapshot(spans));
        assert!(matches!(malformed, Malformed::Field(_)), "{spans:?}: {malformed}");
    }
    let twice = Welcome { arrays: vec![array("a", 1), array("a", 1)], ..welcome() };
    assert!(matches!(refused(&Frame::Welcome(twice)), Malformed::Field(_)));
    let many = vec![(0, 0, PAGE); MAX_PIECES + 1];
    assert_eq!(refused(&snapshot(&many)), Malformed::Field("spans"));
    let mut bytes = BytesMut::from(&Frame::Save.encode()[..]);
    bytes[0] = 1;
    bytes.extend_from_slice(&[0]);
    assert_eq!(Frame::take(&mut bytes), Err(Malformed::Length), "it has no body");
}

/// The largest snapshot fits a frame.
#[test]
fn the_limits_fit() {
    let long =
        || Array { form: "f".repeat(MAX_ARRAY_NAME), ..array(&"n".repeat(MAX_ARRAY_NAME), 0) };
    let numbered = |number: usize| format!("{number:0>width$}", width = MAX_ARRAY_NAME);
    let named = |number| Array { name: numbered(number), ..long() };
    let mut arrays: Vec<Array> = (0..MAX_ARRAYS).map(named).collect();
    arrays[0].length = MAX_PIECES as u64 * PAGE;
    let span = |place: u64| Span { array: 0, offset: place * PAGE, length: PAGE };
    let spans = (0..MAX_PIECES as u64).map(span).collect();
    let snapshot = Snapshot { step: 1, full: true, stop_us: 1, arrays, counts: Vec::new(), spans };
    let bytes = Frame::Snapshot(snapshot.clone()).encode();
    assert!(bytes.len() < MAX_FRAME, "{}", bytes.len());
    let taken = Frame::take(&mut BytesMut::from(&bytes[..])).unwrap();
    assert_eq!(taken, Some(Frame::Snapshot(snapshot)));
}
