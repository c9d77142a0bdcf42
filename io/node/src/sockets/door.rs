//! The entrance of clients: an open door admits every connection, a gate only those with a TLS
//! handshake.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use admin::status::{Counters, HandshakeCounters};
use bytes::{Bytes, BytesMut};
use os::waker::Waker;
use rustix::io::Errno;
use wire::Time;
use wire::client::{Farewell, Frame};
use wire::limits::MAX_GUESTS;

use super::connection::{Connection, Secure};
use super::gate::{Gate, Guest, Manners};
use super::listener::Listener;
use crate::poller::{Poller, Source};

#[derive(Debug)]
pub(super) enum Door {
    /// Every connection is let in.
    Open(Listener),
    /// Those who are in have shaken hands. The guests' end is dropped first, so that the gate's
    /// thread, which may wait for a place there, sees that it is closed.
    Gated { guests: Receiver<Guest>, gate: Gate },
}

impl Door {
    /// For clients who speak plain frames.
    pub fn open(address: SocketAddr) -> io::Result<Door> {
        Ok(Door::Open(Listener::bind(address, Source::Clients)?))
    }

    /// For clients who speak TLS and have a certificate. The waker tells of guests.
    pub fn gated(address: SocketAddr, server: tls::Server, waker: Arc<Waker>) -> io::Result<Door> {
        let (sender, guests) = sync_channel(MAX_GUESTS);
        let admit = move |guest| {
            let taken = sender.send(guest).is_ok();
            waker.wake();
            taken
        };
        let manners = Manners { admit: Box::new(admit), farewell };
        let gate = Gate::open(TcpListener::bind(address)?, server, manners)?;
        Ok(Door::Gated { guests, gate })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Door::Open(listener) => listener.address(),
            Door::Gated { gate, .. } => Ok(gate.address()),
        }
    }

    /// Handshakes, if clients come through a gate.
    pub fn handshakes(&self) -> Option<HandshakeCounters> {
        match self {
            Door::Open(_) => None,
            Door::Gated { gate, .. } => Some(gate.counters()),
        }
    }

    pub fn register(&self, poller: &Poller) -> Result<(), Errno> {
        match self {
            Door::Open(listener) => listener.register(poller),
            Door::Gated { .. } => Ok(()),
        }
    }

    /// When [`resume`](Door::resume) is due.
    pub fn next_timeout(&self) -> Time {
        match self {
            Door::Open(listener) => listener.next_timeout(),
            Door::Gated { .. } => Time::FAR,
        }
    }

    /// Accepts again after a rest.
    pub fn resume(&mut self, now: Time, poller: &Poller) {
        if let Door::Open(listener) = self {
            listener.resume(now, poller);
        }
    }

    /// The next who comes in, or `None` if nobody waits.
    pub fn next(
        &mut self,
        now: Time,
        poller: &Poller,
        counters: &mut Counters,
    ) -> Option<Connection> {
        match self {
            Door::Open(listener) => match listener.accept(now, poller) {
                Ok(accepted) => {
                    let (stream, _) = accepted?;
                    Some(Connection::new(stream, None, BytesMut::new()))
                }
                Err(error) => {
                    tracing::warn!(%error, "no more clients for now: raise the limit of open files");
                    counters.connections_refused += 1;
                    None
                }
            },
            Door::Gated { guests, .. } => {
                let Guest { stream, records, input, peer } = guests.try_recv().ok()?;
                Some(Connection::new(stream, Some(Secure::new(records, peer)), input))
            }
        }
    }
}

/// The last words to a client.
pub(super) fn farewell(reason: &str) -> Bytes {
    Frame::Farewell(Farewell::new(reason)).encode()
}
