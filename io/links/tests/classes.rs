//! A class that is full delays no other.

mod support;

use std::io::Read;

use bytes::Bytes;
use steadfast_links::{Class, LinkId, SendError, Transports};
use support::raw_quic::RawQuic;
use support::{Plant, Side, framed, patient, raw_tcp};

/// Sends until no more is taken, to one who does not read.
fn fill(side: &Side, link: LinkId, class: Class) -> usize {
    let message = Bytes::from(vec![1; 64 << 10]);
    let mut sent = 0;
    // The kernel and the windows take some megabytes at most.
    while sent < 4_096 {
        match side.links.send(link, class, message.clone()) {
            Ok(()) => sent += 1,
            Err(SendError::Full) => return sent,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it is never full");
}

#[test]
fn an_alarm_gets_through_over_tcp_while_normal_is_full() {
    let side = Side::insecure(patient());
    let [_control, mut alarm, _critical, mut normal] = raw_tcp::dial(side.address(), 1);
    let link = side.up().0;
    fill(&side, link, Class::Normal);
    side.send(link, Class::Alarm, b"fire");
    let wanted = [&[0][..], &framed(b"fire")].concat();
    let mut got = vec![0; wanted.len()];
    alarm.read_exact(&mut got).unwrap();
    assert_eq!(got, wanted);
    assert!(side.links.waiting(link, Class::Normal) > 0, "nobody has read what is normal");
    // All that waited can be read now.
    assert_eq!(raw_tcp::answer(&mut normal), 0);
    let mut first = vec![0; 4 + (64 << 10)];
    normal.read_exact(&mut first).unwrap();
    assert_eq!(first, framed(&vec![1; 64 << 10]));
}

#[test]
fn an_alarm_gets_through_over_quic_while_normal_is_full() {
    let plant = Plant::new("plant");
    let side = Side::of(&plant, 1, Transports::Quic);
    let mut peer = RawQuic::new(&plant.credentials(&plant.issue(&plant.node(2)), &[]));
    let [_, alarm, _, normal] = peer.dial(side.address(), 1);
    let link = side.up().0;
    // Its answer is the last byte of this class that is read for now.
    assert_eq!(peer.read(normal, 1), [0]);
    let sent = fill(&side, link, Class::Normal);
    side.send(link, Class::Alarm, b"fire");
    let wanted = [&[0][..], &framed(b"fire")].concat();
    assert_eq!(peer.read(alarm, wanted.len()), wanted);
    assert!(side.links.waiting(link, Class::Normal) > 0, "nobody has read what is normal");
    let rest = peer.read(normal, sent * (4 + (64 << 10)));
    assert!(rest.chunks(4 + (64 << 10)).all(|it| it == framed(&vec![1; 64 << 10])));
    assert_eq!(side.links.waiting(link, Class::Normal), 0);
}

#[test]
fn a_full_class_takes_messages_again_when_the_other_side_reads() {
    let side = Side::insecure(patient());
    let [_control, _alarm, _critical, mut normal] = raw_tcp::dial(side.address(), 1);
    let link = side.up().0;
    let sent = fill(&side, link, Class::Normal);
    assert_eq!(raw_tcp::answer(&mut normal), 0);
    let mut all = vec![0; sent * (4 + (64 << 10))];
    normal.read_exact(&mut all).unwrap();
    support::until(|| (side.links.waiting(link, Class::Normal) == 0).then_some(()));
    side.send(link, Class::Normal, b"again");
}
