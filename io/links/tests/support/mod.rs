//! Sides of links on loopback, with certificates, whose events wait in a channel.
#![allow(dead_code)] // Each test uses a part.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast_links::{
    Class, Down, Event, Limits, LinkId, Links, Options, Security, Transport, Transports,
};
use tls::issue::{Authority, Issued};
use tls::{Credentials, Identity};
use wire::NodeId;

pub mod raw_quic;
pub mod raw_tcp;

/// Longer than anything takes here; a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_secs(30);

pub const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

/// A cluster's authority.
pub struct Plant {
    authority: Authority,
    pub pem: String,
}

impl Plant {
    pub fn new(cluster: &str) -> Plant {
        let (authority, own) = Authority::new(cluster).unwrap();
        Plant { authority, pem: own.certificate }
    }

    pub fn node(&self, number: u32) -> Identity {
        Identity::node(self.authority.cluster(), NodeId(number)).unwrap()
    }

    pub fn issue(&self, to: &Identity) -> Issued {
        self.authority.issue(to, &[]).unwrap()
    }

    /// Shows this certificate, and trusts this plant's authority and those of others.
    pub fn credentials(&self, issued: &Issued, others: &[&Plant]) -> Credentials {
        let mut authorities = self.pem.clone();
        others.iter().for_each(|other| authorities.push_str(&other.pem));
        let Issued { certificate, key } = issued;
        let [authorities, certificate, key] =
            [&authorities, certificate, key].map(|it| it.as_bytes());
        Credentials::from_pem(authorities, certificate, key).unwrap()
    }

    pub fn security(&self, number: u32) -> Security {
        Security::new(self.credentials(&self.issue(&self.node(number)), &[]))
    }
}

/// Limits under which no test depends on how fast its host is.
pub fn patient() -> Limits {
    Limits { greeting: DEADLINE, dial: DEADLINE, head_start: DEADLINE, ..Limits::default() }
}

/// One side: its links, and what they told.
pub struct Side {
    pub links: Links,
    pub events: Receiver<Event>,
}

impl Side {
    pub fn start(options: Options) -> Side {
        let (sender, events) = channel();
        let links = Links::start(options, move |event| _ = sender.send(event)).unwrap();
        Side { links, events }
    }

    /// Listens, and shows the certificate of a plant's node.
    pub fn of(plant: &Plant, number: u32, transports: Transports) -> Side {
        let security = Some(plant.security(number));
        Side::start(Options {
            listen: Some(ANY),
            security,
            transports,
            limits: patient(),
            ..Options::default()
        })
    }

    /// Listens with bare TCP.
    pub fn insecure(limits: Limits) -> Side {
        let listen = Some(ANY);
        Side::start(Options { listen, insecure: true, limits, ..Options::default() })
    }

    pub fn address(&self) -> SocketAddr {
        self.links.address().unwrap()
    }

    pub fn next(&self) -> Event {
        self.events.recv_timeout(DEADLINE).expect("an event")
    }

    /// The next event is that a link is up.
    pub fn up(&self) -> (LinkId, Option<Identity>, Transport) {
        match self.next() {
            Event::Up { link, peer, transport, .. } => (link, peer, transport),
            other => panic!("{other:?} instead of a link"),
        }
    }

    /// The next event is that a link is down.
    pub fn down(&self) -> (LinkId, Down) {
        match self.next() {
            Event::Down { link, reason } => (link, reason),
            other => panic!("{other:?} instead of an end"),
        }
    }

    /// The next event is a message.
    pub fn message(&self) -> (LinkId, Class, Bytes) {
        match self.next() {
            Event::Message { link, class, bytes } => (link, class, bytes),
            other => panic!("{other:?} instead of a message"),
        }
    }

    pub fn send(&self, link: LinkId, class: Class, message: &[u8]) {
        self.links.send(link, class, Bytes::copy_from_slice(message)).unwrap();
    }

    /// Dials another side. Gives the link's numbers here and there.
    pub fn join(&self, other: &Side) -> (LinkId, LinkId) {
        let dialled = self.links.dial(vec![other.address()], None);
        let there = other.up().0;
        assert_eq!(self.up().0, dialled);
        (dialled, there)
    }
}

/// Looks again and again until there is something.
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "it did not happen");
        std::thread::yield_now();
    }
}

/// The first words of a link's connection, as their format says.
pub fn greeting(token: u8, class: Class) -> Vec<u8> {
    let place = Class::ALL.iter().position(|it| *it == class).unwrap();
    [&b"SFlink/1"[..], &[token; 16], &[place as u8]].concat()
}

/// A message, as its format says.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&u32::try_from(message.len()).unwrap().to_le_bytes()[..], message].concat()
}
