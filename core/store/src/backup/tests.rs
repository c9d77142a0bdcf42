use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use wire::ordered::{LoggedState, ReplicaState, StateHead};

use super::*;

fn sample() -> Backup {
    let head = StateHead { executed: 7, ..StateHead::default() };
    let ring = RingId { sequence: 0x33, representative: NodeId(0x44) };
    Backup {
        cluster: "plant".into(),
        group: "counter".into(),
        options: GroupOptions::default(),
        place: Place { epoch: 0x22, ring, sequence: 0x55 },
        node: NodeId(3),
        saved: 0x11,
        executed: 7,
        form: Form::State,
        state: ReplicaState { head, service: "the state".into() }.encode().whole(),
    }
}

fn refused(bytes: impl Into<Bytes>) -> BackupError {
    Backup::decode(&bytes.into()).expect_err("it is not what was saved")
}

#[test]
fn the_layout_is_as_drawn() {
    let file = sample().encode();
    let words: Vec<&str> = vec![
        "5346424b 0ffced21 01000000 00040100",
        "11000000 00000000 22000000 00000000",
        "33000000 00000000 55000000 00000000",
        "44000000 03000000 13000000 00000000",
        "07000000 00000000 fd5b00f7 05000700",
        "706c616e 74636f75 6e746572",
    ];
    let shown: Vec<_> = file[..92]
        .chunks(16)
        .map(|line| {
            let words = line.chunks(4);
            let words = words.map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect());
            words.collect::<Vec<alloc::string::String>>().join(" ")
        })
        .collect();
    assert_eq!(shown, words);
    assert!(file.ends_with(b"the state"));
}

#[test]
fn what_was_saved_comes_back() {
    let (backup, content) = Backup::decode(&sample().encode()).expect("it is whole");
    assert_eq!(backup, sample());
    assert_eq!((content.executed, content.service), (7, Some("the state".into())));

    let log = LoggedState {
        logged: 2,
        cut: 2,
        proven: 2,
        poisoned: vec![],
        checkpoint: Bytes::new(),
        log: vec![],
        ends: vec![],
        blamed: vec![],
    };
    let options = GroupOptions { style: Style::ColdPassive, ..GroupOptions::default() };
    let cold =
        Backup { options, form: Form::Log, state: log.encode().whole(), executed: 2, ..sample() };
    let (backup, content) = Backup::decode(&cold.encode()).expect("it is whole");
    assert_eq!((backup, content.service), (cold, None));
}

#[test]
fn whatever_is_cut_off_or_appended_is_found() {
    let file = sample().encode();
    for length in 0..file.len() {
        let error = refused(file.slice(..length));
        assert!(matches!(error, BackupError::Short { there, .. } if there == length as u64));
    }
    let mut long = file.to_vec();
    long.push(0);
    let whole = file.len() as u64;
    assert_eq!(refused(long), BackupError::Long { there: whole + 1, whole });
}

#[test]
fn no_bit_can_be_another() {
    let file = sample().encode();
    for place in 0..file.len() * 8 {
        let mut bytes = file.to_vec();
        bytes[place / 8] ^= 1 << (place % 8);
        let error = refused(bytes);
        let expected = match place / 8 {
            0..4 => matches!(error, BackupError::Magic),
            8..12 => matches!(error, BackupError::Version(_) | BackupError::Head),
            // The length of a name that is longer than the file has it cut short.
            76..80 => matches!(error, BackupError::Head | BackupError::Short { .. }),
            4..92 => error == BackupError::Head,
            _ => error == BackupError::State,
        };
        assert!(expected, "bit {place}: {error:?}");
    }
}

#[test]
fn head_and_state_of_two_files_do_not_fit() {
    let (one, other) = (sample(), Backup { cluster: "depot".into(), ..sample() });
    let head = StateHead { executed: 7, ..StateHead::default() };
    let state = ReplicaState { head, service: "THE STATE".into() }.encode().whole();
    let mixed = [one.head(), state].concat();
    assert_eq!(refused(mixed), BackupError::State);
    let mut head = one.head().to_vec();
    head[80..85].copy_from_slice(other.cluster.as_bytes());
    assert_eq!(refused([head.into(), one.state].concat()), BackupError::Head);
}

#[test]
fn a_file_of_something_else_or_of_a_later_program_is_named() {
    assert_eq!(refused(&b"{\"json\": true}"[..]), BackupError::Magic);
    let mut later = sample().encode().to_vec();
    later[8] = 2;
    let error = refused(later);
    assert_eq!(error, BackupError::Version(2));
    assert!(error.to_string().ends_with("use the program that saved it, or a newer one"));
}

#[test]
fn a_state_that_nobody_wrote_is_refused_although_it_is_whole() {
    let state = Bytes::from_static(b"\xff\xff\xff\xff?");
    assert!(matches!(refused(Backup { state, ..sample() }.encode()), BackupError::Content(_)));
    let other = Backup { executed: 8, ..sample() };
    assert!(matches!(refused(other.encode()), BackupError::Content(_)));
}
