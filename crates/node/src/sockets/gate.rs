//! The gate: where whoever connects over TLS shakes hands before it comes in.
//!
//! A thread of its own, because a handshake takes as long as some hundred calls and the other side may
//! take its time. How many shake hands at once, and for how long, is bounded; at the bound those go
//! that crowd the gate most. What is handed in is open, and known by name.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tls::{Identity, Records, Server, Visitor};
use wire::limits::MAX_HANDSHAKES;
use wire::{Duration, Time};

use crate::poller::Waker;
use crate::status::HandshakeCounters;
use crate::timer::{monotonic, timeout};

/// A handshake that is not over after this long never will be: clients give up after a second.
const SHAKE_WITHIN: Duration = Duration::from_secs(2);

/// How long whoever was refused may take to read why.
const LINGER: Duration = Duration::from_secs(1);

/// Connections accepted before those at the gate have their turn.
const ACCEPT_BATCH: usize = 16;

/// How long to wait for descriptors to become free when the system has none left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bytes read at a time: a client's flight with its chain, and its first words.
const READ: usize = 16 << 10;

/// The first byte of whoever begins with TLS (RFC 8446, 5.1: a handshake record).
const TLS: u8 = 22;

/// A connection that has come through.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Nonblocking.
    pub stream: TcpStream,
    pub records: Box<Records>,
    /// What came behind the handshake already.
    pub input: BytesMut,
    /// Whom its certificate is for.
    pub identity: Identity,
}

/// How a gate differs from another.
pub(crate) struct Manners {
    /// Gives a guest to whoever serves it; false when nobody does any more.
    pub admit: Box<dyn FnMut(Guest) -> bool + Send>,
    /// The last words to whoever is refused, in the port's own protocol.
    pub farewell: fn(&str) -> Bytes,
}

/// What the gate has counted, for other threads to read.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    done: AtomicU64,
    resumed: AtomicU64,
    plaintext: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
    crowded: AtomicU64,
}

