use proptest::prelude::*;
use steadfast_seal::{Envelope, KeyFileError, Keys, MAX_KEYS, NoSuchKey, Refused};

use crate::{acquainted, at, key, open, sealed};

#[test]
fn a_key_file_is_read_as_it_was_written_and_shows_no_key_when_printed_for_people() {
    let mut keys = Keys::single(key(1));
    keys.add(key(2));
    keys.seal_with(2).unwrap();
    let text = keys.print();
    let again = Keys::parse(&text).unwrap();
    let secrets = |keys: &Keys| -> Vec<(u8, [u8; 32])> {
        keys.iter().map(|key| (key.number(), *key.secret().expose())).collect()
    };
    assert_eq!(secrets(&again), secrets(&keys));
    assert_eq!(again.sealing().number(), 2);
    let shown = format!("{again:?}");
    assert!(shown.contains(&key(2).fingerprint().to_string()), "{shown}");
    let digits = text.lines().last().unwrap().split(' ').next_back().unwrap();
    assert_eq!(digits.len(), 43);
    assert!(!shown.contains(digits) && !shown.contains("2, 2, 2"), "{shown}");
}

#[test]
fn a_wrong_line_is_named_and_not_repeated() {
    let digits = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";
    let good = format!("# a comment\n\n  key 3 {digits}  # and another\n");
    assert_eq!(Keys::parse(&good).unwrap().sealing().number(), 3);
    for (line, wrong) in [
        (1, format!("key 0 {digits}")),
        (1, format!("key 256 {digits}")),
        (1, format!("kez 1 {digits}")),
        (1, format!("key 1 {digits} {digits}")),
        (1, "key 1".to_owned()),
        (1, format!("key 1 {}", &digits[1..])),
        (2, format!("key 1 {digits}\nkey 2 {digits}A")),
        (2, format!("key 1 {digits}\nkey 2 {}+", &digits[1..])),
    ] {
        let error = Keys::parse(&wrong).unwrap_err();
        assert_eq!(error, KeyFileError::Line { line }, "{wrong}");
        assert!(!error.to_string().contains(&digits[..8]));
    }
    let twice = format!("key 1 {digits}\nkey 1 {digits}");
    assert_eq!(Keys::parse(&twice).unwrap_err(), KeyFileError::Twice { line: 2, number: 1 });
    assert_eq!(Keys::parse("# none\n").unwrap_err(), KeyFileError::Empty);
    let many: String = (1..=MAX_KEYS + 1).map(|n| format!("key {n} {digits}\n")).collect();
    assert_eq!(Keys::parse(&many).unwrap_err(), KeyFileError::TooMany);
}

#[test]
fn a_key_changes_without_losing_a_datagram() {
    let (mut a, mut b) = acquainted();
    let deliver = |a: &mut _, b: &mut _| {
        let datagram = sealed(a, Envelope::ALL, b"hello");
        open(b, at(1), &datagram).map(|opened| opened.is_some())
    };
    a.add_key(key(2));
    assert_eq!(deliver(&mut a, &mut b), Ok(true), "the new key opens, but does not seal yet");
    b.add_key(key(2));
    let late = sealed(&mut a, Envelope::ALL, b"late");
    a.seal_with(2).unwrap();
    assert_eq!(deliver(&mut a, &mut b), Ok(true));
    assert_eq!(deliver(&mut b, &mut a), Ok(true), "who is late still seals with the old one");
    b.seal_with(2).unwrap();
    assert!(open(&mut b, at(1), &late).unwrap().is_some(), "what is under way is opened");
    assert_eq!(open(&mut b, at(1), &late), Err(Refused::Duplicate), "one window for all keys");
    let late = sealed_with_old(&mut a);
    b.retire_other_keys();
    assert_eq!(open(&mut b, at(1), &late), Err(Refused::UnknownKey));
    assert_eq!(deliver(&mut a, &mut b), Ok(true));
    assert_eq!(b.seal_with(1), Err(NoSuchKey(1)));
}

fn sealed_with_old(a: &mut steadfast_seal::Seal) -> Vec<u8> {
    a.seal_with(1).unwrap();
    let late = sealed(a, Envelope::ALL, b"late");
    a.seal_with(2).unwrap();
    late
}

#[test]
fn a_key_that_was_given_up_makes_room_for_another_of_its_number() {
    let (mut a, mut b) = acquainted();
    a.add_key(key(2));
    b.add_key(key(2));
    a.seal_with(2).unwrap();
    let first = sealed(&mut a, Envelope::ALL, b"first");
    assert!(open(&mut b, at(1), &first).is_ok());
    let other = || steadfast_seal::ClusterKey::new(2, wire::Secret::new([99; 32]));
    a.seal_with(1).unwrap();
    a.add_key(other());
    a.seal_with(2).unwrap();
    b.add_key(other());
    let second = sealed(&mut a, Envelope::ALL, b"second");
    assert!(open(&mut b, at(1), &second).unwrap().is_some());
}

#[test]
fn no_more_keys_are_kept_than_there_is_room_for() {
    let mut keys = Keys::single(key(1));
    (2..=20).for_each(|number| keys.add(key(number)));
    assert_eq!(keys.iter().count(), MAX_KEYS);
    assert_eq!(keys.sealing().number(), 1, "the one that seals stays");
    assert!(keys.get(20).is_some() && keys.get(2).is_none());
    keys.remove(20);
    keys.remove(1);
    assert!(keys.get(20).is_none() && keys.get(1).is_some());
    assert!(Keys::parse(&keys.print()).is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_fail_otherwise_than_by_an_error(text in "[ -~\n]{0,300}") {
        let _ = Keys::parse(&text);
    }
}
