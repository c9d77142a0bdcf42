//! A TCP stream with TLS.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use bytes::{Buf, BytesMut};
use tls::{Identity, Records};

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// Blocks as the socket does.
pub(super) struct Secure {
    socket: TcpStream,
    records: Records,
    plain: BytesMut,
    room: Vec<u8>,
}

impl Secure {
    /// Shakes hands.
    pub fn open(socket: TcpStream, records: Records) -> io::Result<Secure> {
        let mut stream = Secure { socket, records, plain: BytesMut::new(), room: vec![0; READ] };
        stream.flush()?;
        while !stream.records.is_open() {
            if !stream.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        stream.flush()?;
        Ok(stream)
    }

    pub fn records(&self) -> &Records {
        &self.records
    }

    pub fn identity(&self) -> Option<Identity> {
        self.records.identity()
    }

    /// Reads once. False: the other side has closed.
    fn fill(&mut self) -> io::Result<bool> {
        let length = self.socket.read(&mut self.room)?;
        let plain = &mut self.plain;
        let taken = self.records.receive(&self.room[..length], |it| plain.extend_from_slice(it));
        if let Err(error) = taken {
            // Its last words say what this side has against the other.
            let _ = self.flush();
            return Err(io::Error::new(io::ErrorKind::InvalidData, tls::explain(&error)));
        }
        self.flush()?;
        Ok(length > 0)
    }
}

impl Read for Secure {
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

impl Write for Secure {
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
