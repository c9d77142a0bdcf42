//! A UDP socket: runs of datagrams in one system call, and what the network says of them.
//!
//! The kernel takes a run of equal datagrams as one (`UDP_SEGMENT`), and hands over as one what came
//! as one (`UDP_GRO`). With `IP_RECVERR` it keeps what ICMP says in the socket's error queue,
//! together with the beginning of the datagram in question. See udp(7) and ip(7).

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use bytes::BytesMut;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, getsockopt, recvmsg, sendmsg,
    setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};

/// Datagrams of a run: long enough to spare most of the work, and short enough for others to have
/// their turn.
pub(crate) const RUN: usize = 16;

/// Bytes that one reading may bring.
const MAX_READ: usize = 1 << 16;

/// Readings before others have their turn.
const READS: usize = 32;

/// Room for datagrams that wait to be read: one class must not crowd the others out.
const ROOM: usize = 4 << 20;

/// Bytes of a refused datagram that are looked at.
pub(crate) const PREFIX: usize = 16;

/// Datagrams that the socket did not take.
#[derive(Debug)]
struct Held {
    destination: SocketAddr,
    bytes: Vec<u8>,
    segment: usize,
}

#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    /// The kernel takes runs.
    runs: bool,
    held: VecDeque<Held>,
    buffer: Vec<u8>,
    control: Vec<u8>,
}

