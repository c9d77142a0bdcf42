//! A TCP stream with TLS, for threads that may wait.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use bytes::{Buf, BytesMut};

use crate::{Identity, Records};

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// A connection whose bytes are sealed. It blocks as its socket does, and has the same time-outs.
#[derive(Debug)]
pub struct SecureStream {
    socket: TcpStream,
    records: Records,
    plain: BytesMut,
    room: Vec<u8>,
}

impl SecureStream {
    /// Shakes hands.
    ///
    /// # Errors
    /// The socket fails, or the other side shows or takes no good certificate.
    pub fn open(socket: TcpStream, records: Records) -> io::Result<SecureStream> {
        let mut stream =
            SecureStream { socket, records, plain: BytesMut::new(), room: vec![0; READ] };
        stream.flush()?;
        while !stream.records.is_open() {
            if !stream.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        stream.flush()?;
        Ok(stream)
    }

    /// The state of TLS, for [`Server::admit`](crate::Server::admit).
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The name that the other side has proved.
    pub fn identity(&self) -> Option<Identity> {
        self.records.identity()
    }

    /// Something has come, and is to be read without the socket.
    pub fn has_plain(&self) -> bool {
        !self.plain.is_empty()
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads once. False: the other side has closed.
    fn fill(&mut self) -> io::Result<bool> {
        let length = self.socket.read(&mut self.room)?;
        let plain = &mut self.plain;
        let taken = self.records.receive(&self.room[..length], |it| plain.extend_from_slice(it));
        if let Err(error) = taken {
            // Its last words say what this side has against the other.
            let _ = self.flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, crate::explain(&error)));
        }
        self.flush()?;
        Ok(length > 0)
    }
}

impl Read for SecureStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.plain.is_empty() && !self.records.has_ended() {
            if !self.fill()? {
                break;
            }
        }
        let count = bytes.len().min(self.plain.len());
        self.plain.copy_to_slice(&mut bytes[..count]);
        Ok(count)
    }
}

impl Write for SecureStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let sealed = self.records.seal(&[IoSlice::new(bytes)]);
            self.flush()?;
            if sealed > 0 || bytes.is_empty() {
                return Ok(sealed);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.records.wants_to_write() {
            self.records.write(&mut self.socket)?;
        }
        Ok(())
    }
}
