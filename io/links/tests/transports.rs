//! Which transport a link takes, and what it does where one, or an address, does not serve.

mod support;

use std::net::UdpSocket;
use std::time::Duration;

use steadfast_links::{Down, Limits, LinkId, Options, Transport, Transports};
use support::{ANY, DEADLINE, Plant, Side, patient, until};

/// A side that only dials, with the usual head start for QUIC.
fn dialler(plant: &Plant, transports: Transports) -> Side {
    let limits = Limits { dial: DEADLINE, ..Limits::default() };
    let security = Some(plant.security(9));
    Side::start(Options { security, transports, limits, ..Options::default() })
}

fn transports_of(near: &Side, far: &Side) -> [Transport; 2] {
    near.links.dial(vec![far.address()], None);
    [near.up().2, far.up().2]
}

#[test]
fn quic_is_taken_where_it_gets_through() {
    let plant = Plant::new("plant");
    let far = Side::of(&plant, 1, Transports::Both);
    let near = Side::of(&plant, 2, Transports::Both);
    assert_eq!(transports_of(&near, &far), [Transport::Quic; 2]);
    assert_eq!(far.links.counters().entered, 4, "TCP was not tried");
}

#[test]
fn tcp_is_taken_where_udp_is_not_listened_at() {
    let plant = Plant::new("plant");
    let far = Side::of(&plant, 1, Transports::Tcp);
    // The refusal is enough: the head start would last until the test has failed.
    let near = Side::of(&plant, 2, Transports::Both);
    assert_eq!(transports_of(&near, &far), [Transport::Tls; 2]);
}

#[test]
fn tcp_is_taken_where_udp_is_swallowed() {
    let plant = Plant::new("plant");
    let (far, _silent) = until(|| {
        let far = Side::of(&plant, 1, Transports::Tcp);
        let silent = UdpSocket::bind(far.address()).ok()?;
        Some((far, silent))
    });
    let near = dialler(&plant, Transports::Both);
    assert_eq!(transports_of(&near, &far), [Transport::Tls; 2]);
}

#[test]
fn without_certificates_it_is_bare_tcp() {
    let (near, far) = (Side::insecure(patient()), Side::insecure(patient()));
    assert_eq!(transports_of(&near, &far), [Transport::Tcp; 2]);
}

#[test]
fn the_next_address_is_tried_and_the_last_reason_is_told() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp, Transports::Both] {
        // The system gives these ports to nobody who does not ask for them.
        let gone = os::ports::free_ring_addresses(2);
        let near = dialler(&plant, transports);
        let link = near.links.dial(gone.clone(), None);
        let (down, reason) = near.down();
        assert_eq!(down, link);
        assert!(matches!(reason, Down::Lost(_)), "{reason:?}");
        let far = Side::of(&plant, 1, transports);
        near.links.dial(vec![gone[0], gone[1], far.address()], None);
        far.up();
        near.up();
    }
}

#[test]
fn an_address_that_says_nothing_has_its_time() {
    let plant = Plant::new("plant");
    let silent = UdpSocket::bind(ANY).unwrap();
    let limits = Limits { dial: Duration::from_millis(50), ..Limits::default() };
    let (security, transports) = (Some(plant.security(1)), Transports::Quic);
    let near = Side::start(Options { security, transports, limits, ..Options::default() });
    let link = near.links.dial(vec![silent.local_addr().unwrap()], None);
    assert_eq!(near.down(), (link, Down::Silent));
    assert_eq!(near.links.dial(vec![], None), near.down().0);
}

#[test]
fn links_go_over_the_next_version_of_ip() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp] {
        let listen = Some("[::1]:0".parse().unwrap());
        // Some hosts have no IPv6.
        if UdpSocket::bind("[::1]:0").is_err() {
            return;
        }
        let security = Some(plant.security(1));
        let limits = patient();
        let far =
            Side::start(Options { listen, security, transports, limits, ..Options::default() });
        let near = Side::of(&plant, 2, transports);
        let (link, _): (LinkId, _) = near.join(&far);
        near.links.close(link);
        assert_eq!(far.down().1, Down::Ended);
    }
}
