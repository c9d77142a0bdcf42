//! The ring's datagrams on one link.
//!
//! Every peer has a socket of its own, connected to it and bound to the ring's port as all the
//! others: only a connected socket is told that the other side's port is closed, which proves in
//! microseconds that the process there is gone. One more, unconnected, gets what no peer sent.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;

use admin::status::{Counters, SocketStatus};
use bytes::Bytes;
use nix::errno::Errno;
use seal::MAX_SEALED;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use wire::{Duration, Malformed, Time};

use super::buffers::Buffers;
use super::segments::{self, Arrival, Control};
use crate::poller::{EventFlags, Poller, Source};

/// Readings from one socket before the others have their turn: each may bring a run of datagrams.
const BATCH: usize = 16;

/// A refusal is told at most this often for each peer, however many datagrams are refused.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// The result of reading a socket.
pub(crate) enum Received<'a> {
    /// Datagrams of one sender, in the order in which they were sent.
    Datagrams(&'a [Bytes]),
    /// The peer's host says that nobody listens there.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Udp {
    link: usize,
    /// By the place of their nodes.
    peers: Vec<Option<Peer>>,
    strangers: UdpSocket,
    address: SocketAddr,
    buffers: Buffers,
    control: Control,
    /// Where the datagrams of one reading are, as far as they are worth anything.
    places: Vec<Range<usize>>,
    /// The same, as what they are.
    run: Vec<Bytes>,
    /// Datagrams that came as one piece are handed over as one piece.
    joins: bool,
    /// Bytes that the kernel keeps for one peer while this process does not read: those that it was
    /// asked to, and the least that it grants.
    wanted: usize,
    room: usize,
}

#[derive(Debug)]
struct Peer {
    socket: UdpSocket,
    address: SocketAddr,
    refused: Option<Time>,
    /// A refusal that came while sending, to be told with the next reading.
    untold: bool,
    /// Runs of datagrams go out in one call. Off once the way to this peer refuses them.
    runs: bool,
}

impl Udp {
    /// Binds at `mine`. Each socket keeps `room` bytes of datagrams that wait to be read, if the
    /// system lets it.
    pub fn bind(link: usize, mine: SocketAddr, room: usize) -> io::Result<Udp> {
        let strangers = bound(mine)?;
        Ok(Udp {
            link,
            peers: Vec::new(),
            address: strangers.local_addr()?,
            buffers: Buffers::new(),
            control: Control::new(),
            places: Vec::new(),
            run: Vec::new(),
            joins: segments::join_arrivals(&strangers),
            wanted: room,
            room: segments::make_room(&strangers, room),
            strangers,
        })
    }

    /// The node at this place is reached at `theirs`: it gets a socket of its own.
    pub fn connect(&mut self, place: usize, theirs: SocketAddr) -> io::Result<()> {
        let socket = bound(self.address)?;
        self.room = self.room.min(segments::make_room(&socket, self.wanted));
        self.joins &= segments::join_arrivals(&socket);
        socket.connect(theirs)?;
        let runs = segments::takes_runs(&socket);
        if self.peers.len() <= place {
            self.peers.resize_with(place + 1, || None);
        }
        self.peers[place] =
            Some(Peer { socket, address: theirs, refused: None, untold: false, runs });
        Ok(())
    }

    /// The node at this place is reached no more.
    pub fn disconnect(&mut self, place: usize) {
        self.peers.get_mut(place).into_iter().for_each(|peer| *peer = None);
    }

    /// Whether the node at this place has a socket here, to this address.
    pub fn reaches(&self, place: usize, theirs: SocketAddr) -> bool {
        self.peers.get(place).and_then(Option::as_ref).is_some_and(|peer| peer.address == theirs)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn status(&self) -> SocketStatus {
        SocketStatus {
            runs_out: self.peers.iter().flatten().filter(|peer| peer.runs).count(),
            peers: self.peers.iter().flatten().count(),
            runs_in: self.joins,
            receive_buffer: self.room,
        }
    }

    /// Registers the socket for datagrams of all that have none of their own.
    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        Ok(poller.add(&self.strangers, Source::Strangers(self.link), EventFlags::IN)?)
    }

    /// Registers the socket of the node at this place, if it has one.
    pub fn register_peer(&self, place: usize, poller: &Poller) -> io::Result<()> {
        let Some(Some(peer)) = self.peers.get(place) else { return Ok(()) };
        let source = Source::Peer { link: self.link, place };
        Ok(poller.add(&peer.socket, source, EventFlags::IN)?)
    }

