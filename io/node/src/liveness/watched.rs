//! This node's connection to one other node by one link, whose end tells of that node's death.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};
use wire::{Duration, NodeId, Time};

use crate::poller::{EventFlags, Poller, Source};

/// How long to wait before a connection to a node is tried again.
pub(super) const REDIAL: Duration = Duration::from_millis(100);

/// As `REDIAL`, of a node that has just sent a datagram: it runs, so it should be watched.
const REDIAL_WHEN_HEARD: Duration = Duration::from_millis(10);

/// A dial that nobody has answered for so long is given up when the node is heard of: it was begun
/// while the host was away, and the kernel repeats it more and more seldom, up to once a minute.
const DIAL_WITHIN: Duration = Duration::from_millis(500);

/// A host that was silent and is back, without the process that it had, says so when it is asked.
const KEEPALIVE: Duration = Duration::from_secs(2);

/// A dying process closes its descriptors one by one: its ring socket may outlive the connection
/// by some microseconds, so the probe is repeated. Pauses between the probes.
/// Where others take the processors, it takes as long as they do.
const PROBE_PAUSES: [Duration; 7] = [
    Duration::from_micros(200),
    Duration::from_millis(1),
    Duration::from_millis(4),
    Duration::from_millis(16),
    Duration::from_millis(16),
    Duration::from_millis(16),
    Duration::from_millis(16),
];

/// Data that a node sent before its connection ended is read within this time, or the next time that
/// its socket is emptied.
const LAST_WORDS: Duration = Duration::from_micros(200);

/// A node that has been silent for so long since its connection ended, and refuses the next one, is
/// dead: a firewall that refuses connections lets its datagrams pass.
const SILENCE: Duration = Duration::from_millis(1);

/// A refusal waits this long for the end of the connection, which may be read just after it.
pub(super) const REFUSAL_LASTS: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Watched {
    pub id: NodeId,
    address: SocketAddr,
    /// From where this node connects, so that the other one knows the address.
    from: IpAddr,
    /// The epoll source of its connection.
    source: Source,
    connection: Option<Socket>,
    established: bool,
    /// The last connection has ended, or could not be made, and none has been established since.
    ended: bool,
    /// When it ended, if there was one and nothing has come from the node since.
    silent_since: Option<Time>,
    /// All that the node had sent before that was read.
    emptied: bool,
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

/// Things that are due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// It is to be probed now.
    pub probe: bool,
    /// It has refused the connection, and that is to be believed.
    pub denied: bool,
}

impl Watched {
    /// Not dialled yet.
    pub fn new(
        id: NodeId,
        address: SocketAddr,
        from: IpAddr,
        source: Source,
        now: Time,
    ) -> Watched {
        Watched {
            id,
            address,
            from,
            source,
            connection: None,
            established: false,
            ended: false,
            silent_since: None,
            emptied: false,
            refused: None,
            heard: false,
            dialled: None,
            dial_at: now,
            probe: None,
        }
    }

    /// Its port has refused a datagram. True if that is to be believed.
    pub fn believes_refusal(&mut self, now: Time) -> bool {
        // Its end may be there already, and only not be read yet.
        if let (true, Some(connection)) = (self.established, &mut self.connection)
            && !is_silent(connection)
        {
            self.lose(now);
        }
        self.refused = Some(now);
        self.ended
    }

