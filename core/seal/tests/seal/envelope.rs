use std::fmt::Write as _;

use expect_test::expect;
use proptest::prelude::*;
use steadfast_seal::{Envelope, HEADER, OVERHEAD, Refused, Sealer, TAG};
use wire::limits::MAX_DATAGRAM;
use wire::{ClusterId, NodeId};

use crate::{CLUSTER, acquainted, at, key, member, open, seal, sealed};

/// Computed once more by another implementation (OpenSSL through Python) when it was recorded.
#[test]
fn the_bytes_are_those_of_the_drawing() {
    let me = member(0x0102_0304, 0x1112_1314_1516_1718);
    let mut sealer = Sealer::new(ClusterId(0x0a0b_0c0d), me, 0x2122_2324_2526_2728, &key(7));
    let mut out = Vec::new();
    sealer.seal(NodeId(0x3132_3334), b"the first", &mut out).unwrap();
    sealer.seal(Envelope::ALL, b"", &mut out).unwrap();
    let mut text = String::new();
    for datagram in [&out[..OVERHEAD + 9], &out[OVERHEAD + 9..]] {
        for part in [&datagram[..HEADER], &datagram[HEADER..datagram.len() - TAG]] {
            part.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
            text.push('\n');
        }
        let tag = &datagram[datagram.len() - TAG..];
        tag.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    expect![[r#"
        535301070403020134333231181716151413121128272625242322210100000000000000
        0e482a76c46a075668
        0b40d2fde1b742476680151c9b37f468
        535301070403020100000000181716151413121128272625242322210200000000000000

        dc993681e8af0246eba879d5132e293d
    "#]]
    .assert_eq(&text);
}

#[test]
fn overhead_fits_between_the_default_datagram_and_an_ethernet_frame() {
    assert_eq!((HEADER, OVERHEAD), (36, 52));
    // An Ethernet frame of 1,500 and a jumbo frame of 9,000, less IPv6 and UDP.
    assert_eq!(wire::limits::DEFAULT_DATAGRAM + OVERHEAD, 1_500 - 48);
    assert_eq!(MAX_DATAGRAM + OVERHEAD, 9_000 - 48);
}

#[test]
fn every_changed_bit_is_refused() {
    let (mut a, mut b) = acquainted();
    let datagram = sealed(&mut a, NodeId(2), b"SF, as the ring's datagrams begin");
    for place in 0..datagram.len() {
        for bit in 0..8 {
            let mut changed = datagram.clone();
            changed[place] ^= 1 << bit;
            assert!(open(&mut b, at(1), &changed).is_err(), "byte {place} bit {bit}");
        }
    }
    let before = b.counters();
    assert!(before.forged > 0 && before.malformed > 0 && before.misaddressed > 0);
    assert_eq!(before.opened, 0);
    // None of that has harmed anything.
    assert!(open(&mut b, at(1), &datagram).unwrap().is_some());
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let (mut a, mut b) = acquainted();
    let datagram = sealed(&mut a, NodeId(2), &[7; 100]);
    for length in 0..datagram.len() {
        let refused = open(&mut b, at(1), &datagram[..length]).unwrap_err();
        let expected = if length < OVERHEAD { Refused::Malformed } else { Refused::Forged };
        assert_eq!(refused, expected, "{length}");
    }
    let longer = [&datagram[..], &[0]].concat();
    assert_eq!(open(&mut b, at(1), &longer), Err(Refused::Forged));
    let longest = sealed(&mut a, NodeId(2), &[7; MAX_DATAGRAM]);
    assert!(open(&mut b, at(1), &longest).is_ok());
    let too_long = sealed(&mut a, NodeId(2), &[7; MAX_DATAGRAM + 1]);
    assert_eq!(open(&mut b, at(1), &too_long), Err(Refused::Malformed));
}

#[test]
fn each_way_of_opening_gives_the_same() {
    let (mut a, mut b) = acquainted();
    let mut room = [0; 100];
    for length in [0, 1, 15, 16, 17, 100] {
        let text = vec![0xa5; length];
        let datagram = sealed(&mut a, Envelope::ALL, &text);
        assert_eq!(b.open_into(at(1), &datagram, &mut room).unwrap().unwrap(), text);
        assert_eq!(open(&mut b, at(1), &datagram), Err(Refused::Duplicate), "and by one window");
        let mut in_place = vec![0; HEADER];
        in_place.extend_from_slice(&text);
        in_place.extend_from_slice(&[0; TAG]);
        a.seal_in_place(NodeId(2), &mut in_place).unwrap();
        assert_eq!(open(&mut b, at(1), &in_place).unwrap().unwrap(), text);
    }
}

#[test]
fn what_is_for_another_node_or_of_no_node_is_refused() {
    let (mut a, mut b) = acquainted();
    let for_3 = sealed(&mut a, NodeId(3), b"hello");
    assert_eq!(open(&mut b, at(1), &for_3), Err(Refused::Misaddressed));
    let for_all = sealed(&mut a, Envelope::ALL, b"hello");
    assert_eq!(open(&mut a, at(1), &for_all), Err(Refused::Misaddressed), "one's own");
    let stranger = sealed(&mut seal(5, 1, 5), Envelope::ALL, b"hello");
    assert_eq!(open(&mut b, at(1), &stranger), Err(Refused::Stranger));
    assert_eq!(open(&mut b, at(1), b"SF\x01 and so on"), Err(Refused::Plain));
    assert_eq!(b.counters().misaddressed, 2);
    assert!(open(&mut b, at(1), &for_all).unwrap().is_some());
}

#[test]
fn another_cluster_key_or_cluster_opens_nothing() {
    let (_, mut b) = acquainted();
    let me = member(1, 10);
    let mut out = Vec::new();
    Sealer::new(CLUSTER, me, 1, &key(2)).seal(Envelope::ALL, b"hello", &mut out).unwrap();
    assert_eq!(open(&mut b, at(1), &out), Err(Refused::UnknownKey));
    out.clear();
    Sealer::new(ClusterId::of("other"), me, 1, &key(1))
        .seal(Envelope::ALL, b"hello", &mut out)
        .unwrap();
    assert_eq!(open(&mut b, at(1), &out), Err(Refused::Forged));
}

proptest! {
    #[test]
    fn noise_is_refused_and_leaves_no_trace(
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        like_ours in any::<bool>(),
    ) {
        let (mut a, mut b) = acquainted();
        let mut noise = noise;
        if like_ours && noise.len() >= 12 {
            noise[..8].copy_from_slice(b"SS\x01\x01\x01\0\0\0");
            noise[8..12].fill(0);
        }
        prop_assert!(open(&mut b, at(1), &noise).is_err());
        prop_assert!(b.poll_contact().is_none(), "and is not answered");
        let datagram = sealed(&mut a, NodeId(2), b"hello");
        prop_assert!(open(&mut b, at(1), &datagram).unwrap().is_some());
    }
}
