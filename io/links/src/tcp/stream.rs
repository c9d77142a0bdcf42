//! One connection over TCP: what its socket and its TLS are at.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;

use tls::{Peer, Records};

use crate::class::{CLASSES, Pipe};
use crate::event::Down;
use crate::flow::Flow;
use crate::news::News;
use crate::poller::EventFlags;

/// Pieces written with one system call.
const WRITE_BATCH: usize = 32;

/// Something that happened on a connection.
pub(super) enum Happened {
    Open(Option<Peer>),
    Read,
}

impl Happened {
    pub fn of(self, pipe: Pipe) -> News {
        match self {
            Happened::Open(peer) => News::Open(pipe, peer),
            Happened::Read => News::Read(pipe),
        }
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    pub socket: TcpStream,
    /// `None`: bare TCP.
    records: Option<Box<Records>>,
    pub flow: Flow,
    connecting: bool,
    /// Its owner was told that it is open.
    open: bool,
    /// The socket takes nothing any more. It may still have last words of the other side, which say
    /// why: reading tells of the end.
    broken: Option<String>,
    /// Those of a smaller rank write first.
    pub rank: u8,
    /// The flags that epoll was asked for.
    pub asked: EventFlags,
}

impl Stream {
    /// The flags to ask epoll for when nothing waits to be written.
    pub const READ: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

    pub fn new(socket: TcpStream, connecting: bool, records: Option<Records>) -> Stream {
        Stream {
            socket,
            open: records.is_none() && !connecting,
            records: records.map(Box::new),
            flow: Flow::default(),
            connecting,
            broken: None,
            rank: CLASSES as u8,
            asked: if connecting { EventFlags::OUT } else { Self::READ },
        }
    }

    /// The flags to ask epoll for.
    pub fn flags(&self) -> EventFlags {
        let mut flags = if self.connecting { EventFlags::empty() } else { Self::READ };
        flags.set(EventFlags::OUT, self.connecting || !self.is_written());
        flags
    }

    /// Connects, shakes hands and reads, as far as the socket lets it.
    pub fn go_on(
        &mut self,
        flags: EventFlags,
        scratch: &mut [u8],
        mut tell: impl FnMut(Happened),
    ) -> Result<(), Down> {
        if self.connecting {
            if let Ok(Some(error)) | Err(error) = self.socket.take_error() {
                return Err(Down::Lost(error.to_string()));
            }
            if !flags.contains(EventFlags::OUT) {
                return Ok(());
            }
            self.connecting = false;
            if self.records.is_none() {
                self.open = true;
                tell(Happened::Open(None));
            }
            return Ok(());
        }
        if !flags.intersects(Self::READ | EventFlags::HUP | EventFlags::ERR) {
            return Ok(());
        }
        let before = self.flow.input.len();
        let read = self.read(scratch).map_err(|down| match (down, &self.broken) {
            (Down::Ended | Down::Lost(_), Some(error)) => Down::Lost(error.clone()),
            (down, _) => down,
        });
        if let Some(records) = &self.records
            && !self.open
            && records.is_open()
        {
            self.open = true;
            tell(Happened::Open(records.peer()));
        }
        if self.flow.input.len() > before {
            tell(Happened::Read);
        }
        read
    }

    fn read(&mut self, scratch: &mut [u8]) -> Result<(), Down> {
        let length = match self.socket.read(scratch) {
            Ok(0) => return Err(Down::Ended),
            Ok(length) => length,
            Err(error) => {
                let again = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                let again = again.contains(&error.kind());
                return if again { Ok(()) } else { Err(Down::Lost(error.to_string())) };
            }
        };
        let (bytes, input) = (&scratch[..length], &mut self.flow.input);
        let Some(records) = &mut self.records else {
            input.extend_from_slice(bytes);
            return Ok(());
        };
        if let Err(error) = records.receive(bytes, |plain| input.extend_from_slice(plain)) {
            // The alert that says why is written if the socket takes it at once.
            let _ = records.write(&mut self.socket);
            return Err(Down::Untrusted(tls::explain(&error)));
        }
        if records.has_ended() { Err(Down::Ended) } else { Ok(()) }
    }

    /// Everything was given to the socket.
    fn is_written(&self) -> bool {
        let sealed = self.records.as_ref().is_some_and(|records| records.wants_to_write());
        // Before the handshake is over, there is nothing plain to write.
        self.broken.is_some() || !sealed && (self.flow.output.is_empty() || !self.open)
    }

    /// Writes what the socket takes.
    pub fn write(&mut self) {
        while !self.connecting && !self.is_written() {
            match self.write_once() {
                Ok(0) => self.broken = Some(io::Error::from(io::ErrorKind::WriteZero).to_string()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.broken = Some(error.to_string()),
            }
        }
    }

    fn write_once(&mut self) -> io::Result<usize> {
        if let Some(records) = &mut self.records
            && records.wants_to_write()
        {
            return records.write(&mut self.socket);
        }
        let mut slices = [IoSlice::new(&[]); WRITE_BATCH];
        let count = self.flow.output.slices(&mut slices);
        let taken = match &mut self.records {
            None => self.socket.write_vectored(&slices[..count])?,
            // Only when nothing sealed waits: what the other side does not read stays plain, and
            // counted.
            Some(records) => records.seal(&slices[..count]),
        };
        self.flow.output.advance(taken);
        Ok(taken)
    }

    /// Says a last byte if nothing else waits, and that this is the end. The socket takes it now or
    /// never.
    pub fn say_goodbye(&mut self, last: Option<u8>) {
        let last = last.filter(|_| self.open && self.is_written());
        match &mut self.records {
            None => _ = last.map(|byte| self.socket.write(&[byte])),
            Some(records) if records.is_open() => {
                if let Some(byte) = last {
                    records.seal(&[IoSlice::new(&[byte])]);
                }
                records.say_goodbye();
                while records.wants_to_write() && records.write(&mut self.socket).is_ok() {}
            }
            Some(_) => {}
        }
    }
}
