//! Waiting for sockets: epoll.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use os::clock;
use rustix::event::epoll;
use rustix::io::Errno;
use wire::Time;

pub(crate) use rustix::event::epoll::EventFlags;

/// The owner of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Other threads have something for the data plane.
    Waker,
    /// A link's socket for datagrams of senders without a socket of their own.
    Strangers(usize),
    /// A link's socket for the node at this place.
    Peer { link: usize, place: usize },
    /// New clients.
    Clients,
    /// A client's connection.
    Caller(u64),
    /// New liveness connections of other nodes, by this link.
    Watchers(usize),
    /// Another node's liveness connection to this one.
    Watcher(u64),
    /// This node's liveness connection to a peer.
    Watched(usize),
    /// A program that serves a replica.
    Program(u64),
}

impl Source {
    /// The ring's own: it must not wait behind any number of clients.
    fn is_urgent(self) -> bool {
        matches!(self, Source::Strangers(_) | Source::Peer { .. })
    }
}

const KIND_SHIFT: u32 = 56;
const LINK_SHIFT: u32 = 32;

impl Source {
    fn to_word(self) -> u64 {
        let (kind, number) = match self {
            Source::Waker => (0, 0),
            Source::Strangers(link) => (1, link as u64),
            Source::Peer { link, place } => (2, (link as u64) << LINK_SHIFT | place as u64),
            Source::Clients => (3, 0),
            Source::Caller(number) => (4, number),
            Source::Watchers(link) => (5, link as u64),
            Source::Watcher(number) => (6, number),
            Source::Watched(index) => (7, index as u64),
            Source::Program(serial) => (8, serial),
        };
        kind << KIND_SHIFT | number
    }

    fn from_word(word: u64) -> Source {
        let number = word & ((1 << KIND_SHIFT) - 1);
        match word >> KIND_SHIFT {
            0 => Source::Waker,
            1 => Source::Strangers(number as usize),
            2 => {
                let link = (number >> LINK_SHIFT) as usize;
                Source::Peer { link, place: (number & ((1 << LINK_SHIFT) - 1)) as usize }
            }
            3 => Source::Clients,
            4 => Source::Caller(number),
            5 => Source::Watchers(number as usize),
            6 => Source::Watcher(number),
            7 => Source::Watched(number as usize),
            _ => Source::Program(number),
        }
    }
}

/// An epoll instance. Level-triggered: a socket that is not read to the end is reported again.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Sources that are looked at whenever more is ready than one wait reports.
    urgent: RefCell<Vec<Source>>,
}

/// Descriptors reported by one wait; the rest comes with the next.
const BATCH: usize = 128;

impl Poller {
    pub fn new() -> Result<Poller, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Poller { epoll, urgent: RefCell::default() })
    }

    pub fn add(&self, fd: impl AsFd, source: Source, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(source.to_word()), flags)?;
        // A node that comes back has a socket at the same place.
        let mut urgent = self.urgent.borrow_mut();
        if source.is_urgent() && !urgent.contains(&source) {
            urgent.push(source);
        }
        Ok(())
    }

    pub fn remove(&self, fd: impl AsFd) {
        // It cannot fail for a descriptor that was added.
        let _ = epoll::delete(&self.epoll, fd);
    }

    pub fn modify(&self, fd: impl AsFd, source: Source, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(source.to_word()), flags)
    }

    /// Waits until something is ready or `due` has come, and appends what is ready to `ready`. If
    /// that is more than is reported at once, the ring's sockets come first, ready or not: a turn
    /// full of clients must not end without a look at them, as timers that accuse others come next.
    pub fn wait(
        &self,
        now: Time,
        due: Time,
        ready: &mut Vec<(Source, EventFlags)>,
    ) -> Result<(), Errno> {
        let timeout = (due != Time::FAR).then(|| clock::timeout(now, due));
        self.collect(timeout.as_ref(), ready)
    }

    /// Appends what is ready now to `ready`.
    pub fn look(&self, ready: &mut Vec<(Source, EventFlags)>) -> Result<(), Errno> {
        self.collect(Some(&clock::timeout(Time::ZERO, Time::ZERO)), ready)
    }

    fn collect(
        &self,
        timeout: Option<&rustix::event::Timespec>,
        ready: &mut Vec<(Source, EventFlags)>,
    ) -> Result<(), Errno> {
        let mut room = [MaybeUninit::uninit(); BATCH];
        let events = match epoll::wait(&self.epoll, &mut room, timeout) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error),
        };
        if events.len() == BATCH {
            let urgent = self.urgent.borrow();
            ready.extend(urgent.iter().map(|source| (*source, EventFlags::IN)));
        }
        let source = |event: &epoll::Event| (Source::from_word(event.data.u64()), event.flags);
        ready.extend(events.iter().map(source));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use os::waker::Waker;

    use super::*;

    #[test]
    fn a_source_survives_its_word() {
        for source in [
            Source::Waker,
            Source::Strangers(1),
            Source::Peer { link: 3, place: 63 },
            Source::Clients,
            Source::Caller(1 << 40),
            Source::Watchers(2),
            Source::Watcher(7),
            Source::Watched(0),
            Source::Program(3),
        ] {
            assert_eq!(Source::from_word(source.to_word()), source);
        }
    }

    #[test]
    fn another_thread_wakes_a_wait_without_end() {
        let poller = Poller::new().unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        poller.add(&*waker, Source::Waker, EventFlags::IN).unwrap();
        let thread = std::thread::spawn({
            let waker = waker.clone();
            move || waker.wake()
        });
        let mut ready = Vec::new();
        poller.wait(Time::ZERO, Time::FAR, &mut ready).unwrap();
        assert_eq!(ready, [(Source::Waker, EventFlags::IN)]);
        thread.join().unwrap();
        waker.lower();
        ready.clear();
        poller.wait(Time::ZERO, Time::ZERO, &mut ready).unwrap();
        assert_eq!(ready, [], "a lowered waker is silent");
    }

    #[test]
    fn the_ring_does_not_wait_behind_a_crowd_of_clients() {
        let poller = Poller::new().unwrap();
        let raised = || {
            let waker = Waker::new().unwrap();
            waker.wake();
            waker
        };
        let crowd: Vec<Waker> = (0..3 * BATCH).map(|_| raised()).collect();
        for (number, client) in crowd.iter().enumerate() {
            poller.add(client, Source::Caller(number as u64), EventFlags::IN).unwrap();
        }
        let (peer, socket) = (Source::Peer { link: 0, place: 5 }, raised());
        poller.add(&socket, peer, EventFlags::IN).unwrap();
        let mut ready = Vec::new();
        poller.wait(Time::ZERO, Time::FAR, &mut ready).unwrap();
        assert_eq!((ready[0].0, ready.len()), (peer, BATCH + 1));
    }

    #[test]
    fn a_wait_ends_when_due_and_not_before() {
        let poller = Poller::new().unwrap();
        let start = clock::monotonic();
        let due = start + wire::Duration::from_micros(200);
        poller.wait(start, due, &mut Vec::new()).unwrap();
        assert!(clock::monotonic() >= due);
    }
}
