//! Peers that mean harm: they are counted or refused, and others go on.

mod support;

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use quinn_proto::ConnectionError;
use steadfast_links::{
    Class, Counters, Down, Event, Limits, LinkId, Malformed, Options, Refusal, Transports,
};
use support::raw_quic::RawQuic;
use support::{ANY, Plant, Side, framed, greeting, patient, raw_tcp, until};

/// A side with a link that must survive: it, the dialler, and the link there.
fn besieged(transports: Transports, limits: Limits) -> (Plant, Side, Side, LinkId) {
    let plant = Plant::new("plant");
    let (listen, security) = (Some(ANY), Some(plant.security(1)));
    let side = Side::start(Options { listen, security, transports, limits, ..Options::default() });
    let friend = Side::of(&plant, 2, transports);
    let (link, _) = friend.join(&side);
    (plant, side, friend, link)
}

fn assert_goes_on(side: &Side, friend: &Side, link: LinkId) {
    friend.send(link, Class::Critical, b"as before");
    let (_, class, bytes) = side.message();
    assert_eq!((class, &bytes[..]), (Class::Critical, &b"as before"[..]));
}

fn await_count(side: &Side, enough: impl Fn(&Counters) -> bool) {
    until(|| enough(&side.links.counters()).then_some(()));
}

/// Bytes of all kinds, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| byte()).collect()
}

#[test]
fn noise_is_refused_on_every_transport() {
    let (_, side, friend, link) = besieged(Transports::Both, patient());
    let udp = UdpSocket::bind(ANY).unwrap();
    for length in [1, 21, 200, 1_200, 1_472] {
        let mut bytes = noise(length);
        udp.send_to(&bytes, side.address()).unwrap();
        // As if it began a connection.
        bytes[0] |= 0xc0;
        udp.send_to(&bytes, side.address()).unwrap();
        let mut tcp = raw_tcp::connect(side.address());
        tcp.write_all(&bytes).unwrap();
        tcp.shutdown(std::net::Shutdown::Write).unwrap();
        raw_tcp::assert_ends(&mut tcp);
    }
    assert_goes_on(&side, &friend, link);
    let bare = Side::insecure(patient());
    let mut tcp = raw_tcp::connect(bare.address());
    tcp.write_all(&noise(1_000)).unwrap();
    raw_tcp::assert_ends(&mut tcp);
    await_count(&bare, |it| it.malformed == 1);
}

#[test]
fn who_says_nothing_is_closed() {
    let limits = Limits { greeting: Duration::from_millis(100), ..patient() };
    let side = Side::insecure(limits);
    let mut silent = raw_tcp::connect(side.address());
    let mut half = raw_tcp::connect(side.address());
    // On a slow host their time may be over before they speak.
    let _ = half.write_all(&greeting(1, Class::Alarm)[..20]);
    let mut alone = raw_tcp::connect(side.address());
    let _ = alone.write_all(&greeting(2, Class::Alarm));
    for stream in [&mut silent, &mut half, &mut alone] {
        raw_tcp::assert_ends(stream);
    }
    await_count(&side, |it| it.late == 3);
}

#[test]
fn half_open_handshakes_are_closed_over_tls_and_quic() {
    let plant = Plant::new("plant");
    let limits = Limits { greeting: Duration::from_secs(2), ..patient() };
    let security = Some(plant.security(1));
    let side = Side::start(Options { listen: Some(ANY), security, limits, ..Options::default() });
    let mut silent = raw_tcp::connect(side.address());
    raw_tcp::assert_ends(&mut silent);
    let mut peer = RawQuic::new(&plant.credentials(&plant.issue(&plant.node(2)), &[]));
    let lane = peer.connect(side.address());
    let late = u64::from(code(peer.end(lane)));
    assert_eq!(late, 4, "the code of what is late");
    await_count(&side, |it| it.late == 2);
}