impl Datagrams {
    pub fn bind(address: SocketAddr) -> io::Result<Datagrams> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            // Each family has a socket of its own.
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        if setsockopt(&socket, sockopt::RcvBufForce, &ROOM).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &ROOM);
        }
        let _ = setsockopt(&socket, sockopt::SndBuf, &ROOM);
        let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
        // Without it, a dead peer is noticed by silence alone.
        let _ = match address {
            SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvErr, &true),
            SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvErr, &true),
        };
        let runs = getsockopt(&socket, sockopt::UdpGsoSegment).is_ok();
        // For an error of ICMP with its address, which is longer than the size of segments.
        let control = nix::cmsg_space!([u8; 128]);
        let (held, buffer) = (VecDeque::new(), vec![0; MAX_READ]);
        Ok(Datagrams { socket, runs, held, buffer, control })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that may be sent at once.
    pub fn run(&self) -> usize {
        if self.runs { RUN } else { 1 }
    }

    /// The socket takes no more for now; epoll tells when it does.
    pub fn is_full(&self) -> bool {
        !self.held.is_empty()
    }

    /// Sends datagrams of `segment` bytes each, the last of which may be shorter. Those that the
    /// socket has no room for are held.
    pub fn send(&mut self, destination: SocketAddr, bytes: &[u8], segment: usize) {
        let taken = if self.is_full() {
            Err(Errno::EAGAIN)
        } else {
            self.try_send(destination, bytes, segment)
        };
        if taken == Err(Errno::EAGAIN) {
            self.held.push_back(Held { destination, bytes: bytes.to_vec(), segment });
        }
    }

    /// Sends what is held.
    pub fn flush(&mut self) {
        while let Some(Held { destination, bytes, segment }) = self.held.pop_front() {
            if self.try_send(destination, &bytes, segment) == Err(Errno::EAGAIN) {
                self.held.push_front(Held { destination, bytes, segment });
                return;
            }
        }
    }

    /// Any failure but a lack of room is like a loss, for which QUIC has a remedy.
    fn try_send(&mut self, to: SocketAddr, bytes: &[u8], segment: usize) -> Result<(), Errno> {
        if bytes.len() <= segment || !self.runs {
            bytes.chunks(segment).for_each(|datagram| _ = self.send_one(to, datagram, None));
            return Ok(());
        }
        match self.send_one(to, bytes, u16::try_from(segment).ok()) {
            Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE) => {
                // The way out has no part that cuts runs.
                self.runs = false;
                self.try_send(to, bytes, segment)
            }
            other => other,
        }
    }

    fn send_one(&self, to: SocketAddr, bytes: &[u8], segment: Option<u16>) -> Result<(), Errno> {
        let (to, slices) = (SockaddrStorage::from(to), [IoSlice::new(bytes)]);
        let sizes = segment.as_ref().map(ControlMessage::UdpGsoSegments);
        let send = || {
            let fd = self.socket.as_raw_fd();
            sendmsg(fd, &slices, sizes.as_slice(), MsgFlags::empty(), Some(&to)).map(drop)
        };
        // An error of another datagram that waits to be told is told first, and is then gone.
        send().or_else(|error| if error == Errno::EAGAIN { Err(error) } else { send() })
    }

    /// Reads datagrams, up to a batch.
    pub fn receive(&mut self, mut take: impl FnMut(SocketAddr, BytesMut)) {
        for _ in 0..READS {
            let fd = self.socket.as_raw_fd();
            let mut room = [IoSliceMut::new(&mut self.buffer)];
            let flags = MsgFlags::empty();
            let message =
                match recvmsg::<SockaddrStorage>(fd, &mut room, Some(&mut self.control), flags) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN) => return,
                    // The error of a datagram that was sent; its details are in the error queue.
                    Err(_) => continue,
                };
            let told = message.cmsgs().ok().and_then(|mut all| {
                all.find_map(|told| match told {
                    ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
                    _ => None,
                })
            });
            let (length, from) = (message.bytes, message.address.and_then(socket_address));
            let size = told.filter(|size| *size > 0).unwrap_or(length).max(1);
            let Some(from) = from else { continue };
            for datagram in self.buffer[..length].chunks(size) {
                take(from, BytesMut::from(datagram));
            }
        }
    }

    /// Reads from the error queue which datagrams nobody took: their destinations, and their first
    /// bytes.
    pub fn refused(&mut self, mut take: impl FnMut(SocketAddr, &[u8])) {
        for _ in 0..READS {
            let fd = self.socket.as_raw_fd();
            let mut room = [IoSliceMut::new(&mut self.buffer)];
            let flags = MsgFlags::MSG_ERRQUEUE;
            let read = recvmsg::<SockaddrStorage>(fd, &mut room, Some(&mut self.control), flags);
            let Ok(message) = read else { return };
            let refused = message.cmsgs().is_ok_and(|mut all| {
                all.any(|told| match told {
                    ControlMessageOwned::Ipv4RecvErr(error, _)
                    | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                        i32::try_from(error.ee_errno) == Ok(Errno::ECONNREFUSED as i32)
                    }
                    _ => false,
                })
            });
            let (length, to) = (message.bytes, message.address.and_then(socket_address));
            if let (true, Some(to)) = (refused, to) {
                take(to, &self.buffer[..length]);
            }
        }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn socket_address(address: SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::from((v4.ip(), v4.port())));
    }
    let v6 = address.as_sockaddr_in6()?;
    let ip: Ipv6Addr = v6.ip();
    Some(SocketAddrV6::new(ip, v6.port(), v6.flowinfo(), v6.scope_id()).into())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn loopback() -> Datagrams {
        Datagrams::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
    }

    fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < end, "nothing came");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_run_arrives_as_the_datagrams_that_it_was() {
        let (mut near, mut far) = (loopback(), loopback());
        let bytes: Vec<u8> = (0..1_000).map(|n| n as u8).collect();
        near.send(far.address().unwrap(), &bytes, 300);
        let mut got = Vec::new();
        until(|| {
            far.receive(|from, datagram| got.push((from, datagram)));
            (got.len() == 4).then_some(())
        });
        let from = near.address().unwrap();
        let wanted: Vec<_> = bytes.chunks(300).map(|it| (from, BytesMut::from(it))).collect();
        assert_eq!(got, wanted);
    }

    #[test]
    fn a_datagram_that_nobody_takes_comes_back() {
        let mut near = loopback();
        let gone = loopback().address().unwrap();
        near.send(gone, b"is anybody there?", 100);
        let found = until(|| {
            let mut found = None;
            near.refused(|to, bytes| found = Some((to, bytes.to_vec())));
            found
        });
        assert_eq!(found.0, gone);
        assert!(found.1.starts_with(&b"is anybody there?"[..PREFIX]));
        // The next one is sent all the same.
        let mut far = loopback();
        near.send(far.address().unwrap(), b"you?", 100);
        until(|| {
            let mut got = false;
            far.receive(|_, datagram| got = datagram == b"you?"[..]);
            got.then_some(())
        });
    }
}
