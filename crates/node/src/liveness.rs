//! Seeing at once that another node's process is gone.
//!
//! Each node keeps a TCP connection to every other node, at the ring port's number. Nothing is
//! ever sent on it: when a process dies, its kernel closes the connection, which is no proof (a
//! firewall could do it), but a reason to send an empty datagram to the node's ring port. Its
//! refusal is the proof, and is told by the ring's socket.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use wire::limits::MAX_MEMBERS;
use wire::{Duration, NodeId, Time};

use crate::config::NodeAddress;
use crate::poller::{EventFlags, Poller, Source};

/// How long to wait before a connection to a node is tried again.
const REDIAL: Duration = Duration::from_millis(100);

/// As `REDIAL`, of a node that has just sent a datagram: it runs, so it should be watched.
const REDIAL_WHEN_HEARD: Duration = Duration::from_millis(10);

/// A dying process closes its descriptors one by one: its ring socket may outlive the connection
/// by some microseconds, so the probe is repeated. Pauses between the probes.
const PROBE_PAUSES: [Duration; 4] = [
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
];

/// Connections of other nodes. A restarting node may hold two for a moment.
const MAX_WATCHERS: usize = 2 * MAX_MEMBERS;

#[derive(Debug)]
pub(crate) struct Liveness {
    listener: TcpListener,
    /// Other nodes' connections to this one. They only have to exist.
    watchers: BTreeMap<u64, TcpStream>,
    next_watcher: u64,
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    id: NodeId,
    address: SocketAddr,
    connection: Option<Socket>,
    established: bool,
    /// It ran after it was dialled last: if nobody answers the next time, it has died in between.
    heard: bool,
    /// When it was dialled last, and when it will be next if there is no connection then.
    dialled: Option<Time>,
    dial_at: Time,
    /// The next probe's place in the list of pauses, and when it is due.
    probe: Option<(usize, Time)>,
}

impl Liveness {
    pub fn listen(address: SocketAddr, others: &[NodeAddress], now: Time) -> io::Result<Liveness> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let watched = |node: &NodeAddress| Watched {
            id: node.id,
            address: node.ring,
            connection: None,
            established: false,
            heard: false,
            dialled: None,
            dial_at: now,
            probe: None,
        };
        Ok(Liveness {
            listener,
            watchers: BTreeMap::new(),
            next_watcher: 1,
            watched: others.iter().map(watched).collect(),
        })
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        Ok(poller.add(&self.listener, Source::Watchers, EventFlags::IN)?)
    }

    /// Takes other nodes' connections.
    pub fn accept(&mut self, poller: &Poller) {
        // Bounded: whoever connects without end must not keep the loop here.
        for _ in 0..MAX_MEMBERS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Out of descriptors: give one back, so that the listener is not ready for ever.
                    self.watchers.pop_first();
                    return;
                }
            };
            if self.watchers.len() >= MAX_WATCHERS {
                self.watchers.pop_first();
            }
            let source = Source::Watcher(self.next_watcher);
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if stream.set_nonblocking(true).is_ok() && poller.add(&stream, source, flags).is_ok() {
                self.watchers.insert(self.next_watcher, stream);
                self.next_watcher += 1;
            }
        }
    }

    /// Another node's connection has ended, or it sent something, which no node does.
    pub fn handle_watcher(&mut self, number: u64) {
        self.watchers.remove(&number);
    }

    /// This node's connection to a peer is established, or has ended.
    pub fn handle_watched(&mut self, index: usize, flags: EventFlags, now: Time, poller: &Poller) {
        let watched = &mut self.watched[index];
        let Some(connection) = &mut watched.connection else {
            return;
        };
        let ended = flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP)
            || flags.contains(EventFlags::IN) && !is_silent(connection)
            || !watched.established && is_connected_to_itself(connection);
        if ended {
            watched.connection = None;
            watched.lost(now);
        } else if !watched.established {
            watched.established = true;
            watched.heard = false;
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if poller.modify(&*connection, Source::Watched(index), flags).is_err() {
                watched.connection = None;
            }
        }
    }

    /// A datagram came from a peer.
    pub fn heard(&mut self, index: usize, now: Time) {
        let watched = &mut self.watched[index];
        watched.heard |= !watched.established;
        if watched.connection.is_none() {
            let soon = watched.dialled.map_or(now, |dialled| dialled + REDIAL_WHEN_HEARD);
            watched.dial_at = watched.dial_at.min(soon);
        }
    }

    pub fn next_timeout(&self) -> Time {
        let due = |watched: &Watched| {
            let dial = if watched.connection.is_none() { watched.dial_at } else { Time::FAR };
            watched.probe.map_or(dial, |(_, probe)| probe.min(dial))
        };
        self.watched.iter().map(due).min().unwrap_or(Time::FAR)
    }

    /// Dials what is due, and says which nodes to probe now.
    pub fn handle_timeout(&mut self, now: Time, poller: &Poller, mut probe: impl FnMut(NodeId)) {
        for (index, watched) in self.watched.iter_mut().enumerate() {
            if let Some((step, due)) = watched.probe
                && due <= now
            {
                probe(watched.id);
                watched.probe = PROBE_PAUSES.get(step).map(|&pause| (step + 1, now + pause));
            }
            if watched.connection.is_none() && watched.dial_at <= now {
                watched.dialled = Some(now);
                watched.dial_at = now + REDIAL;
                watched.connection = dial(watched.address, index, poller).ok();
                if watched.connection.is_none() {
                    watched.lost(now);
                }
            }
        }
    }
}

impl Watched {
    /// The connection has ended, or could not be made. Of a node that never ran nothing follows.
    fn lost(&mut self, now: Time) {
        if self.established || self.heard {
            self.probe = Some((0, now));
        }
        self.established = false;
        self.heard = false;
        self.dial_at = now + REDIAL;
    }
}

/// Nothing came: what epoll saw was taken already.
fn is_silent(connection: &mut Socket) -> bool {
    matches!(
        connection.read(&mut [0; 64]),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock
    )
}

/// Who dials a free port of its own host may be given that very port to dial from, and then
/// answers itself. The connection would keep the node that belongs there from starting.
fn is_connected_to_itself(connection: &Socket) -> bool {
    match (connection.local_addr(), connection.peer_addr()) {
        (Ok(local), Ok(peer)) => local.as_socket() == peer.as_socket(),
        _ => false,
    }
}

/// Begins to connect. What becomes of it, epoll tells.
fn dial(address: SocketAddr, index: usize, poller: &Poller) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::from(address)) {
        Ok(()) => {}
        Err(error) if is_under_way(&error) => {}
        Err(error) => return Err(error),
    }
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP;
    poller.add(&socket, Source::Watched(index), flags)?;
    Ok(socket)
}

fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::INPROGRESS)
}
