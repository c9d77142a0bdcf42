//! A connection of the admin protocol: a Unix socket's, or TLS over TCP. Reads and writes block.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tls::{Denied, Peer, Records, Role};

/// Bytes read at a time.
const READ: usize = 16 << 10;

/// Either side's end.
#[derive(Debug)]
pub(crate) enum Stream {
    Unix(UnixStream),
    Tls(Tls),
}

/// TLS over TCP.
#[derive(Debug)]
pub(crate) struct Tls {
    socket: TcpStream,
    records: Box<Records>,
    /// Decrypted, and not taken yet.
    plain: BytesMut,
}

/// Ends a connection while another thread uses it.
#[derive(Debug)]
pub(crate) enum Closer {
    Unix(UnixStream),
    Tcp(TcpStream, Option<Peer>),
}

/// TLS failed: the words are for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Distrusted(pub String);

impl Stream {
    /// The role of the other side's certificate; `None`: it is a user of this host.
    pub fn role(&self) -> Option<Role> {
        match self {
            Stream::Unix(_) => None,
            Stream::Tls(stream) => {
                Some(stream.records.peer().map_or(Role::Client, |it| it.identity.role))
            }
        }
    }

    pub fn closer(&self) -> io::Result<Closer> {
        Ok(match self {
            Stream::Unix(stream) => Closer::Unix(stream.try_clone()?),
            Stream::Tls(stream) => Closer::Tcp(stream.socket.try_clone()?, stream.records.peer()),
        })
    }

    pub fn shutdown(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.socket.shutdown(Shutdown::Both),
        }
    }

    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        match self {
            Stream::Unix(stream) => stream.read_timeout(),
            Stream::Tls(stream) => stream.socket.read_timeout(),
        }
    }

    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
            Stream::Tls(stream) => stream.socket.set_read_timeout(timeout),
        }
    }

    /// The other side has closed.
    pub fn is_gone(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::RDHUP)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&at_once)).is_ok()
            && fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }
}

impl Closer {
    /// Its other side has a certificate of this list.
    pub fn is_denied(&self, denied: &Denied) -> bool {
        matches!(self, Closer::Tcp(_, Some(peer)) if denied.denies(peer))
    }

    pub fn shutdown(&self, how: Shutdown) {
        // A connection that has ended already fails here, which does not matter.
        let _ = match self {
            Closer::Unix(stream) => stream.shutdown(how),
            Closer::Tcp(stream, _) => stream.shutdown(how),
        };
    }
}

impl Tls {
    /// Makes a connection that is open, or whose handshake `shake` is to do.
    pub fn new(socket: TcpStream, records: Box<Records>, plain: BytesMut) -> io::Result<Tls> {
        socket.set_nonblocking(false)?;
        Ok(Tls { socket, records, plain })
    }

    /// Shakes hands, as the side that connects.
    pub fn shake(&mut self) -> io::Result<()> {
        while !self.records.is_open() {
            self.push()?;
            self.pull()?;
        }
        self.push()
    }

    /// Writes what is sealed.
    fn push(&mut self) -> io::Result<()> {
        while self.records.wants_to_write() {
            self.records.write(&mut self.socket)?;
        }
        Ok(())
    }

    /// Reads once. False at the end.
    fn pull(&mut self) -> io::Result<bool> {
        let mut bytes = [0; READ];
        let count = self.socket.read(&mut bytes)?;
        if count == 0 {
            return if self.records.is_open() {
                Ok(false)
            } else {
                let words =
                    "the node closed the connection during the handshake: is it an admin port?";
                Err(io::Error::other(Distrusted(words.into())))
            };
        }
        let plain = &mut self.plain;
        let received =
            self.records.receive(&bytes[..count], |piece| plain.extend_from_slice(piece));
        if let Err(error) = received {
            // The last word says to the other side what was wrong.
            let _ = self.push();
            return Err(io::Error::other(Distrusted(tls::explain(&error))));
        }
        self.push()?;
        Ok(!self.records.has_ended() || !self.plain.is_empty())
    }
}

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.plain.is_empty() {
            if !self.pull()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.plain.len());
        self.plain.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push()?;
        let count = self.records.seal(&[IoSlice::new(bytes)]);
        self.push()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.socket.as_fd(),
        }
    }
}