impl Tally {
    pub fn read(&self) -> HandshakeCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HandshakeCounters {
            done: read(&self.done),
            resumed: read(&self.resumed),
            plaintext: read(&self.plaintext),
            failed: read(&self.failed),
            refused: read(&self.refused),
            late: read(&self.late),
            crowded: read(&self.crowded),
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A gate that is open. It closes when this is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    address: SocketAddr,
    tally: Arc<Tally>,
    closed: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Gate {
    pub fn open(listener: TcpListener, server: Server, manners: Manners) -> io::Result<Gate> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let waker = Arc::new(Waker::new()?);
        let (tally, closed) = <(Arc<Tally>, Arc<AtomicBool>)>::default();
        let keeper = Keeper {
            listener,
            server,
            manners,
            waker: waker.clone(),
            closed: closed.clone(),
            tally: tally.clone(),
            visitors: BTreeMap::new(),
            next: 0,
            paused_until: Time::ZERO,
            scratch: vec![0; READ].into(),
        };
        let thread =
            thread::Builder::new().name("steadfast gate".into()).spawn(move || keeper.run())?;
        Ok(Gate { address, tally, closed, waker, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn tally(&self) -> Arc<Tally> {
        self.tally.clone()
    }

    pub fn counters(&self) -> HandshakeCounters {
        self.tally.read()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
        // When a node has stopped, another may listen here.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Somebody at the gate.
#[derive(Debug)]
struct Waiting {
    stream: TcpStream,
    records: Box<Records>,
    input: BytesMut,
    /// Where from: handshakes under way are counted by it.
    origin: u128,
    until: Time,
    /// Bytes have come.
    begun: bool,
    /// It was refused: what is left of this in plain bytes, then it only has to read it.
    leaving: bool,
    last_words: Bytes,
    silent: bool,
}

/// What is to become of a visitor.
enum Verdict {
    Stay,
    Enter,
    Go,
}

/// The gate's thread.
struct Keeper {
    listener: TcpListener,
    server: Server,
    manners: Manners,
    waker: Arc<Waker>,
    closed: Arc<AtomicBool>,
    tally: Arc<Tally>,
    visitors: BTreeMap<u64, Waiting>,
    next: u64,
    paused_until: Time,
    scratch: Box<[u8]>,
}

impl Keeper {
    fn run(mut self) {
        while !self.closed.load(Ordering::Acquire) {
            let (accept, ready) = self.wait();
            self.waker.lower();
            // Those who are nearly through before those who are new.
            for number in ready {
                if !self.serve(number) {
                    return;
                }
            }
            if accept {
                self.accept();
            }
            self.dismiss_late();
        }
    }

    /// Waits. Gives whether there is somebody new, and who of the others has moved.
    fn wait(&self) -> (bool, Vec<u64>) {
        let now = monotonic();
        let paused = self.paused_until > now;
        let mut fds = vec![PollFd::from_borrowed_fd(self.waker.as_fd(), PollFlags::IN)];
        let accept = if paused { PollFlags::empty() } else { PollFlags::IN };
        fds.push(PollFd::from_borrowed_fd(self.listener.as_fd(), accept));
        for visitor in self.visitors.values() {
            let write = if visitor.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(visitor.stream.as_fd(), PollFlags::IN | write));
        }
        let pause = paused.then_some(self.paused_until);
        let due = self.visitors.values().map(|visitor| visitor.until).chain(pause).min();
        let limit: Option<Timespec> = due.map(|due| timeout(now, due));
        if poll(&mut fds, limit.as_ref()).is_err() {
            return (false, Vec::new());
        }
        let moved = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let numbers = self.visitors.keys().zip(&fds[2..]);
        (moved(&fds[1]), numbers.filter(|(_, fd)| moved(fd)).map(|(number, _)| *number).collect())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept() {
                Ok((stream, address)) => self.receive(stream, address.ip()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if super::tcp::matters_to_all(&error) => {
                    tracing::warn!(%error, "no more clients for now: raise the limit of open files");
                    self.paused_until = monotonic() + ACCEPT_PAUSE;
                    return;
                }
                // This one connection ended before it was accepted.
                Err(_) => {}
            }
        }
    }

    fn receive(&mut self, stream: TcpStream, address: IpAddr) {
        if self.visitors.len() >= MAX_HANDSHAKES {
            self.make_room();
        }
        let ready = stream.set_nonblocking(true).is_ok() && stream.set_nodelay(true).is_ok();
        let (true, Ok(records)) = (ready, self.server.accept()) else { return };
        let visitor = Waiting {
            stream,
            records: Box::new(records),
            input: BytesMut::new(),
            origin: origin(address),
            until: monotonic() + SHAKE_WITHIN,
            begun: false,
            leaving: false,
            last_words: Bytes::new(),
            silent: false,
        };
        self.visitors.insert(self.next, visitor);
        self.next += 1;
    }

    /// Whoever crowds the gate competes with himself: of the origin with most, the oldest goes.
    fn make_room(&mut self) {
        let mut counts: BTreeMap<u128, usize> = BTreeMap::new();
        for visitor in self.visitors.values() {
            *counts.entry(visitor.origin).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(_, count)| **count).map(|(origin, _)| *origin);
        let of_most = |(_, visitor): &(&u64, &Waiting)| Some(visitor.origin) == most;
        if let Some(number) = self.visitors.iter().find(of_most).map(|(number, _)| *number) {
            self.visitors.remove(&number);
            count(&self.tally.crowded);
        }
    }

    /// Lets a visitor go on. False when nobody serves guests any more.
    fn serve(&mut self, number: u64) -> bool {
        let Some(visitor) = self.visitors.get_mut(&number) else { return true };
        let verdict = visitor.go_on(&mut self.scratch, &self.server, &self.tally, &self.manners);
        match verdict {
            Verdict::Stay => true,
            Verdict::Go => {
                self.visitors.remove(&number);
                true
            }
            Verdict::Enter => {
                let visitor = self.visitors.remove(&number).expect("it was just here");
                let Some(identity) = visitor.records.identity() else { return true };
                count(&self.tally.done);
                if visitor.records.was_resumed() {
                    count(&self.tally.resumed);
                }
                let Waiting { stream, records, input, .. } = visitor;
                (self.manners.admit)(Guest { stream, records, input, identity })
            }
        }
    }

    fn dismiss_late(&mut self) {
        let now = monotonic();
        let tally = &self.tally;
        self.visitors.retain(|_, visitor| {
            if visitor.until <= now && !visitor.leaving {
                count(&tally.late);
            }
            visitor.until > now
        });
    }
}

impl Waiting {
    fn wants_to_write(&self) -> bool {
        self.records.wants_to_write() || !self.last_words.is_empty()
    }

    fn go_on(
        &mut self,
        scratch: &mut [u8],
        server: &Server,
        tally: &Tally,
        manners: &Manners,
    ) -> Verdict {
        let read = match self.stream.read(scratch) {
            Ok(0) => {
                if !self.leaving {
                    count(&tally.failed);
                }
                return Verdict::Go;
            }
            Ok(length) => &scratch[..length],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => &[],
            Err(_) => return Verdict::Go,
        };
        if !read.is_empty() && !self.leaving {
            self.take(read, server, tally, manners);
        }
        if self.write().is_err() {
            return Verdict::Go;
        }
        if self.leaving && !self.wants_to_write() && !self.silent {
            // The connection is closed by the other side, or later: what it still sends must not
            // make its host throw away our last words.
            self.silent = true;
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        if !self.leaving && self.records.is_open() { Verdict::Enter } else { Verdict::Stay }
    }

    fn take(&mut self, read: &[u8], server: &Server, tally: &Tally, manners: &Manners) {
        if !self.begun && read[0] != TLS {
            count(&tally.plaintext);
            self.last_words = (manners.farewell)(
                "this node takes TLS only: give the client the cluster's authority and a certificate \
                 (`steadfast init --client NAME` makes one; `--tls DIR` or Client::builder use it)",
            );
            return self.leave();
        }
        self.begun = true;
        let input = &mut self.input;
        if let Err(error) = self.records.receive(read, |plain| input.extend_from_slice(plain)) {
            count(&tally.failed);
            tracing::debug!(peer = ?self.stream.peer_addr().ok(), %error, "a TLS handshake failed");
            // What waits to be written says it to the other side.
            return self.leave();
        }
        if self.records.is_open()
            && let Visitor::Refused(why) = server.admit(&self.records)
        {
            count(&tally.refused);
            tracing::info!(peer = ?self.stream.peer_addr().ok(), why, "a connection is refused");
            let words = (manners.farewell)(&why);
            self.records.seal(&[io::IoSlice::new(&words)]);
            self.records.say_goodbye();
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.leaving = true;
        self.until = monotonic() + LINGER;
    }

    fn write(&mut self) -> io::Result<()> {
        let result = self.write_some();
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }

    fn write_some(&mut self) -> io::Result<()> {
        while !self.last_words.is_empty() {
            let written = self.stream.write(&self.last_words)?;
            let _ = self.last_words.split_to(written);
        }
        while self.records.wants_to_write() {
            self.records.write(&mut self.stream)?;
        }
        Ok(())
    }
}

/// Whoever has one IPv6 address has the other 2^64 of its network too (RFC 6177).
fn origin(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() >> 64 << 64,
    }
}
