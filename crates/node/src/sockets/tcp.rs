//! Clients' connections: frames in, frames out, within bounds.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use bytes::{Buf, Bytes, BytesMut};
use rustix::io::Errno;
use wire::client::{Farewell, Frame, Hello};
use wire::limits::{MAX_CALLER_BACKLOG, MAX_CALLERS, MAX_CALLERS_BYTES};
use wire::{Caller, Duration, Malformed, PROTOCOL_VERSION, Time};

use crate::poller::{EventFlags, Poller, Source};
use crate::status::Counters;

/// Bytes read from a connection at a time, and before the others have their turn.
const READ: usize = 64 << 10;

/// Connections accepted before the others have their turn.
const ACCEPT_BATCH: usize = 16;

/// Buffers written with one system call.
const WRITE_BATCH: usize = 32;

/// How long to wait for descriptors to become free when the system has none left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a connection's reading brings.
pub(crate) enum Arrived {
    /// A frame.
    Frame(Caller, Frame),
    /// The connection has ended, and everything about it is gone.
    Gone(Caller),
}

#[derive(Debug)]
pub(crate) struct Callers {
    listener: TcpListener,
    address: SocketAddr,
    connections: BTreeMap<u64, Connection>,
    next: u64,
    /// Bytes in all buffers.
    buffered: usize,
    /// Connections with frames that no write was tried for yet.
    unwritten: Vec<u64>,
    paused_until: Option<Time>,
    scratch: Box<[u8]>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    input: BytesMut,
    output: VecDeque<Bytes>,
    output_bytes: usize,
    /// A first whole frame has come.
    greeted: bool,
    /// Nothing more is read; it ends when the output is written.
    closing: bool,
    /// Epoll is asked to tell when it can be written.
    waits_to_write: bool,
}