    /// Reads what one socket has, up to a batch, and gives it to `take`. `open` sees each datagram
    /// first, in the memory into which it was read: what it leaves of it goes on, `None` is
    /// dropped. True if it has no more.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        mut open: impl FnMut(&mut [u8]) -> Option<Range<usize>>,
        mut take: impl FnMut(Received<'_>),
    ) -> bool {
        for _ in 0..BATCH {
            let socket = match source {
                Source::Peer { place, .. } => match self.peers.get(place) {
                    Some(Some(peer)) => &peer.socket,
                    _ => return true,
                },
                _ => &self.strangers,
            };
            match segments::receive_run(socket, self.buffers.room(), &mut self.control) {
                Ok(arrival) => self.take_run(arrival, counters, &mut open, &mut take),
                Err(Errno::EAGAIN) => return true,
                // Reading it has cleared it.
                Err(Errno::ECONNREFUSED) => {
                    if let Source::Peer { place, .. } = source
                        && let Some(Some(peer)) = self.peers.get_mut(place)
                        && refusal_counts(&mut peer.refused, now)
                    {
                        take(Received::Refused);
                    }
                }
                // Other errors tell of one datagram's fate on its way: no reason to doubt a peer.
                Err(_) => {}
            }
        }
        false
    }

    fn take_run(
        &mut self,
        arrival: Arrival,
        counters: &mut Counters,
        open: &mut impl FnMut(&mut [u8]) -> Option<Range<usize>>,
        take: &mut impl FnMut(Received<'_>),
    ) {
        // Nothing is a probe: it was sent for the refusal that a dead process would have answered.
        let Arrival { length, size, cut } = arrival;
        self.places.clear();
        let mut start = 0;
        while start < length {
            let end = length.min(start + size);
            counters.datagrams_in += 1;
            if end - start > MAX_SEALED || cut && end == length {
                counters.malformed.count(&Malformed::Length);
            } else if let Some(inside) = open(&mut self.buffers.room()[start..end]) {
                self.places.push(start + inside.start..start + inside.end);
            }
            start = end;
        }
        if self.places.is_empty() {
            return;
        }
        let bytes = self.buffers.share(length);
        self.run.extend(self.places.drain(..).map(|place| bytes.slice(place)));
        take(Received::Datagrams(&self.run));
        self.run.clear();
    }

    /// Sends datagrams of `size` bytes each, the last may be shorter, to the node at this place, if
    /// it has a socket. A datagram that the kernel does not take is lost, as on the way: the ring
    /// repeats.
    pub fn send(
        &mut self,
        place: usize,
        run: &[u8],
        size: usize,
        now: Time,
        counters: &mut Counters,
    ) {
        let Some(Some(peer)) = self.peers.get_mut(place) else { return };
        if run.len() > size && peer.runs {
            match peer.offer(now, |socket| segments::send_run(socket, run, size)) {
                Ok(()) => {
                    counters.datagrams_out += run.len().div_ceil(size) as u64;
                    counters.runs_out += 1;
                    return;
                }
                Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE | Errno::EOPNOTSUPP) => {
                    tracing::info!(peer = ?peer.socket.peer_addr(), "runs of datagrams are refused on the way to \
                        this node: they are sent one by one from here on");
                    peer.runs = false;
                }
                Err(_) => {
                    counters.datagrams_unsent += run.len().div_ceil(size) as u64;
                    return;
                }
            }
        }
        for datagram in run.chunks(size) {
            peer.send_one(datagram, now, counters);
        }
    }

    /// Sends an empty datagram, which means nothing to a living node and is refused by the host of
    /// a dead one.
    pub fn probe(&mut self, place: usize, now: Time, counters: &mut Counters) {
        if let Some(Some(peer)) = self.peers.get_mut(place) {
            peer.send_one(&[], now, counters);
        }
    }

    /// The place of the next node to which a send was refused.
    pub fn take_refused(&mut self) -> Option<usize> {
        let untold = |peer: &&mut Option<Peer>| peer.as_ref().is_some_and(|peer| peer.untold);
        let (place, peer) = self.peers.iter_mut().enumerate().find(|(_, peer)| untold(peer))?;
        peer.iter_mut().for_each(|peer| peer.untold = false);
        Some(place)
    }
}

impl Peer {
    fn send_one(&mut self, datagram: &[u8], now: Time, counters: &mut Counters) {
        let send = |socket: &UdpSocket| match socket.send(datagram) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_raw(error.raw_os_error().unwrap_or(0))),
        };
        match self.offer(now, send) {
            Ok(()) => counters.datagrams_out += 1,
            Err(_) => counters.datagrams_unsent += 1,
        }
    }

    /// Sends, once more if an earlier datagram was refused: that is told instead of sending.
    /// The peer may be back.
    fn offer(
        &mut self,
        now: Time,
        send: impl Fn(&UdpSocket) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match send(&self.socket) {
            Err(Errno::ECONNREFUSED) => {
                if refusal_counts(&mut self.refused, now) {
                    self.untold = true;
                }
                send(&self.socket)
            }
            result => result,
        }
    }
}