    /// The connection is established, or has ended. True if a refusal is to be believed now: of a
    /// datagram just before, or of this connection.
    pub fn handle_ready(&mut self, flags: EventFlags, now: Time, poller: &Poller) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        let ended = flags.intersects(EventFlags::ERR | EventFlags::HUP | EventFlags::RDHUP)
            || flags.contains(EventFlags::IN) && !is_silent(connection)
            || !self.established && is_connected_to_itself(connection);
        if ended {
            let error = connection.take_error().ok().flatten();
            let denied =
                !self.established && error.is_some_and(|error| self.is_denied(now, &error));
            self.lose(now);
            return denied || self.refused.is_some_and(|at| now.since(at) <= REFUSAL_LASTS);
        }
        if !self.established {
            self.established = true;
            (self.ended, self.silent_since, self.refused) = (false, None, None);
            self.heard = false;
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if poller.modify(&*connection, self.source, flags).is_err() {
                self.lose(now);
            }
        }
        false
    }

    /// Datagrams came from it. `emptied`: no more are waiting.
    pub fn hear(&mut self, now: Time, emptied: bool) {
        if self.established {
            return;
        }
        self.heard = true;
        // Data sent before its end may be read after that: late, where this node waits for its turn.
        let old = |ended: &Time| !self.emptied || now.since(*ended) <= LAST_WORDS;
        self.silent_since = self.silent_since.filter(old);
        self.emptied |= emptied;
        if self.dialled.is_some_and(|dialled| now.since(dialled) > DIAL_WITHIN) {
            self.connection = None;
        }
        if self.connection.is_none() {
            let soon = self.dialled.map_or(now, |dialled| dialled + REDIAL_WHEN_HEARD);
            self.dial_at = self.dial_at.min(soon);
        }
    }

    /// When it is to be probed or dialled.
    pub fn next_timeout(&self) -> Time {
        let dial = if self.connection.is_none() { self.dial_at } else { Time::FAR };
        self.probe.map_or(dial, |(_, probe)| probe.min(dial))
    }

    /// Dials if that is due, and with each probe.
    pub fn handle_timeout(&mut self, now: Time, poller: &Poller) -> Due {
        let due = self.probe.filter(|(_, due)| *due <= now);
        if let Some((step, _)) = due {
            self.probe = PROBE_PAUSES.get(step).map(|&pause| (step + 1, now + pause));
        }
        let mut denied = false;
        if self.connection.is_none() && (self.dial_at <= now || due.is_some()) {
            self.dialled = Some(now);
            self.dial_at = now + REDIAL;
            match self.dial(poller) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    denied = self.is_denied(now, &error);
                    self.lose(now);
                }
            }
        }
        Due { probe: due.is_some(), denied }
    }

    /// Its host says that nobody is there any more to connect to. Hosts say so of each connection,
    /// but of datagrams once a second (`icmp(7)`, `icmp_ratelimit`): a node that is killed soon
    /// after another time is found by this.
    fn is_denied(&self, now: Time, error: &io::Error) -> bool {
        let silent = self.silent_since.is_some_and(|ended| now.since(ended) > SILENCE);
        silent && error.kind() == io::ErrorKind::ConnectionRefused
    }

    /// Begins to connect. Epoll reports the result.
    fn dial(&self, poller: &Poller) -> io::Result<Socket> {
        let socket =
            Socket::new(Domain::for_address(self.address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
        socket.bind(&SockAddr::from(SocketAddr::new(self.from, 0)))?;
        match socket.connect(&SockAddr::from(self.address)) {
            Ok(()) => {}
            Err(error) if is_under_way(&error) => {}
            Err(error) => return Err(error),
        }
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP;
        poller.add(&socket, self.source, flags)?;
        Ok(socket)
    }

    /// The connection has ended, or could not be made. If the node never ran, nothing follows.
    fn lose(&mut self, now: Time) {
        self.connection = None;
        if self.established || self.heard {
            self.probe = Some((0, now));
        }
        if self.established {
            (self.silent_since, self.emptied) = (Some(now), false);
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

/// A dialler of a free port of its own host may be given that very port to dial from, and then
/// answers itself. The connection would keep the node that belongs there from starting.
fn is_connected_to_itself(connection: &Socket) -> bool {
    match (connection.local_addr(), connection.peer_addr()) {
        (Ok(local), Ok(peer)) => local.as_socket() == peer.as_socket(),
        _ => false,
    }
}

fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
        || Errno::from_io_error(error) == Some(Errno::INPROGRESS)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use os::clock::monotonic;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Watches the listener at `address`.
    fn watching(address: SocketAddr) -> (Watched, Poller) {
        let source = Source::Watched(0);
        let watched = Watched::new(NodeId(2), address, LOOPBACK, source, Time::ZERO);
        (watched, Poller::new().unwrap())
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let peer = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = peer.local_addr().unwrap();
        (peer, address)
    }

    /// Waits for what happens to the connection, and handles it.
    fn step(watched: &mut Watched, poller: &Poller) -> bool {
        step_at(None, watched, poller)
    }

    /// The same, at a time; now if it is not said.
    fn step_at(at: Option<Time>, watched: &mut Watched, poller: &Poller) -> bool {
        let mut ready = Vec::new();
        let now = monotonic();
        poller.wait(now, now + Duration::from_secs(10), &mut ready).unwrap();
        let (source, flags) = ready[0];
        assert_eq!(source, Source::Watched(0), "something happened to the connection");
        watched.handle_ready(flags, at.unwrap_or_else(monotonic), poller)
    }

    fn connect(watched: &mut Watched, poller: &Poller) {
        assert_eq!(watched.handle_timeout(monotonic(), poller), Due::default());
        assert!(!step(watched, poller));
        assert!(watched.established);
    }

    #[test]
    fn a_refusal_is_believed_only_without_a_connection() {
        let (peer, address) = listener();
        let (mut watched, poller) = watching(address);
        assert!(!watched.believes_refusal(monotonic()), "nothing is known yet");
        connect(&mut watched, &poller);
        let connection = peer.accept().unwrap().0;
        assert!(!watched.believes_refusal(monotonic()), "it is connected: forged");
        drop(connection);
        assert!(step(&mut watched, &poller), "now both say so");
        assert!(watched.believes_refusal(monotonic()));
        // It is back.
        assert!(watched.handle_timeout(monotonic() + REDIAL, &poller).probe, "probed, too");
        assert!(!step(&mut watched, &poller));
        assert!(!watched.believes_refusal(monotonic()));
    }

    /// Its host may say nothing of the datagrams that its port refuses.
    #[test]
    fn a_node_that_ends_and_refuses_the_next_connection_is_dead() {
        // Its last words are no sign of life, however late this node comes to read them.
        for words in 0..3 {
            let speaks = words > 1;
            let (peer, address) = listener();
            let (mut watched, poller) = watching(address);
            connect(&mut watched, &poller);
            drop(peer.accept().unwrap());
            drop(peer);
            assert!(!step(&mut watched, &poller), "a connection alone may be ended by anybody");
            let ended = watched.silent_since.expect("it was connected");
            (0..words).for_each(|_| watched.hear(ended + SILENCE, true));
            let later = ended + SILENCE + SILENCE;
            let due = watched.handle_timeout(later, &poller);
            let dialled = watched.connection.is_some();
            let denied = due.denied || dialled && step_at(Some(later), &mut watched, &poller);
            assert_eq!((due.probe, denied), (true, !speaks));
        }
    }

    #[test]
    fn an_end_that_was_not_read_yet_counts() {
        let (peer, address) = listener();
        let (mut watched, poller) = watching(address);
        connect(&mut watched, &poller);
        drop(peer.accept().unwrap());
        let deadline = monotonic() + Duration::from_secs(10);
        while !watched.believes_refusal(monotonic()) {
            assert!(monotonic() < deadline, "the end never came");
        }
    }

    #[test]
    fn a_connection_that_ended_long_after_a_refusal_accuses_nobody() {
        let (peer, address) = listener();
        let (mut watched, poller) = watching(address);
        connect(&mut watched, &poller);
        let long_ago = Time(monotonic().0 - 2 * REFUSAL_LASTS.as_nanos() as u64);
        assert!(!watched.believes_refusal(long_ago));
        drop(peer.accept().unwrap());
        assert!(!step(&mut watched, &poller), "the next probe's refusal decides");
    }

    /// A listener whose queue is full drops what comes, as a host does that is away.
    #[test]
    fn a_node_that_comes_back_is_dialled_anew_and_not_when_the_kernel_tries_again() {
        let away = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        away.bind(&SockAddr::from(SocketAddr::new(LOOPBACK, 0))).unwrap();
        away.listen(0).unwrap();
        let address = away.local_addr().unwrap().as_socket().unwrap();
        let _first = std::net::TcpStream::connect(address).unwrap();
        let (mut watched, poller) = watching(address);
        let start = monotonic();
        watched.handle_timeout(start, &poller);
        let mut ready = Vec::new();
        poller.wait(start, start + Duration::from_millis(5), &mut ready).unwrap();
        assert_eq!(ready, [], "nobody answers");
        watched.hear(start + DIAL_WITHIN, true);
        assert_eq!(watched.next_timeout(), Time::FAR, "a young dial goes on");
        // It is back, and sends.
        let later = start + 3 * DIAL_WITHIN;
        away.accept().unwrap();
        watched.hear(later, true);
        assert!(watched.next_timeout() <= later);
        watched.handle_timeout(later, &poller);
        assert_eq!(watched.dialled, Some(later));
        assert!(!step(&mut watched, &poller));
        assert!(watched.established);
    }
}
