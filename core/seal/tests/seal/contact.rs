use steadfast_seal::{Contact, Envelope, Refused};
use wire::NodeId;

use crate::{acquainted, at, open, seal, sealed, talk};

#[test]
fn two_nodes_know_each_other_after_three_messages() {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    a.greet(at(0), NodeId(2));
    let first = a.poll_contact().unwrap();
    assert!(a.poll_contact().is_none());
    assert_eq!(open(&mut b, at(30), &first.bytes), Ok(None));
    let second = b.poll_contact().unwrap();
    assert!(second.answers && b.poll_contact().is_none());
    assert_eq!(open(&mut a, at(60), &second.bytes), Ok(None));
    assert!(a.met(NodeId(2)).is_some() && a.is_in_touch(NodeId(2)));
    let third = a.poll_contact().unwrap();
    assert!(third.answers && a.poll_contact().is_none());
    let data = sealed(&mut a, NodeId(2), b"first data");
    assert_eq!(open(&mut b, at(90), &third.bytes), Ok(None));
    assert!(open(&mut b, at(90), &data).unwrap().is_some(), "right behind the answer");
    assert!(b.is_in_touch(NodeId(1)) && b.poll_contact().is_none());
    assert_eq!((a.counters().met, b.counters().met), (1, 1));
}

#[test]
fn data_of_an_unknown_life_is_not_opened_but_leads_to_a_contact() {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    let before = sealed(&mut a, Envelope::ALL, b"before");
    assert_eq!(open(&mut b, at(0), &before), Err(Refused::Unmet));
    let between = sealed(&mut a, Envelope::ALL, b"between");
    talk(&mut a, &mut b, at(1));
    assert!(b.is_in_touch(NodeId(1)) && a.is_in_touch(NodeId(2)));
    for old in [&before, &between] {
        assert_eq!(open(&mut b, at(2), old), Err(Refused::Stale), "it may be a recording");
    }
    let after = sealed(&mut a, Envelope::ALL, b"after");
    assert!(open(&mut b, at(2), &after).unwrap().is_some());
}

#[test]
fn a_recording_says_nothing_to_a_node_that_was_restarted() {
    let (mut a, mut b) = acquainted();
    let recorded: Vec<Vec<u8>> = (0..10u8).map(|n| sealed(&mut a, NodeId(2), &[n; 30])).collect();
    for datagram in &recorded {
        assert!(open(&mut b, at(1), datagram).unwrap().is_some());
    }
    let mut b = seal(2, 21, 3);
    for datagram in &recorded {
        assert_eq!(open(&mut b, at(2), datagram), Err(Refused::Unmet));
    }
    // Now it meets the real one, which is still there.
    talk(&mut a, &mut b, at(3));
    assert!(b.is_in_touch(NodeId(1)) && a.is_in_touch(NodeId(2)));
    for datagram in &recorded {
        assert_eq!(open(&mut b, at(4), datagram), Err(Refused::Stale));
    }
    assert_eq!(b.counters().opened, 0);
}

#[test]
fn a_recorded_contact_makes_nobody_believe() {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    a.greet(at(0), NodeId(2));
    let mut recorded = vec![a.poll_contact().unwrap()];
    open(&mut b, at(0), &recorded[0].bytes).unwrap();
    recorded.push(b.poll_contact().unwrap());
    open(&mut a, at(0), &recorded[1].bytes).unwrap();
    recorded.push(a.poll_contact().unwrap());
    let data = sealed(&mut a, NodeId(2), b"data");
    // Node 2 in its next life, node 1 is gone.
    let mut b = seal(2, 21, 3);
    for contact in [&recorded[0], &recorded[2]] {
        let _ = open(&mut b, at(1), &contact.bytes);
        let _ = open(&mut b, at(1), &data);
        while b.poll_contact().is_some() {}
    }
    assert_eq!(open(&mut b, at(2), &recorded[1].bytes), Err(Refused::Misaddressed), "its own");
    assert_eq!(b.met(NodeId(1)), None);
    assert_eq!(b.counters().opened, 0);
}

#[test]
fn a_new_life_replaces_the_old_one_only_when_it_has_answered() {
    let (mut a, mut b) = acquainted();
    let mut next = seal(1, 11, 7);
    let of_next = sealed(&mut next, Envelope::ALL, b"next");
    assert_eq!(open(&mut b, at(1), &of_next), Err(Refused::Unmet));
    let of_old = sealed(&mut a, Envelope::ALL, b"old");
    assert!(open(&mut b, at(1), &of_old).unwrap().is_some(), "it may be a recording so far");
    talk(&mut next, &mut b, at(2));
    assert_eq!(b.met(NodeId(1)), Some(crate::member(1, 11)));
    let of_old = sealed(&mut a, Envelope::ALL, b"old");
    assert_eq!(open(&mut b, at(3), &of_old), Err(Refused::Stale));
    a.greet(at(10_000), NodeId(2));
    talk(&mut a, &mut b, at(10_000));
    assert_eq!(b.met(NodeId(1)), Some(crate::member(1, 11)), "there is no way back");
}