/// A dead peer's port refuses every datagram: telling of each would keep the loop busy.
fn refusal_counts(last: &mut Option<Time>, now: Time) -> bool {
    if last.is_some_and(|last| now.since(last) < REFUSAL_PAUSE) {
        return false;
    }
    *last = Some(now);
    true
}

fn bound(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    // All peers' sockets share the port. That another process does not share it too is seen to by
    // the TCP listener of the same number.
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 1 << 20;
    const PEER: Source = Source::Peer { link: 0, place: 0 };

    /// Two nodes that know each other.
    fn pair() -> (Udp, Udp) {
        let any = "127.0.0.1:0".parse().unwrap();
        let reserved = bound(any).unwrap();
        let second = reserved.local_addr().unwrap();
        let bind = |at| Udp::bind(0, at, ROOM).unwrap();
        let (mut first, mut second) = (bind(any), bind(second));
        first.connect(0, second.address()).unwrap();
        second.connect(0, first.address()).unwrap();
        (first, second)
    }

    fn wait_readable(udp: &Udp) {
        let poller = Poller::new().unwrap();
        udp.register(&poller).unwrap();
        udp.register_peer(0, &poller).unwrap();
        let now = os::clock::monotonic();
        let mut ready = Vec::new();
        poller.wait(now, now + Duration::from_secs(10), &mut ready).unwrap();
        assert!(!ready.is_empty(), "nothing arrived");
    }

    fn read(udp: &mut Udp, count: usize) -> Vec<Bytes> {
        let mut counters = Counters::default();
        let mut datagrams = Vec::new();
        while datagrams.len() < count {
            wait_readable(udp);
            udp.receive(PEER, Time::ZERO, &mut counters, whole, |received| {
                if let Received::Datagrams(run) = received {
                    datagrams.extend_from_slice(run);
                }
            });
        }
        datagrams
    }

    fn whole(datagram: &mut [u8]) -> Option<Range<usize>> {
        Some(0..datagram.len())
    }

    fn numbered(count: usize, size: usize, last: usize) -> Vec<u8> {
        let bytes = |n: usize| vec![n as u8; if n + 1 == count { last } else { size }];
        (0..count).flat_map(bytes).collect()
    }

    #[test]
    fn a_run_arrives_as_the_datagrams_that_it_was_made_of() {
        for runs in [true, false] {
            let (mut first, mut second) = pair();
            first.peers[0].as_mut().unwrap().runs &= runs;
            for (count, size, last) in [(1, 9, 9), (2, 1_400, 1), (46, 1_400, 1_400), (64, 64, 63)]
            {
                let run = numbered(count, size, last);
                let mut counters = Counters::default();
                first.send(0, &run, size, Time::ZERO, &mut counters);
                assert_eq!(counters.datagrams_out, count as u64);
                let datagrams = read(&mut second, count);
                assert_eq!(datagrams, run.chunks(size).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_is_not_opened_goes_no_further_and_the_rest_of_its_run_does() {
        let (mut first, mut second) = pair();
        let mut counters = Counters::default();
        first.send(0, &numbered(8, 100, 100), 100, Time::ZERO, &mut counters);
        wait_readable(&second);
        let mut taken = Vec::new();
        let odd = |datagram: &mut [u8]| (datagram[0] % 2 == 1).then_some(10..20);
        second.receive(PEER, Time::ZERO, &mut counters, odd, |received| {
            let Received::Datagrams(run) = received else { unreachable!("nobody died") };
            taken.extend_from_slice(run);
        });
        assert_eq!(taken, [1, 3, 5, 7].map(|n| vec![n; 10]));
        assert_eq!(counters.datagrams_in, 8);
    }

    #[test]
    fn a_dead_peer_is_told_of_whether_datagrams_go_alone_or_in_runs() {
        for count in [1, 40] {
            let (mut first, second) = pair();
            drop(second);
            let mut counters = Counters::default();
            let run = numbered(count, 1_000, 1_000);
            // Over loopback the refusal is there when the call returns.
            first.send(0, &run, 1_000, Time::ZERO, &mut counters);
            let mut refused = 0;
            first.receive(PEER, Time::ZERO, &mut counters, whole, |received| {
                refused += usize::from(matches!(received, Received::Refused));
            });
            assert_eq!(refused, 1);
            let later = Time::ZERO + 2 * REFUSAL_PAUSE;
            first.send(0, &run, 1_000, later, &mut counters);
            first.send(0, &run, 1_000, later, &mut counters);
            assert_eq!(first.take_refused(), Some(0));
            assert_eq!(first.take_refused(), None);
            assert_eq!(counters.datagrams_unsent, 0, "the peer may be back: sent all the same");
        }
    }
}
