//! How links end, and that it is told once.

mod support;

use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc::RecvTimeoutError;

use steadfast_links::{Class, Down, Event, Options, Transports};
use support::raw_quic::RawQuic;
use support::{DEADLINE, Plant, Side, patient, raw_tcp};

#[test]
fn a_close_is_told_on_both_sides_once() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp] {
        let (near, far) = (Side::of(&plant, 1, transports), Side::of(&plant, 2, transports));
        let (here, there) = near.join(&far);
        near.links.close(here);
        near.links.close(here);
        assert_eq!(near.down(), (here, Down::Closed));
        assert_eq!(far.down(), (there, Down::Ended));
        // The next thing that is told is of another link.
        let (again, _) = near.join(&far);
        assert_ne!(again, here);
    }
}

#[test]
fn a_link_that_is_closed_while_it_is_dialled_is_down_once() {
    let near = Side::insecure(patient());
    let listener = TcpListener::bind(support::ANY).unwrap();
    let link = near.links.dial(vec![listener.local_addr().unwrap()], None);
    near.links.close(link);
    assert_eq!(near.down(), (link, Down::Closed));
    let other = near.links.dial(vec![], None);
    assert_eq!(near.down(), (other, Down::NoAddress));
}

#[test]
fn the_last_handle_ends_everything_and_the_port_is_free_when_tell_is_gone() {
    let plant = Plant::new("plant");
    for transports in [Transports::Quic, Transports::Tcp] {
        let (security, limits) = (Some(plant.security(1)), patient());
        // Nobody else gets this port by chance.
        let listen = Some(os::ports::free_ring_addresses(1)[0]);
        let near =
            Side::start(Options { listen, security, transports, limits, ..Options::default() });
        let far = Side::of(&plant, 2, transports);
        let (_, there) = near.join(&far);
        let (address, events, handle) = (near.address(), near.events, near.links.clone());
        drop(near.links);
        far.send(there, Class::Normal, b"a handle is left");
        assert!(matches!(events.recv_timeout(DEADLINE), Ok(Event::Message { .. })));
        drop(handle);
        let last = events.recv_timeout(DEADLINE);
        assert!(matches!(last, Ok(Event::Down { reason: Down::Stopped, .. })), "{last:?}");
        assert!(matches!(events.recv_timeout(DEADLINE), Err(RecvTimeoutError::Disconnected)));
        UdpSocket::bind(address).unwrap();
        TcpListener::bind(address).unwrap();
        assert_eq!(far.down(), (there, Down::Ended));
    }
}

#[test]
fn the_end_of_one_connection_is_that_of_its_link() {
    let side = Side::insecure(patient());
    for class in 0..4 {
        let mut streams = raw_tcp::dial(side.address(), class as u8).map(Some);
        let link = side.up().0;
        // With something unread, its end would be a reset.
        let answers = streams.each_mut().map(|it| raw_tcp::answer(it.as_mut().unwrap()));
        assert_eq!(answers, [0; 4]);
        drop(streams[class].take());
        assert_eq!(side.down(), (link, Down::Ended));
        for stream in streams.iter_mut().flatten() {
            raw_tcp::assert_ends(stream);
        }
    }
}

#[test]
fn a_killed_peer_is_noticed_by_icmp_over_quic() {
    let plant = Plant::new("plant");
    let side = Side::of(&plant, 1, Transports::Quic);
    let credentials = plant.credentials(&plant.issue(&plant.node(2)), &[]);
    let mut peer = RawQuic::new(&credentials);
    let lanes = peer.dial(side.address(), 1);
    let link = side.up().0;
    assert_eq!(peer.read(lanes[0], 1), [0], "it is welcome");
    // Its socket is closed without a word, as the kernel does for a killed process.
    drop(peer);
    side.send(link, Class::Alarm, b"are you there?");
    assert_eq!(side.down(), (link, Down::Lost("nobody listens there".into())));
}
