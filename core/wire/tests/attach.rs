//! Frames between a node and its programs: their bytes, their way through a stream, what is
//! refused.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};
use expect_test::expect;
use steadfast_wire as wire;
use wire::attach::{
    Answer, Ask, Digested, Execute, Failed, Frame, Hello, Notice, NoticeCode, Outcome, Piece, Told,
    View, Welcome,
};
use wire::client::Refusal;
use wire::limits::{ATTACH_PIECE, MAX_FRAME, MAX_STATE};
use wire::ordered::StateDigest;
use wire::{ClientId, Lane, Malformed, MethodId, NodeId, Random, Time};

fn samples() -> Vec<(&'static str, Frame)> {
    let token = std::array::from_fn(|place| place as u8);
    let piece = Piece { number: 6, total: 9, bytes: Bytes::from_static(b"piece") };
    let execute = Execute {
        number: 5,
        now: Time(0x0102_0304),
        seed: 0x0506,
        client: ClientId(7),
        call: 8,
        method: MethodId::of("add"),
        json: true,
        read: true,
        lane: Lane::Alarm,
        body: Bytes::from_static(b"[5]"),
    };
    let answer = |outcome| Frame::Answer(Answer { number: 5, panicked: false, outcome });
    let refused = Outcome::Refused(Refusal::Failed, "panic".into());
    vec![
        ("hello", Frame::Hello(Hello::new(0x1234, token, "orders"))),
        (
            "welcome",
            Frame::Welcome(Welcome {
                version: 1,
                ordered: true,
                node: NodeId(3),
                cluster: "plant".into(),
            }),
        ),
        ("execute", Frame::Execute(execute)),
        ("snapshot", Frame::Snapshot(6)),
        ("restore", Frame::Restore(piece.clone())),
        ("reset", Frame::Reset),
        ("answer, ok", answer(Outcome::Ok(Bytes::from_static(b"5")))),
        ("answer, error", answer(Outcome::Error(Bytes::from_static(b"full")))),
        ("answer, refused", Frame::Answer(Answer { number: 5, panicked: true, outcome: refused })),
        ("state", Frame::State(piece)),
        ("failed", Frame::Failed(Failed { number: 6, reason: "no".into() })),
        ("restored", Frame::Restored(6)),
        ("farewell", Frame::Farewell("bye".into())),
        (
            "call",
            Frame::Call(Ask {
                number: 5,
                method: MethodId::of("take"),
                timeout_us: 1_000,
                json: true,
                group: "stock".into(),
                body: Bytes::from_static(b"[2]"),
            }),
        ),
        (
            "called",
            Frame::Called(Told {
                number: 5,
                error: 0,
                outcome: Outcome::Ok(Bytes::from_static(b"7")),
            }),
        ),
        (
            "called, too late",
            Frame::Called(Told {
                number: 5,
                error: 1,
                outcome: Outcome::Refused(Refusal::Failed, "late".into()),
            }),
        ),
        (
            "notice",
            Frame::Notice(Notice { code: NoticeCode::Unreadable, text: "field `x`".into() }),
        ),
        ("compare", Frame::Compare(6)),
        (
            "digested",
            Frame::Digested(Digested { number: 6, state: StateDigest { form: 7, value: 8 } }),
        ),
        (
            "view",
            Frame::View(View {
                number: 9,
                members: vec![NodeId(3), NodeId(1)],
                joining: vec![NodeId(2)],
            }),
        ),
        ("merge", Frame::Merge(Piece { number: 6, total: 9, bytes: Bytes::from_static(b"piece") })),
    ]
}

