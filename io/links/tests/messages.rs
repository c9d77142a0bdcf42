//! Messages arrive, in order, whatever carries them; those that cannot be sent are refused.

mod support;

use bytes::Bytes;
use steadfast_links::{Class, Links, LinksError, MAX_MESSAGE, Options, SendError, Transports};
use support::{Plant, Side, patient};

/// Two sides of each transport.
fn pairs() -> Vec<(Side, Side)> {
    let plant = Plant::new("plant");
    let pair = |transports| (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
    let insecure = || Side::insecure(patient());
    vec![pair(Transports::Quic), pair(Transports::Tcp), (insecure(), insecure())]
}

#[test]
fn messages_of_every_size_arrive_in_order_and_in_their_class_both_ways() {
    for (near, far) in pairs() {
        let (here, there) = near.join(&far);
        let sizes = [1, 2, 100, 4_096, 4_097, 70_000, MAX_MESSAGE];
        for (from, to, link) in [(&near, &far, here), (&far, &near, there)] {
            for (size, class) in sizes.iter().flat_map(|size| Class::ALL.map(|it| (size, it))) {
                from.send(link, class, &vec![*size as u8; *size]);
            }
            let mut next = [0; 4];
            for _ in 0..4 * sizes.len() {
                let (_, class, bytes) = to.message();
                let place = &mut next[class as usize];
                assert_eq!(bytes, vec![sizes[*place] as u8; sizes[*place]]);
                *place += 1;
            }
        }
    }
}

#[test]
fn many_small_messages_keep_their_order() {
    for (near, far) in pairs() {
        let (here, _) = near.join(&far);
        for number in 0..20_000u32 {
            near.send(here, Class::Critical, &number.to_le_bytes());
        }
        for number in 0..20_000u32 {
            assert_eq!(far.message().2, &number.to_le_bytes()[..]);
        }
        // The meter is exact: nothing waits any more.
        support::until(|| (near.links.waiting(here, Class::Critical) == 0).then_some(()));
    }
}

#[test]
fn messages_may_be_sent_before_the_link_is_up() {
    for (near, far) in pairs() {
        let link = near.links.dial(vec![far.address()], None);
        near.send(link, Class::Alarm, b"first");
        near.send(link, Class::Alarm, b"second");
        far.up();
        assert_eq!((far.message().2, far.message().2), (b"first"[..].into(), b"second"[..].into()));
    }
}

#[test]
fn what_cannot_be_sent_is_refused_at_once() {
    let (near, far) = (Side::insecure(patient()), Side::insecure(patient()));
    let (link, _) = near.join(&far);
    let send = |link, length| near.links.send(link, Class::Normal, Bytes::from(vec![0; length]));
    assert_eq!(send(link, 0), Err(SendError::Empty));
    assert_eq!(send(link, MAX_MESSAGE + 1), Err(SendError::TooLarge));
    near.links.close(link);
    near.down();
    assert_eq!(send(link, 1), Err(SendError::Gone));
}

#[test]
fn the_port_is_the_same_for_both_transports() {
    let side = Side::of(&Plant::new("plant"), 1, Transports::Both);
    let address = side.address();
    assert_ne!(address.port(), 0);
    assert!(std::net::UdpSocket::bind(address).is_err(), "UDP is taken");
    assert!(std::net::TcpListener::bind(address).is_err(), "TCP is taken");
}

#[test]
fn links_without_certificates_must_be_called_insecure() {
    let start = |options| Links::start(options, |_| {}).map(drop);
    let none = start(Options::default());
    assert!(matches!(none, Err(LinksError::NoSecurity)), "{none:?}");
    let security = Some(Plant::new("plant").security(1));
    let both = start(Options { security, insecure: true, ..Options::default() });
    assert!(matches!(both, Err(LinksError::TwoMinds)), "{both:?}");
    let transports = Transports::Quic;
    let quic = start(Options { insecure: true, transports, ..Options::default() });
    assert!(matches!(quic, Err(LinksError::NeedsSecurity)), "{quic:?}");
}