fn code(end: ConnectionError) -> quinn_proto::VarInt {
    match end {
        ConnectionError::ApplicationClosed(close) => close.error_code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_frame_of_four_gigabytes_ends_its_link_alone() {
    let (plant, side, friend, link) = besieged(Transports::Quic, patient());
    let mut peer = RawQuic::new(&plant.credentials(&plant.issue(&plant.node(3)), &[]));
    let lanes = peer.dial(side.address(), 1);
    let (hostile, ..) = side.up();
    peer.write(lanes[3], &u32::MAX.to_le_bytes());
    assert_eq!(side.down(), (hostile, Down::Malformed(Malformed::Length(u32::MAX))));
    assert_goes_on(&side, &friend, link);

    let bare = Side::insecure(patient());
    for header in [u32::MAX, 0] {
        let mut streams = raw_tcp::dial(bare.address(), 7);
        let (hostile, ..) = bare.up();
        streams[0].write_all(&header.to_le_bytes()).unwrap();
        assert_eq!(bare.down(), (hostile, Down::Malformed(Malformed::Length(header))));
    }
    assert_eq!(bare.links.counters().malformed, 2);
}

#[test]
fn a_second_connection_of_a_class_is_refused_and_the_link_goes_on() {
    let side = Side::insecure(patient());
    let mut streams = raw_tcp::dial(side.address(), 1);
    let link = side.up().0;
    let mut second = raw_tcp::connect(side.address());
    second.write_all(&greeting(1, Class::Alarm)).unwrap();
    assert_eq!(raw_tcp::answer(&mut second), 3, "the code of a second one");
    raw_tcp::assert_ends(&mut second);
    assert_eq!(side.links.counters().twice, 1);
    streams[1].write_all(&framed(b"as before")).unwrap();
    assert_eq!(side.message(), (link, Class::Alarm, b"as before"[..].into()));
}

#[test]
fn a_message_before_the_link_is_up_ends_the_connection() {
    let side = Side::insecure(patient());
    let mut early = raw_tcp::connect(side.address());
    let bytes = [greeting(1, Class::Normal), framed(b"for a link that is not there")].concat();
    early.write_all(&bytes).unwrap();
    raw_tcp::assert_ends(&mut early);
    await_count(&side, |it| it.malformed == 1);
    // The others of its link could not become one without it.
    let mut later = raw_tcp::connect(side.address());
    later.write_all(&greeting(2, Class::Alarm)).unwrap();
    later.write_all(&framed(b"too early, too")).unwrap();
    raw_tcp::assert_ends(&mut later);
    await_count(&side, |it| it.malformed == 2);
}

#[test]
fn a_flood_of_connections_competes_with_itself() {
    let (_, side, friend, link) = besieged(Transports::Tcp, patient());
    let flood: Vec<TcpStream> = (0..600).map(|_| raw_tcp::connect(side.address())).collect();
    await_count(&side, |it| it.crowded >= 600 - 512);
    assert_goes_on(&side, &friend, link);
    drop(flood);
    // All have left: there is room for a link.
    friend.join(&side);
}

#[test]
fn a_flood_of_quic_connections_lets_others_in() {
    let (plant, side, friend, link) = besieged(Transports::Quic, patient());
    let mut peer = RawQuic::new(&plant.credentials(&plant.issue(&plant.node(3)), &[]));
    // More than half of the room: from then on addresses must be proved, by a round trip more.
    for _ in 0..280 {
        peer.connect(side.address());
    }
    friend.join(&side);
    assert_goes_on(&side, &friend, link);
    assert!(side.links.counters().entered >= 288, "nobody was turned away");
}

#[test]
fn more_links_than_are_accepted_are_refused_with_a_reason() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp] {
        let limits = Limits { accepted: 2, ..patient() };
        let (listen, security) = (Some(ANY), Some(plant.security(1)));
        let options = Options { listen, security, transports, limits, ..Options::default() };
        let (side, friend) = (Side::start(options), Side::of(&plant, 2, transports));
        let (first, _) = friend.join(&side);
        let (second, _) = friend.join(&side);
        let third = friend.links.dial(vec![side.address()], None);
        assert_eq!(friend.down(), (third, Down::Refused(Refusal::Crowded)));
        assert_eq!(side.links.counters().full, 1);
        assert_goes_on(&side, &friend, second);
        friend.links.close(first);
        assert!(matches!(side.next(), Event::Down { .. }));
        friend.down();
        friend.join(&side);
    }
}

#[test]
fn an_acceptor_that_answers_nonsense_is_left() {
    let listener = std::net::TcpListener::bind(ANY).unwrap();
    let near = Side::insecure(patient());
    let link = near.links.dial(vec![listener.local_addr().unwrap()], None);
    let mut streams: Vec<TcpStream> = (0..4).map(|_| listener.accept().unwrap().0).collect();
    streams[2].write_all(&[77]).unwrap();
    let (down, reason) = near.down();
    assert_eq!(down, link);
    assert!(matches!(reason, Down::Malformed(Malformed::Answer(77) | Malformed::Early)));
}
