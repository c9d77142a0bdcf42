//! Seeing at once that another node's process is gone.
//!
//! Each node keeps a TCP connection to every other node by every link, at the ring port's number.
//! Nothing is ever sent on it: when a process dies, its kernel closes the connection, which is no
//! proof (a firewall could do it), but a reason to send an empty datagram to the node's ring port by
//! all links. Their refusal, told by the ring's sockets, is the proof; how many it takes is known
//! to `ring::Links`. By every link, because a connection over a network that is cut tells nothing,
//! least of all that the process behind it dies.
//!
//! One without the other proves nothing: whoever can send a packet can forge a refusal (ICMP has no
//! secret), but to end an established connection he must guess or read its sequence numbers, and
//! whoever could make a node lose a connection cannot close its port. So a refusal is believed
//! only while this node's connection to the peer by the same link is ended or was refused too.
//!
//! On the other side the connections only have to exist, and losing one accuses nobody: the node that
//! made it asks the port, hears no refusal, and connects again. Strangers' connections are kept
//! apart, and never push out a node's.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use wire::limits::MAX_MEMBERS;
use wire::{Duration, NodeId, Time};

use crate::config::NodeAddress;
use crate::poller::{EventFlags, Poller, Source};

/// How long to wait before a connection to a node is tried again.
const REDIAL: Duration = Duration::from_millis(100);

/// As `REDIAL`, of a node that has just sent a datagram: it runs, so it should be watched.
const REDIAL_WHEN_HEARD: Duration = Duration::from_millis(10);

/// A host that was silent and is back, without the process that it had, says so when it is asked.
const KEEPALIVE: Duration = Duration::from_secs(2);

/// A dying process closes its descriptors one by one: its ring socket may outlive the connection
/// by some microseconds, so the probe is repeated. Pauses between the probes.
const PROBE_PAUSES: [Duration; 4] = [
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
];

/// A refusal waits this long for the end of the connection, which may be read just after it.
const REFUSAL_LASTS: Duration = Duration::from_millis(20);

/// Connections from one address of a node, for each node there. A restarting node may hold two
/// for a moment.
const MAX_WATCHERS_OF_A_NODE: usize = 2;

/// Connections from addresses of no node: other ways of nodes with several addresses, or strangers.
const MAX_STRANGERS: usize = MAX_MEMBERS;

#[derive(Debug)]
pub(crate) struct Liveness {
    /// One for each link.
    listeners: Vec<TcpListener>,
    /// Other nodes' connections to this one. They only have to exist.
    watchers: BTreeMap<u64, Watcher>,
    next_watcher: u64,
    /// From where this node connects to others by each link, so that they know the address.
    from: Vec<IpAddr>,
    /// All links of the first peer, then all of the second, ...
    watched: Vec<Watched>,
}

#[derive(Debug)]
struct Watcher {
    _stream: TcpStream,
    from: IpAddr,
}

#[derive(Debug)]
struct Watched {
    id: NodeId,
    address: SocketAddr,
    connection: Option<Socket>,
    established: bool,
    /// The last connection has ended, or could not be made, and none has been established since.
    ended: bool,
    /// When its port refused a datagram and that was not believed.
    refused: Option<Time>,
    /// It ran after it was dialled last: if nobody answers the next time, it has died in between.
    heard: bool,
    /// When it was dialled last, and when it will be next if there is no connection then.
    dialled: Option<Time>,
    dial_at: Time,
    /// The next probe's place in the list of pauses, and when it is due.
    probe: Option<(usize, Time)>,
}

impl Liveness {
    /// Listens at this node's address on each link, and is to watch the others.
    ///
    /// # Errors
    /// With the address that cannot be had.
    pub fn listen(
        mine: &[SocketAddr],
        others: &[NodeAddress],
        now: Time,
    ) -> Result<Liveness, (SocketAddr, io::Error)> {
        let listen = |&address: &SocketAddr| {
            let listener = TcpListener::bind(address).map_err(|error| (address, error))?;
            listener.set_nonblocking(true).map_err(|error| (address, error))?;
            Ok(listener)
        };
        let listeners = mine.iter().map(listen).collect::<Result<_, _>>()?;
        let watched = |(id, address)| Watched {
            id,
            address,
            connection: None,
            established: false,
            ended: false,
            refused: None,
            heard: false,
            dialled: None,
            dial_at: now,
            probe: None,
        };
        let addresses =
            others.iter().flat_map(|node| node.ring.iter().map(|&address| (node.id, address)));
        Ok(Liveness {
            listeners,
            watchers: BTreeMap::new(),
            next_watcher: 1,
            from: mine.iter().map(SocketAddr::ip).collect(),
            watched: addresses.map(watched).collect(),
        })
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        for (link, listener) in self.listeners.iter().enumerate() {
            poller.add(listener, Source::Watchers(link), EventFlags::IN)?;
        }
        Ok(())
    }

