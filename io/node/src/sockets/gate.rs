//! The gate: clients that connect over TLS shake hands here before they are admitted.
//!
//! It has a thread of its own, because a handshake takes as long as some hundred calls, and the
//! other side may delay it. The number and the time of handshakes are bounded; at the bound, the
//! most crowding visitors are dropped. Admitted connections are open, and known by name.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use admin::status::HandshakeCounters;
use os::clock::{monotonic, timeout};
use os::threads;
use os::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tls::Server;
use wire::Time;
use wire::limits::MAX_HANDSHAKES;

use super::listener::{ACCEPT_PAUSE, matters_to_all, prepare};

mod manners;
mod tally;
mod waiting;

pub(crate) use manners::{Guest, Manners};
pub(crate) use tally::Tally;
use tally::count;
use waiting::{Verdict, Waiting};

/// Connections accepted before those at the gate have their turn.
const ACCEPT_BATCH: usize = 16;

/// Bytes read at a time: a client's flight with its chain, and its first words.
const READ: usize = 16 << 10;

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
        let porter = Porter {
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
        let thread = threads::spawn("steadfast gate", move || porter.run())?;
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

/// The gate's thread.
struct Porter {
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

impl Porter {
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
                Err(error) if matters_to_all(&error) => {
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
        let (Ok(()), Ok(records)) = (prepare(&stream), self.server.accept()) else { return };
        let visitor = Waiting::new(stream, records, address, monotonic());
        self.visitors.insert(self.next, visitor);
        self.next += 1;
    }

    fn make_room(&mut self) {
        let origins = self.visitors.iter().map(|(number, visitor)| (*number, visitor.origin));
        if let Some(number) = most_crowding(origins) {
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
                let Some(peer) = visitor.records.peer() else { return true };
                count(&self.tally.done);
                if visitor.records.was_resumed() {
                    count(&self.tally.resumed);
                }
                let Waiting { stream, records, input, .. } = visitor;
                (self.manners.admit)(Guest { stream, records, input, peer })
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

/// Crowding visitors compete among themselves. This is the oldest visitor of all origins that have
/// the most visitors. Visitors are given in order of age.
fn most_crowding(visitors: impl Iterator<Item = (u64, u128)> + Clone) -> Option<u64> {
    let mut counts: BTreeMap<u128, usize> = BTreeMap::new();
    for (_, origin) in visitors.clone() {
        *counts.entry(origin).or_default() += 1;
    }
    let most = counts.values().max().copied();
    visitors
        .into_iter()
        .find(|(_, origin)| counts.get(origin).copied() == most)
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_crowds_the_gate_makes_room_himself_and_no_address_is_worse_than_another() {
        let crowd = [(1, 9), (2, 5), (3, 7), (4, 5), (5, 9), (6, 5)];
        assert_eq!(most_crowding(crowd.into_iter()), Some(2), "the oldest of the busiest origin");
        let each_alone = [(1, 3), (2, 9), (3, 5)];
        assert_eq!(most_crowding(each_alone.into_iter()), Some(1), "not whose address is largest");
        let two_alike = [(1, 3), (2, 9), (3, 7), (4, 9), (5, 7)];
        assert_eq!(most_crowding(two_alike.into_iter()), Some(2));
        assert_eq!(most_crowding([].into_iter()), None);
    }
}