#[test]
fn two_lives_with_one_incarnation_do_not_share_a_key() {
    let (mut a, mut b) = acquainted();
    // The clock was set back to the nanosecond. The first counters are the same, the salt is not.
    let mut again = seal(1, 10, 9);
    let of_again = sealed(&mut again, NodeId(2), b"the same text");
    let recorded = sealed(&mut seal(1, 10, 1), NodeId(2), b"the same text");
    assert_eq!(of_again[28..36], recorded[28..36], "one counter");
    assert_ne!(of_again[36..], recorded[36..]);
    assert_eq!(open(&mut b, at(1), &of_again), Err(Refused::Unmet));
    talk(&mut again, &mut b, at(1));
    let of_again = sealed(&mut again, NodeId(2), b"hello");
    assert!(open(&mut b, at(2), &of_again).unwrap().is_some());
    let of_old = sealed(&mut a, NodeId(2), b"hello");
    assert_eq!(
        open(&mut b, at(2), &of_old),
        Err(Refused::Unmet),
        "the old life is to prove itself"
    );
}

#[test]
fn invented_lives_leave_nothing_behind_and_get_no_answer() {
    let mut b = seal(2, 20, 2);
    let mut forged = sealed(&mut seal(1, 10, 1), Envelope::ALL, b"hello");
    for life in 0..10_000u64 {
        forged[12..20].copy_from_slice(&life.to_le_bytes());
        forged[20..28].copy_from_slice(&(life ^ 0x5555).to_le_bytes());
        assert_eq!(open(&mut b, at(life), &forged), Err(Refused::Forged));
    }
    assert!(b.poll_contact().is_none());
    assert_eq!(b.counters().forged, 10_000);
}

#[test]
fn a_silent_node_is_challenged_less_and_less_often() {
    let mut a = seal(1, 10, 1);
    let mut challenges = Vec::new();
    for millis in 0..1_000 {
        a.greet(at(millis * 1_000), NodeId(2));
        challenges.extend(a.poll_contact().map(|_| millis));
    }
    assert_eq!(challenges[..6], [0, 1, 3, 7, 15, 31]);
    assert!(challenges.windows(2).all(|pair| pair[1] - pair[0] <= 64));
    assert!(challenges.len() < 25, "{challenges:?}");
    a.greet(at(0), NodeId(9));
    assert!(a.poll_contact().is_none(), "nor is anybody who is no node");
}

#[test]
fn a_challenge_that_comes_by_two_links_is_answered_once() {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    a.greet(at(0), NodeId(2));
    let challenge = a.poll_contact().unwrap();
    for _ in 0..5 {
        assert_eq!(open(&mut b, at(1), &challenge.bytes), Ok(None));
    }
    assert!(b.poll_contact().is_some() && b.poll_contact().is_none());
    assert_eq!(open(&mut b, at(1_000), &challenge.bytes), Ok(None));
    assert!(b.poll_contact().is_some(), "the answer may have been lost");
}

#[test]
fn an_answer_to_an_old_challenge_is_worth_nothing() {
    let (mut a, mut b) = (seal(1, 10, 1), seal(2, 20, 2));
    a.greet(at(0), NodeId(2));
    let challenge = a.poll_contact().unwrap();
    open(&mut b, at(0), &challenge.bytes).unwrap();
    let answer = b.poll_contact().unwrap();
    // Held back for longer than a second.
    assert_eq!(open(&mut a, at(1_000_001), &answer.bytes), Ok(None));
    assert_eq!(a.met(NodeId(2)), None);
}

#[test]
fn contact_messages_are_for_one_node() {
    let (mut a, mut b) = acquainted();
    let contact = Contact { challenge: Some(steadfast_seal::Nonce([1; 16])), answer: None };
    let to_all = sealed(&mut a, Envelope::ALL, &contact.encode());
    assert_eq!(open(&mut b, at(1), &to_all), Err(Refused::Misaddressed));
    assert!(b.poll_contact().is_none());
    assert_eq!(Contact::decode(&contact.encode()), Some(contact));
    assert_eq!(Contact::decode(&contact.encode()[1..]), None);
    for unused in [3, 7, 24, 39] {
        let mut bytes = contact.encode();
        bytes[unused] = 1;
        assert_eq!(Contact::decode(&bytes), None, "what is not there is zero: byte {unused}");
    }
}

#[test]
fn recordings_of_several_lives_sent_in_turn_do_not_make_a_node_talk() {
    let recorded: Vec<Vec<u8>> = [11, 12, 13]
        .map(|incarnation| sealed(&mut seal(1, incarnation, 5), Envelope::ALL, b"long ago"))
        .to_vec();
    let mut b = seal(2, 20, 2);
    let mut challenges = 0;
    for round in 0..1_000 {
        for datagram in &recorded {
            // All within one millisecond, the shortest pause.
            assert_eq!(open(&mut b, at(round), datagram), Err(Refused::Unmet));
            while b.poll_contact().is_some() {
                challenges += 1;
            }
        }
    }
    assert_eq!(challenges, 3, "one for each life that was new");
}