impl Callers {
    pub fn listen(address: SocketAddr) -> io::Result<Callers> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Callers {
            listener,
            address,
            connections: BTreeMap::new(),
            next: 1,
            buffered: 0,
            unwritten: Vec::new(),
            paused_until: None,
            scratch: vec![0; READ].into(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn count(&self) -> usize {
        self.connections.len()
    }

    pub fn register(&self, poller: &Poller) -> Result<(), Errno> {
        poller.add(&self.listener, Source::Clients, EventFlags::IN)
    }

    /// When `resume` is due.
    pub fn next_timeout(&self) -> Time {
        self.paused_until.unwrap_or(Time::FAR)
    }

    /// Accepts again after a pause.
    pub fn resume(&mut self, now: Time, poller: &Poller) {
        if self.paused_until.is_some_and(|until| until <= now) {
            let again = poller.modify(&self.listener, Source::Clients, EventFlags::IN);
            self.paused_until = again.is_err().then_some(now + ACCEPT_PAUSE);
        }
    }

    /// Accepts new connections. Tells of those that had to go for them.
    pub fn accept(
        &mut self,
        now: Time,
        poller: &Poller,
        counters: &mut Counters,
        mut take: impl FnMut(Arrived),
    ) {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if let Some(evicted) = self.admit(stream, poller, counters) {
                        take(Arrived::Gone(evicted));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matters_to_all(&error) => {
                    // The listener stays ready, so epoll would report it without end.
                    tracing::warn!(%error, "no more clients for now: raise the limit of open files");
                    counters.connections_refused += 1;
                    let _ = poller.modify(&self.listener, Source::Clients, EventFlags::empty());
                    self.paused_until = Some(now + ACCEPT_PAUSE);
                    return;
                }
                // This one connection ended before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn admit(
        &mut self,
        stream: TcpStream,
        poller: &Poller,
        counters: &mut Counters,
    ) -> Option<Caller> {
        let mut evicted = None;
        if self.connections.len() >= MAX_CALLERS {
            counters.connections_refused += 1;
            // Whoever connected and said nothing must not keep clients out.
            let idle =
                |(_, connection): &(&u64, &Connection)| !connection.greeted || connection.closing;
            let Some(number) = self.connections.iter().find(idle).map(|(number, _)| *number) else {
                refuse(stream);
                return None;
            };
            self.remove(number);
            evicted = Some(Caller(number));
        }
        let number = self.next;
        let ready = stream.set_nonblocking(true).is_ok()
            && stream.set_nodelay(true).is_ok()
            && poller
                .add(&stream, Source::Caller(number), EventFlags::IN | EventFlags::RDHUP)
                .is_ok();
        if ready {
            self.next += 1;
            counters.connections += 1;
            self.connections.insert(number, Connection::new(stream));
        } else {
            counters.connections_refused += 1;
        }
        evicted
    }

    /// Reads and writes what a connection that epoll reported can.
    pub fn handle_ready(
        &mut self,
        number: u64,
        flags: EventFlags,
        poller: &Poller,
        counters: &mut Counters,
        mut take: impl FnMut(Arrived),
    ) {
        if flags.contains(EventFlags::OUT) && !self.write(number, poller, counters) {
            take(Arrived::Gone(Caller(number)));
            return;
        }
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR)
            && !self.read(number, counters, |frame| take(Arrived::Frame(Caller(number), frame)))
        {
            self.remove(number);
            take(Arrived::Gone(Caller(number)));
        }
    }

    /// Reads; false if the connection has ended.
    fn read(&mut self, number: u64, counters: &mut Counters, mut take: impl FnMut(Frame)) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return true;
        };
        let length = match connection.stream.read(&mut self.scratch) {
            Ok(0) => return false,
            Ok(length) => length,
            Err(error) => {
                return matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                );
            }
        };
        if connection.closing {
            return true;
        }
        let before = connection.input.len();
        connection.input.extend_from_slice(&self.scratch[..length]);
        let malformed = loop {
            if !connection.greeted && is_no_greeting(&connection.input) {
                break Some(Malformed::Magic);
            }
            match Frame::take(&mut connection.input) {
                Ok(Some(frame)) => {
                    connection.greeted = true;
                    counters.frames_in += 1;
                    if let Frame::Hello(Hello { version, .. }) = frame
                        && version != PROTOCOL_VERSION
                    {
                        // The stack says farewell; here it is counted.
                        counters.frames_malformed.count(&Malformed::Version { theirs: version });
                    }
                    take(frame);
                }
                Ok(None) => break None,
                Err(malformed) => break Some(malformed),
            }
        };
        self.buffered = self.buffered + connection.input.len() - before;
        if connection.input.is_empty() {
            // Frames share the buffer's memory: an idle connection is to hold none of it.
            connection.input = BytesMut::new();
        }
        if let Some(malformed) = malformed {
            counters.frames_malformed.count(&malformed);
            say_farewell(connection, &malformed.to_string());
            return false;
        }
        if self.buffered > MAX_CALLERS_BYTES {
            counters.connections_refused += 1;
            return false;
        }
        true
    }

    /// Queues a frame; `flush` writes it.
    pub fn push(&mut self, caller: Caller, frame: &Frame) {
        // A client that has gone meanwhile gets nothing, and finds its reply kept.
        if let Some(connection) = self.connections.get_mut(&caller.0)
            && !connection.closing
        {
            let bytes = frame.encode();
            self.buffered += bytes.len();
            connection.output_bytes += bytes.len();
            connection.output.push_back(bytes);
            if !connection.waits_to_write || connection.output_bytes > MAX_CALLER_BACKLOG {
                self.unwritten.push(caller.0);
            }
        }
    }

    /// Ends a connection when all that is queued for it is written.
    pub fn close(&mut self, caller: Caller) {
        if let Some(connection) = self.connections.get_mut(&caller.0) {
            connection.closing = true;
            self.unwritten.push(caller.0);
        }
    }

    /// Writes what was queued. Returns a connection that ended by it; call until none does.
    pub fn flush(&mut self, poller: &Poller, counters: &mut Counters) -> Option<Caller> {
        while let Some(number) = self.unwritten.pop() {
            if self.connections.contains_key(&number) && !self.write(number, poller, counters) {
                return Some(Caller(number));
            }
        }
        None
    }

    /// Writes; false if the connection has ended, and is removed.
    fn write(&mut self, number: u64, poller: &Poller, counters: &mut Counters) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else {
            return true;
        };
        let before = connection.output_bytes;
        let result = connection.write(counters);
        self.buffered -= before - connection.output_bytes;
        let done = connection.output.is_empty();
        let slow = connection.output_bytes > MAX_CALLER_BACKLOG
            || self.buffered > MAX_CALLERS_BYTES && !done;
        if slow {
            counters.clients_slow += 1;
        }
        if result.is_err() || slow || done && connection.closing {
            self.remove(number);
            return false;
        }
        if connection.waits_to_write == done {
            let mut flags = EventFlags::IN | EventFlags::RDHUP;
            flags.set(EventFlags::OUT, !done);
            connection.waits_to_write = !done;
            if poller.modify(&connection.stream, Source::Caller(number), flags).is_err() {
                self.remove(number);
                return false;
            }
        }
        true
    }

    fn remove(&mut self, number: u64) {
        if let Some(connection) = self.connections.remove(&number) {
            self.buffered -= connection.input.len() + connection.output_bytes;
        }
    }
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Connection {
            stream,
            input: BytesMut::new(),
            output: VecDeque::new(),
            output_bytes: 0,
            greeted: false,
            closing: false,
            waits_to_write: false,
        }
    }

    fn write(&mut self, counters: &mut Counters) -> io::Result<()> {
        while !self.output.is_empty() {
            let mut slices = [IoSlice::new(&[]); WRITE_BATCH];
            let count = self.output.len().min(WRITE_BATCH);
            for (slice, bytes) in slices.iter_mut().zip(&self.output) {
                *slice = IoSlice::new(bytes);
            }
            match self.stream.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.written(written, counters),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
}

/// Nobody's memory is given to those who have not introduced themselves: before that the stream
/// must look like a greeting, which is short.
fn is_no_greeting(input: &[u8]) -> bool {
    const LENGTH: std::ops::RangeInclusive<u8> = 0..=64;
    const ZERO: std::ops::RangeInclusive<u8> = 0..=0;
    const HELLO: std::ops::RangeInclusive<u8> = 1..=1;
    let header = [LENGTH, ZERO, ZERO, ZERO, HELLO];
    input.iter().zip(&header).any(|(byte, possible)| !possible.contains(byte))
}

/// The kernel buffers of a stream that is fresh or in trouble take a farewell or do not.
fn say_farewell(connection: &mut Connection, reason: &str) {
    if connection.output.is_empty() {
        let _ = connection.stream.write(&farewell(reason));
    }
}

fn refuse(mut stream: TcpStream) {
    if stream.set_nonblocking(true).is_ok() {
        let reason = format!("this node has {MAX_CALLERS} clients, its limit: use another node");
        let _ = stream.write(&farewell(&reason));
    }
}

fn farewell(reason: &str) -> Bytes {
    Frame::Farewell(Farewell { version: PROTOCOL_VERSION, reason: reason.into() }).encode()
}

fn matters_to_all(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}