#[test]
fn the_bytes_of_each_are_those_of_version_one() {
    let mut text = String::new();
    for (name, frame) in samples() {
        let bytes = frame.encode();
        writeln!(text, "{name}: {} bytes", bytes.len()).unwrap();
        for line in bytes.chunks(16) {
            let hex: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(text, "  {}", hex.join(" ")).unwrap();
        }
    }
    expect![[r#"
        hello: 58 bytes
          32 00 00 00 01 00 00 00 53 46 41 54 01 00 00 00
          34 12 00 00 00 01 02 03 04 05 06 07 08 09 0a 0b
          0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b
          1c 1d 1e 1f 6f 72 64 65 72 73
        welcome: 21 bytes
          0d 00 00 00 02 00 00 00 01 01 00 00 03 00 00 00
          70 6c 61 6e 74
        execute: 59 bytes
          33 00 00 00 03 00 00 00 05 00 00 00 00 00 00 00
          04 03 02 01 00 00 00 00 06 05 00 00 00 00 00 00
          07 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00
          4d 25 3b e2 0b 00 00 00 5b 35 5d
        snapshot: 16 bytes
          08 00 00 00 04 00 00 00 06 00 00 00 00 00 00 00
        restore: 29 bytes
          15 00 00 00 05 00 00 00 06 00 00 00 00 00 00 00
          09 00 00 00 00 00 00 00 70 69 65 63 65
        reset: 8 bytes
          00 00 00 00 06 00 00 00
        answer, ok: 21 bytes
          0d 00 00 00 07 00 00 00 05 00 00 00 00 00 00 00
          01 00 00 00 35
        answer, error: 24 bytes
          10 00 00 00 07 00 00 00 05 00 00 00 00 00 00 00
          02 00 00 00 66 75 6c 6c
        answer, refused: 25 bytes
          11 00 00 00 07 00 00 00 05 00 00 00 00 00 00 00
          03 05 01 00 70 61 6e 69 63
        state: 29 bytes
          15 00 00 00 08 00 00 00 06 00 00 00 00 00 00 00
          09 00 00 00 00 00 00 00 70 69 65 63 65
        failed: 18 bytes
          0a 00 00 00 09 00 00 00 06 00 00 00 00 00 00 00
          6e 6f
        restored: 16 bytes
          08 00 00 00 0a 00 00 00 06 00 00 00 00 00 00 00
        farewell: 11 bytes
          03 00 00 00 0b 00 00 00 62 79 65
        call: 36 bytes
          1c 00 00 00 0c 00 00 00 05 00 00 00 00 00 00 00
          19 fe d7 de e8 03 00 00 01 00 05 00 73 74 6f 63
          6b 5b 32 5d
        called: 21 bytes
          0d 00 00 00 0d 00 00 00 05 00 00 00 00 00 00 00
          01 00 00 00 37
        called, too late: 24 bytes
          10 00 00 00 0d 00 00 00 05 00 00 00 00 00 00 00
          03 05 01 00 6c 61 74 65
        notice: 25 bytes
          11 00 00 00 80 00 00 00 01 00 00 00 00 00 00 00
          66 69 65 6c 64 20 60 78 60
        compare: 16 bytes
          08 00 00 00 81 00 00 00 06 00 00 00 00 00 00 00
        digested: 32 bytes
          18 00 00 00 82 00 00 00 06 00 00 00 00 00 00 00
          07 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00
        view: 36 bytes
          1c 00 00 00 83 00 00 00 09 00 00 00 00 00 00 00
          02 01 00 00 00 00 00 00 03 00 00 00 01 00 00 00
          02 00 00 00
        merge: 29 bytes
          15 00 00 00 84 00 00 00 06 00 00 00 00 00 00 00
          09 00 00 00 00 00 00 00 70 69 65 63 65
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_stream_gives_the_frames_that_went_into_it_however_it_is_cut() {
    let frames: Vec<Frame> = samples().into_iter().map(|(_, frame)| frame).collect();
    let mut stream = BytesMut::new();
    frames.iter().for_each(|frame| frame.append(&mut stream));
    for piece in [1, 7, 40, stream.len()] {
        let (mut buffer, mut taken) = (BytesMut::new(), Vec::new());
        for bytes in stream.chunks(piece) {
            buffer.extend_from_slice(bytes);
            while let Some(frame) = Frame::take(&mut buffer).unwrap() {
                taken.push(frame);
            }
        }
        assert_eq!(taken, frames);
        assert!(buffer.is_empty());
    }
}

fn refused(bytes: &[u8]) -> Malformed {
    Frame::take(&mut BytesMut::from(bytes)).expect_err("it was taken")
}

#[test]
fn what_nobody_writes_is_refused() {
    let frame = |kind: u8, body: &[u8]| {
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[kind, 0, 0, 0]);
        bytes.extend_from_slice(body);
        bytes
    };
    assert_eq!(refused(&frame(0, b"")), Malformed::Kind(0));
    assert_eq!(refused(&frame(14, b"")), Malformed::Kind(14));
    assert_eq!(refused(&frame(12, &[0; 20][..19])), Malformed::Length);
    assert_eq!(
        refused(&frame(13, &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0])),
        Malformed::Field("told")
    );
    assert_eq!(refused(&frame(6, b"x")), Malformed::Length);
    assert_eq!(refused(&frame(4, &[0; 9])), Malformed::Length);
    assert_eq!(refused(&frame(11, &[0xff])), Malformed::Field("reason"));
    assert_eq!(refused(&frame(1, &[0; 44])), Malformed::Magic);
    let too_long = [&(MAX_FRAME as u32 + 1).to_le_bytes()[..], &[3, 0, 0, 0]].concat();
    assert_eq!(refused(&too_long), Malformed::Length, "before its body comes");

    let piece = |total: u64, length: usize| {
        let mut body = vec![0; 8];
        body.extend_from_slice(&total.to_le_bytes());
        body.resize(16 + length, 0);
        frame(5, &body)
    };
    let taken = Frame::take(&mut BytesMut::from(&piece(0, 0)[..]));
    assert!(matches!(taken, Ok(Some(Frame::Restore(_)))), "an empty state is one");
    assert_eq!(refused(&piece(4, 5)), Malformed::Field("total"));
    assert_eq!(refused(&piece(4, 0)), Malformed::Field("total"));
    assert_eq!(refused(&piece(MAX_STATE as u64 + 1, 5)), Malformed::Field("total"));
    assert_eq!(refused(&piece(1 << 20, ATTACH_PIECE + 1)), Malformed::Field("piece"));
}

#[test]
fn spoilt_bytes_are_refused_or_are_a_frame_that_is_written_alike() {
    let mut random = Random::new(27);
    for (name, frame) in samples() {
        for _ in 0..2_000 {
            let mut bytes = frame.encode().to_vec();
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] ^= 1 << random.below(8);
            if let Ok(Some(read)) = Frame::take(&mut BytesMut::from(&bytes[..])) {
                let mut again = BytesMut::from(&read.encode()[..]);
                assert_eq!(Frame::take(&mut again), Ok(Some(read)), "{name}");
            }
        }
    }
}
