//! One nonblocking TCP connection.

use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, connect, ipproto,
    sendmsg, socket_with, sockopt,
};
use wire::client::Frame;

use crate::buffers::{Inbox, Outbox};

pub(super) struct Stream {
    /// Shared with the thread that polls, so that no descriptor is closed under its hands.
    pub(super) socket: Arc<TcpStream>,
    dialling: bool,
    inbox: Inbox,
    outbox: Outbox,
}

impl Stream {
    pub(super) fn dial(address: SocketAddr) -> io::Result<Stream> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        // Requests are small and each waits for its answer: nothing is to be gathered.
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let (inbox, outbox) = Default::default();
        Ok(Stream { socket: Arc::new(socket.into()), dialling: true, inbox, outbox })
    }

    /// There is something to write, or the dial's end to be told.
    pub(super) fn wants_to_write(&self) -> bool {
        self.dialling || !self.outbox.is_empty()
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
        if self.outbox.put(frame) { Ok(()) } else { Err(ErrorKind::OutOfMemory.into()) }
    }

    /// Writes what the socket takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.dialling && !self.outbox.is_empty() {
            let (slices, count) = self.outbox.slices();
            // Not `write_vectored`: that raises SIGPIPE, which only Rust's own `main` ignores.
            let mut control = SendAncillaryBuffer::default();
            let flags = SendFlags::NOSIGNAL;
            match sendmsg(&*self.socket, &slices[..count], &mut control, flags) {
                Ok(written) => self.outbox.written(written),
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what has come, up to the size of `scratch`. The frames before an error count.
    pub(super) fn read(&mut self, scratch: &mut [u8], frames: &mut Vec<Frame>) -> io::Result<()> {
        match (&*self.socket).read(scratch) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.inbox.put(&scratch[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        loop {
            match self.inbox.take() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return Ok(()),
                Err(malformed) => return Err(io::Error::new(ErrorKind::InvalidData, malformed)),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The thread that polls may keep the descriptor a while longer; the node need not.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}
