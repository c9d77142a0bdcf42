//! The ring's datagrams on one link.
//!
//! Every peer has a socket of its own, connected to it and bound to the ring's port as all the
//! others: only a connected socket is told that the other side's port is closed, which proves in
//! microseconds that the process there is gone. One more, unconnected, gets what no peer sent.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;

use bytes::Bytes;
use seal::MAX_SEALED;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use wire::{Duration, Malformed, Time};

use crate::poller::{EventFlags, Poller, Source};
use crate::status::Counters;

/// A window of the largest datagrams, several times: what the kernel may hold while this
/// process is not running. The system's limit (`net.core.rmem_max`) may allow less.
const SOCKET_BUFFER: usize = 4 << 20;

/// Datagrams read from one socket before the others have their turn.
const BATCH: usize = 64;

/// A refusal is told at most this often for each peer, however many datagrams are refused.
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

/// What a socket's reading brings.
pub(crate) enum Received {
    /// A datagram.
    Datagram(Bytes),
    /// The peer's host says that nobody listens there.
    Refused,
}

#[derive(Debug)]
pub(crate) struct Udp {
    link: usize,
    peers: Vec<Peer>,
    strangers: UdpSocket,
    address: SocketAddr,
    buffer: Box<[u8]>,
}

#[derive(Debug)]
struct Peer {
    socket: UdpSocket,
    refused: Option<Time>,
    /// A refusal that came while sending, to be told with the next reading.
    untold: bool,
}

impl Udp {
    /// Binds at `mine`, with a socket for each of `others`, which are called by their numbers.
    pub fn bind(link: usize, mine: SocketAddr, others: &[SocketAddr]) -> io::Result<Udp> {
        let strangers = bound(mine)?;
        let address = strangers.local_addr()?;
        let peer = |theirs: &SocketAddr| {
            let socket = bound(address)?;
            socket.connect(theirs)?;
            Ok(Peer { socket, refused: None, untold: false })
        };
        let peers = others.iter().map(peer).collect::<io::Result<_>>()?;
        let buffer = vec![0; MAX_SEALED + 1].into();
        Ok(Udp { link, peers, strangers, address, buffer })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        let link = self.link;
        poller.add(&self.strangers, Source::Strangers(link), EventFlags::IN)?;
        for (number, peer) in self.peers.iter().enumerate() {
            poller.add(&peer.socket, Source::Peer { link, number }, EventFlags::IN)?;
        }
        Ok(())
    }

    /// Reads what one socket has, up to a batch, and gives it to `take`. `open` sees each datagram
    /// first, where it was read: what it leaves of it goes on, `None` is dropped.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        mut open: impl FnMut(&mut [u8]) -> Option<Range<usize>>,
        mut take: impl FnMut(Received),
    ) {
        let (socket, mut peer) = match source {
            Source::Peer { number, .. } => {
                let peer = &mut self.peers[number];
                (&peer.socket, Some(&mut peer.refused))
            }
            _ => (&self.strangers, None),
        };
        for _ in 0..BATCH {
            match socket.recv(&mut self.buffer) {
                // A probe: it was sent for the refusal that a dead process would have answered.
                Ok(0) => {}
                Ok(length) if length > MAX_SEALED => {
                    counters.datagrams_in += 1;
                    counters.malformed.count(&Malformed::Length);
                }
                Ok(length) => {
                    counters.datagrams_in += 1;
                    if let Some(inside) = open(&mut self.buffer[..length]) {
                        take(Received::Datagram(Bytes::copy_from_slice(&self.buffer[inside])));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Reading it has cleared it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if let Some(refused) = &mut peer
                        && refusal_counts(refused, now)
                    {
                        take(Received::Refused);
                    }
                }
                // Other errors tell of one datagram's fate on its way: no reason to doubt a peer.
                Err(_) => {}
            }
        }
    }

    /// Sends a datagram to the peer of this number. What the kernel does not take is lost, as on
    /// the way: the ring repeats.
    pub fn send(&mut self, peer: usize, datagram: &[u8], now: Time, counters: &mut Counters) {
        let peer = &mut self.peers[peer];
        let mut result = peer.socket.send(datagram);
        if matches!(&result, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused) {
            // An earlier datagram was refused; this one was not sent. The peer may be back.
            if refusal_counts(&mut peer.refused, now) {
                peer.untold = true;
            }
            result = peer.socket.send(datagram);
        }
        match result {
            Ok(_) => counters.datagrams_out += 1,
            Err(_) => counters.datagrams_unsent += 1,
        }
    }

    /// The number of the next peer of which a send was refused.
    pub fn take_refused(&mut self) -> Option<usize> {
        let number = self.peers.iter().position(|peer| peer.untold)?;
        self.peers[number].untold = false;
        Some(number)
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
    // Best effort: less room costs repeats under load, nothing else.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}