    /// Takes other nodes' connections by this link.
    pub fn accept(&mut self, link: usize, poller: &Poller) {
        // Bounded: whoever connects without end must not keep the loop here.
        for _ in 0..MAX_MEMBERS {
            let (stream, from) = match self.listeners[link].accept() {
                Ok((stream, from)) => (stream, from.ip().to_canonical()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Out of descriptors: give one back, so that the listener is not ready for ever.
                    self.drop_one();
                    return;
                }
            };
            self.make_room(from);
            let source = Source::Watcher(self.next_watcher);
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if stream.set_nonblocking(true).is_ok() && poller.add(&stream, source, flags).is_ok() {
                self.watchers.insert(self.next_watcher, Watcher { _stream: stream, from });
                self.next_watcher += 1;
            }
        }
    }

    fn nodes_at(&self, address: IpAddr) -> usize {
        self.watched.iter().filter(|node| node.address.ip().to_canonical() == address).count()
    }

    /// The oldest goes when the room of its address is full: a dead host's connection never ends.
    /// All strangers share one room.
    fn make_room(&mut self, from: IpAddr) {
        let nodes = self.nodes_at(from);
        let room = if nodes == 0 { MAX_STRANGERS } else { nodes * MAX_WATCHERS_OF_A_NODE };
        let shares = |watcher: &Watcher| match nodes {
            0 => self.nodes_at(watcher.from) == 0,
            _ => watcher.from == from,
        };
        let numbers = self.watchers.iter().filter(|(_, watcher)| shares(watcher));
        let sharing: Vec<u64> = numbers.map(|(number, _)| *number).collect();
        if sharing.len() >= room {
            self.watchers.remove(&sharing[0]);
        }
    }

    /// Strangers' connections are the first to go.
    fn drop_one(&mut self) {
        let mut strangers =
            self.watchers.iter().filter(|(_, watcher)| self.nodes_at(watcher.from) == 0);
        let stranger = strangers.next().map(|(number, _)| *number);
        if let Some(number) = stranger.or_else(|| self.watchers.keys().next().copied()) {
            self.watchers.remove(&number);
        }
    }

    /// Another node's connection has ended, or it sent something, which no node does.
    pub fn handle_watcher(&mut self, number: u64) {
        self.watchers.remove(&number);
    }

    fn index(&self, peer: usize, link: usize) -> usize {
        peer * self.listeners.len() + link
    }

    /// A peer's port has refused a datagram on this link. True if that is to be believed.
    pub fn believes_refusal(&mut self, peer: usize, link: usize, now: Time) -> bool {
        let index = self.index(peer, link);
        let Some(watched) = self.watched.get_mut(index) else { return false };
        // Its end may be there already, and only not be read yet.
        if let (true, Some(connection)) = (watched.established, &mut watched.connection)
            && !is_silent(connection)
        {
            watched.connection = None;
            watched.lost(now);
        }
        watched.refused = Some(now);
        watched.ended
    }

