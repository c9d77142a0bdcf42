//! Links' connections over TCP, with TLS or bare.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tls::Records;

use crate::class::Pipe;
use crate::flow::Flow;
use crate::news::News;
use crate::poller::{EventFlags, Poller, Source};
use crate::security::InForce;

mod stream;

use stream::Stream;

/// Bytes read from a connection at a time, and before the others have their turn.
const READ: usize = 64 << 10;

/// Connections accepted before the others have their turn.
const ACCEPT_BATCH: usize = 16;

/// How long to wait for descriptors to become free when the system has none left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the other host may be silent when it should confirm something.
const UNCONFIRMED: Duration = Duration::from_secs(5);

/// An idle connection is asked so often whether it lives, as QUIC's are.
const ASK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Tcp {
    listener: Option<TcpListener>,
    /// It rests while the system has no descriptors: epoll would report it without end.
    rests_until: Option<Instant>,
    streams: BTreeMap<u64, Stream>,
    /// Streams with something to write, by urgency.
    dirty: BTreeSet<(u8, u64)>,
    next: u64,
    scratch: Box<[u8]>,
}

impl Tcp {
    pub fn new(listener: Option<TcpListener>, poller: &Poller) -> io::Result<Tcp> {
        if let Some(listener) = &listener {
            listener.set_nonblocking(true)?;
            poller.add(listener, Source::Listener, EventFlags::IN)?;
        }
        let (streams, dirty) = Default::default();
        let scratch = vec![0; READ].into();
        Ok(Tcp { listener, rests_until: None, streams, dirty, next: 0, scratch })
    }

    /// Begins a connection. It is open when the news say so.
    pub fn open(
        &mut self,
        to: SocketAddr,
        records: Option<Records>,
        poller: &Poller,
    ) -> io::Result<Pipe> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&to.into()) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => Err(error),
            _ => self.insert(socket.into(), true, records, poller),
        }
    }

    fn insert(
        &mut self,
        socket: TcpStream,
        connecting: bool,
        records: Option<Records>,
        poller: &Poller,
    ) -> io::Result<Pipe> {
        prepare(&socket)?;
        let number = self.next;
        self.next += 1;
        let flags = if connecting { EventFlags::OUT } else { Stream::READ };
        poller.add(&socket, Source::Stream(number), flags)?;
        self.streams.insert(number, Stream::new(socket, connecting, records));
        Ok(Pipe::tcp(number))
    }

    /// Takes in those who have come, up to a batch.
    pub fn accept(
        &mut self,
        now: Instant,
        trust: Option<&InForce>,
        poller: &Poller,
        news: &mut Vec<News>,
    ) {
        for _ in 0..ACCEPT_BATCH {
            let Some(listener) = &self.listener else { return };
            let (socket, from) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matters_to_all(&error) => {
                    tracing::warn!(%error, "no more links for now: raise the limit of open files");
                    let _ = poller.modify(listener, Source::Listener, EventFlags::empty());
                    self.rests_until = Some(now + ACCEPT_PAUSE);
                    return;
                }
                // This one connection ended before it was accepted.
                Err(_) => continue,
            };
            let records = match trust.map(|trust| trust.get().accept()).transpose() {
                Ok(records) => records,
                Err(_) => continue,
            };
            let bare = records.is_none();
            let prepared = socket.set_nonblocking(true);
            if let Ok(pipe) = prepared.and_then(|()| self.insert(socket, false, records, poller)) {
                news.push(News::Entered(pipe, from));
                if bare {
                    news.push(News::Open(pipe, None));
                }
            }
        }
    }

    /// Reads and writes what a connection that epoll reported can.
    pub fn handle_ready(&mut self, number: u64, flags: EventFlags, news: &mut Vec<News>) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let pipe = Pipe::tcp(number);
        let result =
            stream.go_on(flags, &mut self.scratch, |happened| news.push(happened.of(pipe)));
        self.dirty.insert((stream.rank, number));
        if let Err(down) = result {
            news.push(News::Ended(pipe, down));
        }
    }

    pub fn flow(&mut self, number: u64) -> Option<&mut Flow> {
        Some(&mut self.streams.get_mut(&number)?.flow)
    }

    /// Something was put into the output.
    pub fn touch(&mut self, number: u64) {
        if let Some(stream) = self.streams.get(&number) {
            self.dirty.insert((stream.rank, number));
        }
    }

    /// Those of a smaller rank write first.
    pub fn rank(&mut self, number: u64, rank: u8) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.rank = rank;
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self, poller: &Poller) {
        while let Some((_, number)) = self.dirty.pop_first() {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            stream.write();
            let flags = stream.flags();
            if stream.asked != flags {
                stream.asked = flags;
                let _ = poller.modify(&stream.socket, Source::Stream(number), flags);
            }
        }
    }

    /// Ends a connection, with a last byte if there is one to say.
    pub fn close(&mut self, number: u64, last: Option<u8>) {
        if let Some(mut stream) = self.streams.remove(&number) {
            stream.say_goodbye(last);
        }
    }

    /// When [`resume`](Tcp::resume) is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.rests_until
    }

    /// Accepts again after a rest.
    pub fn resume(&mut self, now: Instant, poller: &Poller) {
        if let Some(listener) = &self.listener
            && self.rests_until.is_some_and(|until| until <= now)
        {
            let again = poller.modify(listener, Source::Listener, EventFlags::IN);
            self.rests_until = again.is_err().then_some(now + ACCEPT_PAUSE);
        }
    }
}

/// Makes a connection prompt, and has its end noticed if its host just vanishes.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new().with_time(ASK_EVERY).with_interval(ASK_EVERY).with_retries(5),
    )?;
    socket.set_tcp_user_timeout(Some(UNCONFIRMED))
}

/// Not this one connection's trouble, but that of the whole process or host.
fn matters_to_all(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_vanishes_is_noticed() {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        prepare(&stream).unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap() && stream.nodelay().unwrap());
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNCONFIRMED));
    }
}
