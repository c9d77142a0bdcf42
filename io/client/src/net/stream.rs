//! One nonblocking TCP connection.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, connect, ipproto,
    sendmsg, socket_with, sockopt,
};
use wire::client::Frame;

use crate::Trouble;
use crate::channel::Channel;

pub(super) struct Stream {
    /// Shared with the thread that polls, so that no descriptor is closed under its hands.
    pub(super) socket: Arc<TcpStream>,
    dialling: bool,
    channel: Channel,
}

impl Stream {
    pub(super) fn dial(address: SocketAddr, channel: Channel) -> io::Result<Stream> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        // Requests are small and each waits for its answer: nothing is to be gathered.
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Stream { socket: Arc::new(socket.into()), dialling: true, channel })
    }

    /// There is something to write, or the dial's end to be told.
    pub(super) fn wants_to_write(&self) -> bool {
        self.dialling || self.channel.wants_to_write()
    }

    /// The socket can be written. True if that means that it is connected now.
    pub(super) fn finish_dial(&mut self) -> io::Result<bool> {
        if !self.dialling {
            return Ok(false);
        }
        sockopt::socket_error(&*self.socket)??;
        self.dialling = false;
        Ok(true)
    }

    pub(super) fn put(&mut self, frame: &Frame) -> io::Result<()> {
        if self.channel.put(frame) { Ok(()) } else { Err(ErrorKind::OutOfMemory.into()) }
    }

    /// Writes what the socket takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.dialling { Ok(()) } else { self.channel.write(&mut Quiet(&self.socket)) }
    }

    /// Reads what has come, up to the size of `scratch`. The frames before an error count. An error
    /// without a trouble is the connection's end.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        frames: &mut Vec<Frame>,
    ) -> Result<(), Option<Trouble>> {
        let count = match (&*self.socket).read(scratch) {
            Ok(0) => return Err(None),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(_) => return Err(None),
        };
        Ok(self.channel.receive(&scratch[..count], frames)?)
    }
}

/// Not `TcpStream`'s own writing: that raises SIGPIPE, which only Rust's own `main` ignores.
struct Quiet<'a>(&'a TcpStream);

impl Write for Quiet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut control = SendAncillaryBuffer::default();
        Ok(sendmsg(self.0, slices, &mut control, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The thread that polls may keep the descriptor a while longer; the node need not.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