    /// This node's connection to a peer is established, or has ended. If the peer's port has refused
    /// datagrams just before, that is to be believed now: the peer and the link.
    pub fn handle_watched(
        &mut self,
        index: usize,
        flags: EventFlags,
        now: Time,
        poller: &Poller,
    ) -> Option<(usize, usize)> {
        let links = self.listeners.len();
        let watched = &mut self.watched[index];
        let connection = watched.connection.as_mut()?;
        let ended = flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP)
            || flags.contains(EventFlags::IN) && !is_silent(connection)
            || !watched.established && is_connected_to_itself(connection);
        if ended {
            watched.connection = None;
            watched.lost(now);
            let refused = watched.refused.is_some_and(|at| now.since(at) <= REFUSAL_LASTS);
            return refused.then_some((index / links, index % links));
        } else if !watched.established {
            watched.established = true;
            (watched.ended, watched.refused) = (false, None);
            watched.heard = false;
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if poller.modify(&*connection, Source::Watched(index), flags).is_err() {
                watched.connection = None;
            }
        }
        None
    }

    /// A datagram came from a peer by this link.
    pub fn heard(&mut self, peer: usize, link: usize, now: Time) {
        let index = self.index(peer, link);
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
                watched.connection =
                    dial(self.from[index % self.from.len()], watched.address, index, poller).ok();
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
        self.ended = true;
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
fn dial(from: IpAddr, address: SocketAddr, index: usize, poller: &Poller) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    // The other side knows this node by its ring address.
    socket.bind(&SockAddr::from(SocketAddr::new(from, 0)))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::monotonic;
    use std::net::Ipv4Addr;

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))
    }

    /// A node at 127.0.0.1 that watches one at `peer`.
    fn watching(peer: SocketAddr) -> (Liveness, Poller) {
        let others = [NodeAddress::new(NodeId(2), peer)];
        let liveness = Liveness::listen(&[at(1)], &others, Time::ZERO).unwrap();
        (liveness, Poller::new().unwrap())
    }

    fn connect(liveness: &mut Liveness, poller: &Poller, from: SocketAddr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&from.into()).unwrap();
        socket.connect(&liveness.listeners[0].local_addr().unwrap().into()).unwrap();
        let before = liveness.next_watcher;
        while liveness.next_watcher == before {
            liveness.accept(0, poller);
        }
        socket.into()
    }

    fn from(liveness: &Liveness) -> Vec<String> {
        liveness.watchers.values().map(|watcher| watcher.from.to_string()).collect()
    }

    #[test]
    fn strangers_never_push_out_a_node() {
        let (mut liveness, poller) = watching(at(2));
        let _node = connect(&mut liveness, &poller, at(2));
        let mut kept = Vec::new();
        for stranger in 0..2 * MAX_STRANGERS {
            kept.push(connect(&mut liveness, &poller, at(3 + (stranger % 2) as u8)));
        }
        let now = from(&liveness);
        assert_eq!(now.len(), 1 + MAX_STRANGERS, "and are limited");
        assert_eq!(now[0], "127.0.0.2");
        liveness.drop_one();
        assert_eq!(from(&liveness)[0], "127.0.0.2", "nor when descriptors run out");
    }

    #[test]
    fn of_one_node_the_newest_connections_are_kept() {
        let (mut liveness, poller) = watching(at(2));
        let kept: Vec<_> = (0..5).map(|_| connect(&mut liveness, &poller, at(2))).collect();
        let numbers: Vec<u64> = liveness.watchers.keys().copied().collect();
        assert_eq!((numbers, kept.len()), (vec![4, 5], 5));
    }

    /// Waits for what happens to the connection to the peer, and handles it.
    fn step(liveness: &mut Liveness, poller: &Poller) -> Option<(usize, usize)> {
        let mut ready = Vec::new();
        let now = monotonic();
        poller.wait(now, now + Duration::from_secs(10), &mut ready).unwrap();
        let (source, flags) = ready[0];
        assert_eq!(source, Source::Watched(0), "something happened to the connection");
        liveness.handle_watched(0, flags, monotonic(), poller)
    }

    #[test]
    fn a_refusal_is_believed_only_without_a_connection() {
        let peer = TcpListener::bind(at(2)).unwrap();
        let (mut liveness, poller) = watching(peer.local_addr().unwrap());
        assert!(!liveness.believes_refusal(0, 0, monotonic()), "nothing is known yet");
        liveness.handle_timeout(monotonic(), &poller, |_| {});
        assert_eq!(step(&mut liveness, &poller), None);
        let connection = peer.accept().unwrap().0;
        assert!(!liveness.believes_refusal(0, 0, monotonic()), "it is connected: forged");
        drop(connection);
        assert_eq!(step(&mut liveness, &poller), Some((0, 0)), "now both say so");
        assert!(liveness.believes_refusal(0, 0, monotonic()));
        // It is back.
        liveness.handle_timeout(monotonic() + REDIAL, &poller, |_| {});
        assert_eq!(step(&mut liveness, &poller), None);
        assert!(!liveness.believes_refusal(0, 0, monotonic()));
        assert!(!liveness.believes_refusal(1, 0, monotonic()), "a stranger's");
    }

    #[test]
    fn an_end_that_was_not_read_yet_counts() {
        let peer = TcpListener::bind(at(2)).unwrap();
        let (mut liveness, poller) = watching(peer.local_addr().unwrap());
        liveness.handle_timeout(monotonic(), &poller, |_| {});
        step(&mut liveness, &poller);
        drop(peer.accept().unwrap());
        let deadline = monotonic() + Duration::from_secs(10);
        while !liveness.believes_refusal(0, 0, monotonic()) {
            assert!(monotonic() < deadline, "the end never came");
        }
    }

    #[test]
    fn a_connection_that_ended_long_after_a_refusal_accuses_nobody() {
        let peer = TcpListener::bind(at(2)).unwrap();
        let (mut liveness, poller) = watching(peer.local_addr().unwrap());
        liveness.handle_timeout(monotonic(), &poller, |_| {});
        step(&mut liveness, &poller);
        let long_ago = Time(monotonic().0 - 2 * REFUSAL_LASTS.as_nanos() as u64);
        assert!(!liveness.believes_refusal(0, 0, long_ago));
        drop(peer.accept().unwrap());
        assert_eq!(step(&mut liveness, &poller), None, "the next probe's refusal decides");
    }
}
