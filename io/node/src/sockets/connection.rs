//! One client's connection: bytes in and out, plain or by TLS records.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use bytes::{Buf, Bytes, BytesMut};
use tls::{Peer, Records};

use admin::status::Counters;

/// Buffers written with one system call.
const WRITE_BATCH: usize = 32;

/// An open connection whose handshake is done.
#[derive(Debug)]
pub(super) struct Secure {
    pub records: Box<Records>,
    pub peer: Peer,
    /// Plain bytes that were sealed since the socket took all that was.
    sealed: usize,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub stream: TcpStream,
    /// `None`: plain bytes, on loopback or where the operator wants it so.
    pub secure: Option<Secure>,
    pub input: BytesMut,
    pub output: VecDeque<Bytes>,
    pub output_bytes: usize,
    /// A first whole frame has come.
    pub greeted: bool,
    /// Nothing more is read; it ends when the output is written.
    pub closing: bool,
    /// Epoll is asked to tell when it can be written.
    pub waits_to_write: bool,
}

/// The result of reading.
pub(super) enum Taken {
    /// There may be frames.
    Some,
    /// Nothing was there.
    Nothing,
    /// The connection has ended.
    End,
    /// Bytes came that are not the client's, or that it should not have sent.
    Broken,
}

impl Connection {
    pub fn new(stream: TcpStream, secure: Option<Secure>, input: BytesMut) -> Self {
        Connection {
            stream,
            secure,
            input,
            output: VecDeque::new(),
            output_bytes: 0,
            greeted: false,
            closing: false,
            waits_to_write: false,
        }
    }

    /// Bytes that are kept for it here.
    pub fn held(&self) -> usize {
        let sealed = self.secure.as_ref().map_or(0, |secure| secure.sealed);
        self.input.len() + self.output_bytes + sealed
    }

    /// Reads once, into the input.
    pub fn read(&mut self, scratch: &mut [u8]) -> Taken {
        let length = match self.stream.read(scratch) {
            Ok(0) => return Taken::End,
            Ok(length) => length,
            Err(error) => {
                let again = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                return if again.contains(&error.kind()) { Taken::Nothing } else { Taken::End };
            }
        };
        let bytes = &scratch[..length];
        let (input, closing) = (&mut self.input, self.closing);
        match &mut self.secure {
            _ if closing => Taken::Nothing,
            None => {
                input.extend_from_slice(bytes);
                Taken::Some
            }
            Some(secure) => {
                match secure.records.receive(bytes, |plain| input.extend_from_slice(plain)) {
                    Ok(()) => Taken::Some,
                    Err(_) => {
                        // The alert that says why is written if the socket takes it at once.
                        let _ = secure.records.write(&mut self.stream);
                        Taken::Broken
                    }
                }
            }
        }
    }

    /// Everything was given to the socket.
    pub fn is_written(&self) -> bool {
        let sealed = self.secure.as_ref().is_some_and(|secure| secure.records.wants_to_write());
        self.output.is_empty() && !sealed
    }

    /// Writes what the socket takes.
    pub fn write(&mut self, counters: &mut Counters) -> io::Result<()> {
        loop {
            match self.write_once(counters) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// True when nothing is left to write.
    fn write_once(&mut self, counters: &mut Counters) -> io::Result<bool> {
        if let Some(secure) = &mut self.secure
            && secure.records.wants_to_write()
        {
            if secure.records.write(&mut self.stream)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            if !secure.records.wants_to_write() {
                secure.sealed = 0;
            }
            return Ok(false);
        }
        if self.output.is_empty() {
            return Ok(true);
        }
        let mut slices = [IoSlice::new(&[]); WRITE_BATCH];
        let count = self.output.len().min(WRITE_BATCH);
        for (slice, bytes) in slices.iter_mut().zip(&self.output) {
            *slice = IoSlice::new(bytes);
        }
        let taken = match &mut self.secure {
            None => self.stream.write_vectored(&slices[..count])?,
            Some(secure) => {
                // Only when nothing sealed waits: what a client does not read stays plain, and
                // counted.
                let taken = secure.records.seal(&slices[..count]);
                secure.sealed += taken;
                taken
            }
        };
        if taken == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.written(taken, counters);
        Ok(false)
    }

    fn written(&mut self, mut written: usize, counters: &mut Counters) {
        self.output_bytes -= written;
        while let Some(first) = self.output.front_mut() {
            if written < first.len() {
                first.advance(written);
                return;
            }
            written -= first.len();
            self.output.pop_front();
            counters.frames_out += 1;
        }
    }

    /// Sockets that are fresh or in trouble take some last words or do not.
    pub fn say(&mut self, words: &[u8]) {
        if !self.is_written() {
            return;
        }
        match &mut self.secure {
            None => drop(self.stream.write(words)),
            Some(secure) => {
                secure.records.seal(&[IoSlice::new(words)]);
                let _ = secure.records.write(&mut self.stream);
            }
        }
    }
}

impl Secure {
    pub fn new(records: Box<Records>, peer: Peer) -> Secure {
        Secure { records, peer, sealed: 0 }
    }
}
