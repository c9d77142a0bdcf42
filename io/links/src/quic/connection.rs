//! One connection over QUIC.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use quinn_proto::{ConnectionError, Dir, Event, ReadError, StreamEvent, StreamId, WriteError};

use crate::class::{CLASSES, Pipe};
use crate::datagrams::{PREFIX, RUN};
use crate::event::Down;
use crate::flow::Flow;
use crate::news::News;
use crate::refusal::Refusal;
use crate::security::peer_of;

/// Datagrams of which the first bytes are kept: some runs.
const REMEMBERED: usize = 2 * RUN;

/// The code of TLS's alerts among those of QUIC (RFC 9001, 4.8).
const ALERTS: std::ops::Range<u64> = 0x100..0x200;

pub(super) struct Connection {
    pub pipe: Pipe,
    pub machine: quinn_proto::Connection,
    pub flow: Flow,
    /// Those of a smaller rank send first.
    pub rank: u8,
    /// When the machine wants to be called.
    pub timer: Option<Instant>,
    /// Its owner has closed it: it only says farewell.
    pub closed: bool,
    /// Its owner was told of its end.
    ended: bool,
    dialled: bool,
    stream: Option<StreamId>,
    /// How the last datagrams began, which only those on their way can know.
    sent: VecDeque<[u8; PREFIX]>,
}

impl Connection {
    pub fn new(pipe: Pipe, machine: quinn_proto::Connection, dialled: bool) -> Connection {
        Connection {
            pipe,
            machine,
            flow: Flow::default(),
            rank: CLASSES as u8,
            timer: None,
            closed: false,
            ended: false,
            dialled,
            stream: None,
            sent: VecDeque::new(),
        }
    }

    /// There is nothing more to tell its owner.
    pub fn is_over(&self) -> bool {
        self.closed || self.ended
    }

    /// Tells what the machine says.
    pub fn take_events(&mut self, news: &mut Vec<News>) {
        while let Some(event) = self.machine.poll() {
            if self.is_over() {
                continue;
            }
            match event {
                Event::Connected => {
                    if self.dialled {
                        self.stream = self.machine.streams().open(Dir::Bi);
                    }
                    let peer = peer_of(self.machine.crypto_session().peer_identity());
                    news.push(News::Open(self.pipe, peer));
                }
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    self.stream = self.machine.streams().accept(Dir::Bi);
                    self.read(news);
                }
                Event::Stream(StreamEvent::Readable { .. }) => self.read(news),
                Event::Stream(StreamEvent::Stopped { .. }) => self.end(Down::Ended, news),
                Event::ConnectionLost { reason } => self.end(why(&reason), news),
                _ => {}
            }
        }
    }

    fn read(&mut self, news: &mut Vec<News>) {
        let Some(stream) = self.stream else { return };
        let before = self.flow.input.len();
        let mut stream = self.machine.recv_stream(stream);
        let mut over = true;
        if let Ok(mut chunks) = stream.read(true) {
            over = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => self.flow.input.extend_from_slice(&chunk.bytes),
                    Err(ReadError::Blocked) => break false,
                    Ok(None) | Err(ReadError::Reset(_)) => break true,
                }
            };
            // The window that it opens is sent with what comes next anyway.
            let _ = chunks.finalize();
        }
        if self.flow.input.len() > before {
            news.push(News::Read(self.pipe));
        }
        if over {
            self.end(Down::Ended, news);
        }
    }

    fn end(&mut self, why: Down, news: &mut Vec<News>) {
        if !self.ended {
            self.ended = true;
            news.push(News::Ended(self.pipe, why));
        }
    }

    /// Gives the machine what it takes.
    pub fn write(&mut self) {
        let Some(stream) = self.stream else { return };
        while !self.is_over() && !self.flow.output.is_empty() {
            let machine = &mut self.machine;
            let written = self.flow.output.drain(|pieces| {
                machine.send_stream(stream).write_chunks(pieces).map(|written| written.bytes)
            });
            match written {
                Ok(()) => {}
                // The machine tells when there is room, or of the end.
                Err(WriteError::Blocked | WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    return;
                }
            }
        }
    }

    /// These datagrams are sent.
    pub fn remember(&mut self, bytes: &[u8], segment: usize) {
        for datagram in bytes.chunks(segment.max(1)) {
            let Some(prefix) = datagram.first_chunk() else { continue };
            if self.sent.len() == REMEMBERED {
                self.sent.pop_front();
            }
            self.sent.push_back(*prefix);
        }
    }

    /// Whether it has sent this datagram a short while ago.
    pub fn has_sent(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        let prefix = bytes.first_chunk();
        self.machine.remote_address() == to
            && prefix.is_some_and(|prefix| self.sent.contains(prefix))
    }
}

/// The reason of an end, for people.
fn why(reason: &ConnectionError) -> Down {
    match reason {
        ConnectionError::ApplicationClosed(close) => {
            let code = u64::from(close.error_code);
            let refusal = u8::try_from(code).ok().and_then(Refusal::from_byte);
            refusal.map_or(Down::Ended, Down::Refused)
        }
        ConnectionError::TransportError(error) if ALERTS.contains(&u64::from(error.code)) => {
            Down::Untrusted(format!("the certificate of the other side is refused: {error}"))
        }
        ConnectionError::ConnectionClosed(close)
            if ALERTS.contains(&u64::from(close.error_code)) =>
        {
            Down::Untrusted(format!("the other side refuses this one's certificate: {close}"))
        }
        ConnectionError::TimedOut => Down::Silent,
        other => Down::Lost(other.to_string()),
    }
}
