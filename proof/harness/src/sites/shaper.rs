//! The network between sites: a thread that takes each packet out of one site, and gives it to
//! another after a delay.
//!
//! Packets between two sites stay in order: each pair has a queue of its own.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use node::realtime::fifo;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

use super::rules::{Ends, Rules};
use crate::Outcome;

/// The largest packet.
const PACKET: usize = 65_536;

/// Packets that are taken from a site before the others have their turn.
const TURN: usize = 64;

/// The network's thread goes before those of the hosts: a real network has no load of theirs.
const PRIORITY: u8 = 5;

/// A place of no site: the thread is to end.
const END: u64 = u64::MAX;

/// A handle of the thread, which ends with it.
pub struct Shaper {
    rules: Arc<Mutex<Rules>>,
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// One way between two sites.
type Queue = VecDeque<(Instant, Ends, Vec<u8>)>;

struct Network {
    sites: Vec<File>,
    queues: BTreeMap<(usize, usize), Queue>,
    rules: Arc<Mutex<Rules>>,
    poller: OwnedFd,
}

impl Shaper {
    /// Between the sites whose packets these files have.
    pub(super) fn start(sites: Vec<File>, delay: Duration) -> Outcome<Shaper> {
        let rules = Arc::new(Mutex::new(Rules { delay, ..Rules::default() }));
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let poller = epoll::create(CreateFlags::CLOEXEC)?;
        for (place, site) in (0..).zip(&sites) {
            epoll::add(&poller, site.as_fd(), EventData::new_u64(place), EventFlags::IN)?;
        }
        epoll::add(&poller, end.as_fd(), EventData::new_u64(END), EventFlags::IN)?;
        let network = Network { sites, queues: BTreeMap::new(), rules: rules.clone(), poller };
        let thread = thread::Builder::new().name("shaper".into()).spawn(move || {
            // Without the permission delays are longer where processors are busy.
            fifo(PRIORITY);
            if let Err(error) = network.carry() {
                eprintln!("the network between sites has ended: {error}");
            }
        })?;
        Ok(Shaper { rules, end, thread: Some(thread) })
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        // It cannot be full.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Network {
    fn carry(mut self) -> Outcome<()> {
        let mut events = Vec::with_capacity(self.sites.len() + 1);
        let mut buffer = vec![0; PACKET];
        loop {
            self.give(Instant::now())?;
            events.clear();
            let due = self.queues.values().filter_map(|queue| queue.front()).map(|it| it.0).min();
            let left = due.map(|due| due.saturating_duration_since(Instant::now()));
            let left = left.map(Timespec::try_from).transpose()?;
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.poller, room, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                match event.data.u64() {
                    END => return Ok(()),
                    place => self.take(usize::try_from(place)?, &mut buffer)?,
                }
            }
        }
    }

    /// Takes packets that leave a site.
    fn take(&mut self, place: usize, buffer: &mut [u8]) -> Outcome<()> {
        for _ in 0..TURN {
            let length = match self.sites[place].read(buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let packet = &buffer[..length];
            let Some(ends) = Ends::of(packet) else { continue };
            let (_, to) = ends.sites();
            let delay = {
                let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
                if to >= self.sites.len() || !rules.pass(ends) {
                    continue;
                }
                rules.delay
            };
            let queue = self.queues.entry((place, to)).or_default();
            queue.push_back((Instant::now() + delay, ends, packet.to_vec()));
        }
        Ok(())
    }

    /// Gives what is due to its site. A cable that is cut loses what is in it.
    fn give(&mut self, now: Instant) -> Outcome<()> {
        let Network { sites, queues, rules, .. } = self;
        for ((_, to), queue) in queues {
            while queue.front().is_some_and(|(due, ..)| *due <= now)
                && let Some((_, ends, packet)) = queue.pop_front()
            {
                let mut rules = rules.lock().unwrap_or_else(PoisonError::into_inner);
                if !rules.pass(ends) {
                    continue;
                }
                rules.count(ends);
                drop(rules);
                match sites[*to].write(&packet) {
                    Ok(_) => {}
                    // Its queue is full: so networks lose packets.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}
