//! The bytes of one message of each kind, as version 1 of each protocol writes them.
//!
//! A failure here means that the layout has changed: nodes of the version before would misread it.
//! Raise the protocol's range in `versions` when that is wanted, correct the drawing beside the type, and let
//! `UPDATE_EXPECT=1 cargo test -p steadfast-wire` write the bytes anew.

use std::fmt::Write;

use expect_test::{Expect, expect};

use crate::samples;

fn dump(text: &mut String, name: &str, bytes: &[u8]) {
    writeln!(text, "{name}: {} bytes", bytes.len()).unwrap();
    for line in bytes.chunks(16) {
        let hex: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "  {}", hex.join(" ")).unwrap();
    }
}

fn check<'a>(messages: impl IntoIterator<Item = (&'a str, bytes::Bytes)>, expected: &Expect) {
    let mut text = String::new();
    for (name, bytes) in messages {
        dump(&mut text, name, &bytes);
    }
    expected.assert_eq(&text);
}

#[test]
fn datagrams() {
    let messages = samples::datagrams();
    check(
        messages.iter().map(|(name, datagram)| (*name, datagram.encode())),
        &expect![[r#"
            data: 80 bytes
              53 46 01 01 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 0b 0a 00 00 00 00 00 00
              01 00 00 00 05 00 00 00 11 00 00 00 00 00 00 00
              22 00 00 00 00 00 00 00 21 00 00 00 00 00 00 00
              03 00 02 00 65 6e 64 05 00 03 00 77 68 6f 6c 65
            safe data: 72 bytes
              53 46 01 01 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 0b 0a 00 00 00 00 00 00
              01 00 00 00 05 00 00 00 11 00 00 00 00 00 00 00
              22 00 00 00 00 00 00 00 21 00 00 00 00 00 00 00
              04 00 07 00 73 61 66 65
            recovered data: 112 bytes
              53 46 01 01 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 0b 0a 00 00 00 00 00 00
              01 00 00 00 02 00 00 00 11 00 00 00 00 00 00 00
              22 00 00 00 00 00 00 00 21 00 00 00 00 00 00 00
              01 0a 00 00 00 00 00 00 02 00 00 00 03 00 00 00
              03 01 00 00 00 00 00 00 33 00 00 00 00 00 00 00
              03 00 02 00 65 6e 64 05 00 03 00 77 68 6f 6c 65
            token: 42 bytes
              53 46 01 02 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 ac 02 22 03 22
              21 20 05 01 02 02 02 1f 1e 01
            ack: 32 bytes
              53 46 01 03 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 ac 02 20 01 22
            want: 27 bytes
              53 46 01 04 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01
            join: 60 bytes
              53 46 00 05 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 03 01 81 02 02 82 02 03
              83 02 02 02 05 8b 14 01 01 02 80 9f 49 e0 c6 5b
              a0 c2 1e 32 01 02 02 03 02 02 e1 e2
            call: 35 bytes
              53 46 01 06 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 00 02 01 81 02
              03 83 02
            entry: 38 bytes
              53 46 01 06 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 01 03 83 02 81
              14 02 30 31 2f 03
            entries: 49 bytes
              53 46 01 06 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 02 02 01 81 02
              81 14 02 30 31 2f 03 03 83 02 81 14 02 30 31 2f
              03
            beacon: 40 bytes
              53 46 00 07 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 02 01 03 02 02
              04 02 01 02 02 03 02 00
            roster: 34 bytes
              53 46 00 0e c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 05 8b 14 01 20 00 02 02
              01 02
            stable: 30 bytes
              53 46 01 09 c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 ac 02 20
            pulse: 36 bytes
              53 46 01 0a c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 ac 02 02 01 20
              21 c0 b8 02
            stored: 29 bytes
              53 46 01 0b c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 20 01
            confirm: 28 bytes
              53 46 01 0c c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 03
            confirmed: 30 bytes
              53 46 01 0d c4 c3 c2 c1 07 00 00 00 00 00 00 00
              07 01 00 00 00 00 00 00 8b 14 01 03 ac 02
        "#]],
    );
}

#[test]
fn what_a_node_keeps() {
    check(
        samples::kept(),
        &expect![[r#"
            since: 2 bytes
              00 71
            installed: 61 bytes
              01 05 8b 14 01 02 01 81 02 02 82 02 01 07 63 6f
              75 6e 74 65 72 04 01 00 06 04 81 14 02 54 04 81
              14 02 54 02 01 81 02 01 02 82 02 00 01 03 83 02
              01 04 84 02 01 05 85 02 09 00 01 01 02
            effective: 1 bytes
              02
            changed: 47 bytes
              03 07 63 6f 75 6e 74 65 72 04 01 00 06 04 81 14
              02 54 04 81 14 02 54 02 01 81 02 01 02 82 02 00
              01 03 83 02 01 04 84 02 01 05 85 02 09 00 01
            volatile: 2 bytes
              04 01
            level: 2 bytes
              05 02
            recollection: 78 bytes
              71 05 8b 14 01 02 01 81 02 02 82 02 01 05 8b 14
              01 02 01 81 02 02 82 02 01 07 63 6f 75 6e 74 65
              72 04 01 00 06 04 81 14 02 54 04 81 14 02 54 02
              01 81 02 01 02 82 02 00 01 03 83 02 01 04 84 02
              01 05 85 02 09 00 01 04 81 14 02 54 01 02
        "#]],
    );
}

#[test]
fn requests_and_components() {
    let messages = samples::requests_and_components();
    check(
        messages.iter().map(|(name, message)| (*name, message.encode())),
        &expect![[r#"
            request: 72 bytes
              01 03 00 03 b1 00 00 00 a1 00 00 00 00 00 00 00
              c1 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00
              08 00 00 00 00 00 00 00 d1 00 00 00 00 00 00 00
              e1 00 00 00 00 00 00 00 65 00 00 00 00 00 00 00
              71 00 00 00 62 6f 64 79
            request that is compared: 72 bytes
              01 05 00 03 b1 00 00 00 a1 00 00 00 00 00 00 00
              c1 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00
              08 00 00 00 00 00 00 00 d1 00 00 00 00 00 00 00
              e1 00 00 00 00 00 00 00 65 00 00 00 00 00 00 00
              71 00 00 00 62 6f 64 79
            request with a key: 72 bytes
              01 0d 00 03 b1 00 00 00 a1 00 00 00 00 00 00 00
              c1 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00
              08 00 00 00 00 00 00 00 d1 00 00 00 00 00 00 00
              e1 00 00 00 00 00 00 00 65 00 00 00 00 00 00 00
              71 00 00 00 62 6f 64 79
            nested request: 96 bytes
              01 00 02 03 b1 00 00 00 a1 00 00 00 00 00 00 00
              08 2f c8 0b 6b 77 09 4e 02 09 00 00 00 00 00 00
              00 08 00 00 00 00 00 00 d1 00 00 00 00 00 00 00
              e1 00 00 00 00 00 00 00 65 00 00 00 00 00 00 00
              71 00 00 00 c1 00 00 00 00 00 00 00 a2 00 00 00
              00 00 00 00 a3 00 00 00 00 00 00 00 62 6f 64 79
            nested end: 20 bytes
              10 a1 01 a3 01 c1 01 09 02 91 01 00 00 06 72 65
              73 75 6c 74
            announce: 125 bytes
              02 8b 14 01 01 04 81 14 02 02 01 81 02 02 82 02
              01 05 81 14 02 02 01 81 02 02 82 02 55 01 a1 01
              04 81 14 02 54 01 a1 01 01 00 7f 00 00 01 bc 37
              01 71 01 00 01 07 63 6f 75 6e 74 65 72 04 01 00
              06 04 81 14 02 54 04 81 14 02 54 02 01 81 02 01
              02 82 02 00 01 03 83 02 01 04 84 02 01 05 85 02
              09 00 01 04 81 14 02 54 01 a2 01 03 30 2e 32 01
              02 02 03 01 02 01 02 01 02 02 02 e1 e2
            install: 125 bytes
              03 8b 14 01 05 01 07 63 6f 75 6e 74 65 72 04 01
              00 06 04 81 14 02 54 04 81 14 02 54 02 01 81 02
              01 02 82 02 00 01 03 83 02 01 04 84 02 01 05 85
              02 09 00 01 01 01 f1 f1 f1 f1 f1 f1 f1 f1 01 02
              f2 f2 f2 f2 f2 f2 f2 f2 5e 5e 5e 5e 5e 5e 5e 5e
              5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e
              5e 5e 5e 5e 5e 5e 5e 5e 00 01 02 01 03 01 04 03
              30 2e 32 01 02 02 03 01 02 01 02 01 02
        "#]],
    );
}

#[test]
fn memberships_and_states() {
    let messages = samples::memberships_and_states();
    check(
        messages.iter().map(|(name, message)| (*name, message.encode())),
        &expect![[r#"
            join group: 12 bytes
              04 07 63 6f 75 6e 74 65 72 04 01 00
            leave group: 5 bytes
              05 a1 01 01 00
            leave group of the dead: 8 bytes
              05 a1 01 01 01 66 68 00
            state chunk: 29 bytes
              06 01 00 00 02 00 00 00 a1 00 00 00 00 00 00 00
              06 00 00 00 00 00 00 00 73 74 61 74 65
            update chunk: 58 bytes
              0c 01 00 00 02 00 00 00 a1 00 00 00 00 00 00 00
              67 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
              01 0a 00 00 00 00 00 00 02 00 00 00 54 00 00 00
              00 00 00 00 75 70 64 61 74 65
            checkpoint chunk: 62 bytes
              0c 00 01 00 00 00 00 00 a1 00 00 00 00 00 00 00
              67 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
              01 0a 00 00 00 00 00 00 02 00 00 00 54 00 00 00
              00 00 00 00 63 68 65 63 6b 70 6f 69 6e 74
            relay: 18 bytes
              0d a1 01 04 81 14 02 54 c1 01 09 01 05 65 72 72
              6f 72
            relay of a call that is compared: 20 bytes
              0d a1 01 04 81 14 02 54 c1 01 09 01 05 65 72 72
              6f 72 92 01
            offer: 6 bytes
              1a a1 01 06 ac 02
            declined: 4 bytes
              1b a1 01 06
            synced: 4 bytes
              07 a1 01 06
            recalled: 8 bytes
              0f a1 01 04 81 14 02 54
        "#]],
    );
}

#[test]
fn decisions() {
    let messages = samples::decisions();
    check(
        messages.iter().map(|(name, message)| (*name, message.encode())),
        &expect![[r#"
            restyle: 5 bytes
              13 a1 01 06 05
            move: 7 bytes
              0b a1 01 02 82 02 06
            demote: 10 bytes
              16 a1 01 06 66 68 01 c1 01 09
            usage: 23 bytes
              14 80 9f 49 e0 c6 5b 01 02 a1 01 c0 9a 0c a2 01
              09 21 00 00 80 02 68
            rank: 7 bytes
              15 a1 01 06 02 03 02
            shedding: 8 bytes
              17 02 05 f0 2e 02 04 03
            notes: 23 bytes
              21 01 a1 01 01 11 6d 69 73 73 69 6e 67 20 66 69
              65 6c 64 20 60 78 60
            anew: 4 bytes
              22 a1 01 06
            compare: 3 bytes
              23 a1 01
            compared: 9 bytes
              24 a1 01 07 01 09 28 05 06
            lineage: 12 bytes
              25 09 01 02 04 06 01 28 05 07 01 07
            merge chunk: 37 bytes
              26 01 00 00 02 00 00 00 01 00 00 00 00 00 00 00
              07 00 00 00 00 00 00 00 ed 5e 00 00 00 00 00 00
              73 74 61 74 65
            progress: 5 bytes
              18 a1 01 66 00
            trial: 11 bytes
              18 a1 01 66 01 03 02 01 02 01 00
            poisoned: 7 bytes
              19 a1 01 67 02 01 03
            save: 5 bytes
              1c 00 a1 01 09
            deposit: 16 bytes
              1c 01 07 63 6f 75 6e 74 65 72 04 01 00 01 09 01
            activate: 2 bytes
              1d 02
            a node comes: 31 bytes
              1e 00 00 04 01 00 c0 00 02 04 a1 38 02 01 01 00
              c0 00 02 01 a1 38 03 01 00 c0 00 02 03 a1 38
            a roster is kept: 7 bytes
              1e 01 05 8b 14 01 20
            install with a roster: 165 bytes
              20 05 8b 14 01 20 02 01 01 00 c0 00 02 01 a1 38
              03 01 00 c0 00 02 03 a1 38 01 02 00 01 00 04 01
              00 c0 00 02 04 a1 38 01 01 8b 14 01 05 01 07 63
              6f 75 6e 74 65 72 04 01 00 06 04 81 14 02 54 04
              81 14 02 54 02 01 81 02 01 02 82 02 00 01 03 83
              02 01 04 84 02 01 05 85 02 09 00 01 01 01 f1 f1
              f1 f1 f1 f1 f1 f1 01 02 f2 f2 f2 f2 f2 f2 f2 f2
              5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e
              5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e
              00 01 02 01 03 01 04 03 30 2e 32 01 02 02 03 01
              02 01 02 01 02
            announce with a roster: 165 bytes
              1f 05 8b 14 01 20 02 01 01 00 c0 00 02 01 a1 38
              03 01 00 c0 00 02 03 a1 38 01 02 00 01 00 04 01
              00 c0 00 02 04 a1 38 01 01 8b 14 01 01 04 81 14
              02 02 01 81 02 02 82 02 01 05 81 14 02 02 01 81
              02 02 82 02 55 01 a1 01 04 81 14 02 54 01 a1 01
              01 00 7f 00 00 01 bc 37 01 71 01 00 01 07 63 6f
              75 6e 74 65 72 04 01 00 06 04 81 14 02 54 04 81
              14 02 54 02 01 81 02 01 02 82 02 00 01 03 83 02
              01 04 84 02 01 05 85 02 09 00 01 04 81 14 02 54
              01 a2 01 03 30 2e 32 01 02 02 03 01 02 01 02 01
              02 02 02 e1 e2
            discard: 5 bytes
              1c 02 a1 01 09
            ballot: 41 bytes
              11 a1 01 12 00 11 10 01 02 e1 e1 e1 e1 e1 e1 e1
              e1 e1 e1 e1 e1 e1 e1 e1 e1 e2 e2 e2 e2 e2 e2 e2
              e2 e2 e2 e2 e2 e2 e2 e2 e2
            opening ballot: 42 bytes
              11 a1 01 12 01 10 11 10 01 02 e1 e1 e1 e1 e1 e1
              e1 e1 e1 e1 e1 e1 e1 e1 e1 e1 e2 e2 e2 e2 e2 e2
              e2 e2 e2 e2 e2 e2 e2 e2 e2 e2
            absent: 7 bytes
              12 a1 01 02 82 02 12
        "#]],
    );
}

#[test]
fn keys_and_benchmarks() {
    let messages = samples::keys_and_benchmarks();
    check(
        messages.iter().map(|(name, message)| (*name, message.encode())),
        &expect![[r#"
            key offer: 43 bytes
              0a 00 02 f2 f2 f2 f2 f2 f2 f2 f2 5e 5e 5e 5e 5e
              5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e
              5e 5e 5e 5e 5e 5e 5e 5e 5e 5e 5e
            key stored: 11 bytes
              0a 01 02 f2 f2 f2 f2 f2 f2 f2 f2
            key sealing: 11 bytes
              0a 02 02 f2 f2 f2 f2 f2 f2 f2 f2
            key force: 11 bytes
              0a 03 02 f2 f2 f2 f2 f2 f2 f2 f2
            key abort: 11 bytes
              0a 04 02 f2 f2 f2 f2 f2 f2 f2 f2
            bench plan: 21 bytes
              08 00 b5 01 8b 14 01 02 01 03 80 08 ac 02 14 05
              00 02 00 11 02
            bench done: 6 bytes
              08 01 b5 01 ac 02
            bench report: 60 bytes
              08 02 b5 01 02 ac 02 ab 02 77 01 02 00 c0 96 b1
              02 01 31 80 0a 02 81 01 02 82 01 01 32 80 0a 02
              81 01 02 82 01 01 33 80 0a 02 81 01 02 82 01 01
              34 80 0a 02 81 01 02 82 01 01 00 35
            bench stop: 4 bytes
              08 03 b5 01
            load: 23 bytes
              09 00 01 00 b5 00 00 00 12 00 00 00 00 00 00 00
              63 6f 6e 74 65 6e 74
        "#]],
    );
}

#[test]
fn frames() {
    let messages = samples::frames();
    check(
        messages.iter().map(|(name, frame)| (*name, frame.encode())),
        &expect![[r#"
            hello: 17 bytes
              09 00 00 00 01 00 00 00 53 46 43 4c 01 02 c1 01
              00
            welcome: 19 bytes
              0b 00 00 00 02 00 00 00 01 07 05 74 72 69 61 6c
              02 e1 e2
            bind: 16 bytes
              08 00 00 00 03 00 00 00 07 63 6f 75 6e 74 65 72
            bound: 42 bytes
              22 00 00 00 04 00 00 00 a1 01 01 06 05 02 01 00
              7f 00 00 01 bc 37 02 01 00 00 00 00 00 00 00 00
              00 00 00 00 00 00 00 01 bd 37
            bound to nothing: 11 bytes
              03 00 00 00 04 00 00 00 a1 01 00
            request: 64 bytes
              38 00 00 00 05 00 00 00 a1 00 00 00 00 00 00 00
              c1 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00
              08 00 00 00 00 00 00 00 05 00 00 00 00 00 00 00
              b1 00 00 00 90 d0 03 00 00 03 00 00 62 6f 64 79
            reply: 46 bytes
              26 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              01 00 00 00 00 00 00 00 72 65 73 75 6c 74
            reply with targets: 71 bytes
              3f 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              04 00 00 00 1f 00 00 00 06 05 02 01 00 7f 00 00
              01 bc 37 02 01 00 00 00 00 00 00 00 00 00 00 00
              00 00 00 00 01 bd 37
            reply of the service: 45 bytes
              25 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              02 00 00 00 00 00 00 00 65 72 72 6f 72
            refused: 75 bytes
              43 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              03 08 00 00 1f 00 00 00 77 61 69 74 06 05 02 01
              00 7f 00 00 01 bc 37 02 01 00 00 00 00 00 00 00
              00 00 00 00 00 00 00 00 01 bd 37
            busy: 79 bytes
              47 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              07 01 00 00 1f 00 00 00 34 12 00 00 77 61 69 74
              06 05 02 01 00 7f 00 00 01 bc 37 02 01 00 00 00
              00 00 00 00 00 00 00 00 00 00 00 00 01 bd 37
            shed: 83 bytes
              4b 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              08 0b 00 00 1f 00 00 00 03 00 00 00 74 6f 6f 20
              6d 75 63 68 06 05 02 01 00 7f 00 00 01 bc 37 02
              01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
              01 bd 37
            no such group: 40 bytes
              20 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              05 00 00 00 00 00 00 00
            no replica: 40 bytes
              20 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              06 00 00 00 00 00 00 00
            gone: 40 bytes
              20 00 00 00 06 00 00 00 09 00 00 00 00 00 00 00
              a1 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00
              09 00 00 00 00 00 00 00
            farewell: 19 bytes
              0b 00 00 00 07 00 00 00 01 02 07 75 70 67 72 61
              64 65 00
            watch: 11 bytes
              03 00 00 00 08 00 00 00 a1 01 03
            news: 42 bytes
              22 00 00 00 09 00 00 00 a1 01 01 06 05 02 01 00
              7f 00 00 01 bc 37 02 01 00 00 00 00 00 00 00 00
              00 00 00 00 00 00 00 01 bd 37
        "#]],
    );
}

#[test]
fn replica_states() {
    check(
        [
            ("state", samples::replica_state().encode().whole()),
            ("state with keys", samples::identity::replica_state().encode().whole()),
        ],
        &expect![[r#"
            state: 73 bytes
              3e 00 00 00 66 67 65 d1 01 01 c1 01 07 d0 01 03
              07 00 06 72 65 73 75 6c 74 08 01 05 65 72 72 6f
              72 09 02 05 03 6f 6c 64 01 08 91 01 01 67 c1 01
              09 b1 01 01 d1 01 02 01 03 ac 02 06 70 6f 69 73
              6f 6e 73 65 72 76 69 63 65
            state with keys: 88 bytes
              4d 00 00 00 66 67 65 d1 01 01 c1 01 07 d0 01 03
              07 00 06 72 65 73 75 6c 74 08 01 05 65 72 72 6f
              72 09 02 05 03 6f 6c 64 01 08 91 01 01 67 c1 01
              09 b1 01 01 d1 01 02 01 03 ac 02 06 70 6f 69 73
              6f 6e 01 c1 01 01 01 07 92 01 01 c2 01 05 d0 01
              41 73 65 72 76 69 63 65
        "#]],
    );
}

#[test]
fn updates_and_changes() {
    let changes = samples::changes().map(|(name, change)| (name, change.encode()));
    check(
        [
            ("update", samples::update().encode()),
            ("update with keys", samples::identity::update().encode()),
            ("log", samples::logged_state().encode().whole()),
        ]
        .into_iter()
        .chain(changes),
        &expect![[r#"
            update: 42 bytes
              12 00 00 00 d1 01 01 c1 01 09 07 91 01 00 06 72
              65 73 75 6c 74 00 02 0b 00 00 00 de f4 02 02 ac
              02 02 03 01 00 01 6e 65 77 73
            update with keys: 46 bytes
              16 00 00 00 d1 01 01 c1 01 09 07 91 01 00 06 72
              65 73 75 6c 74 00 01 02 92 01 02 0b 00 00 00 de
              f4 02 02 ac 02 02 03 01 00 01 6e 65 77 73
            log: 269 bytes
              26 00 00 00 82 02 81 02 84 02 01 83 02 02 01 03
              49 02 4d 4d 01 82 02 a2 01 a1 01 c1 01 09 02 91
              01 00 00 06 72 65 73 75 6c 74 01 00 00 03 e1 00
              00 00 a1 00 00 00 00 00 00 00 c1 00 00 00 00 00
              00 00 09 00 00 00 00 00 00 00 07 00 00 00 00 00
              00 00 d1 00 00 00 00 00 00 00 ed 5e 00 00 00 00
              00 00 65 00 00 00 00 00 00 00 71 00 00 00 61 72
              67 75 6d 65 6e 74 73 01 00 00 03 e1 00 00 00 a1
              00 00 00 00 00 00 00 c1 00 00 00 00 00 00 00 0a
              00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 d1
              00 00 00 00 00 00 00 ed 5e 00 00 00 00 00 00 65
              00 00 00 00 00 00 00 71 00 00 00 61 72 67 75 6d
              65 6e 74 73 3e 00 00 00 66 67 65 d1 01 01 c1 01
              07 d0 01 03 07 00 06 72 65 73 75 6c 74 08 01 05
              65 72 72 6f 72 09 02 05 03 6f 6c 64 01 08 91 01
              01 67 c1 01 09 b1 01 01 d1 01 02 01 03 ac 02 06
              70 6f 69 73 6f 6e 73 65 72 76 69 63 65
            whole: 8 bytes
              01 73 65 72 76 69 63 65
            difference: 20 bytes
              02 0b 00 00 00 de f4 02 02 ac 02 02 03 01 00 01
              6e 65 77 73
            own: 6 bytes
              03 77 6f 72 64 73
        "#]],
    );
}
