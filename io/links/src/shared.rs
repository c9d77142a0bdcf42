//! The things that handles and the links' thread share: commands, and meters of what waits.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use bytes::Bytes;
use os::waker::Waker;
use wire::limits::MAX_CLASS_BACKLOG;

use crate::class::{CLASSES, Class, LinkId};
use crate::counters::Tally;
use crate::error::SendError;
use crate::flow::Meter;
use crate::framing::HEADER;
use crate::security::Expect;

/// Something to do for the thread.
#[derive(Debug)]
pub(crate) enum Command {
    Dial { link: LinkId, to: Vec<SocketAddr>, expect: Option<Expect>, patience: Option<Duration> },
    Send { link: LinkId, class: Class, message: Bytes },
    Close(LinkId),
}

/// The meters of a link's classes: bytes that wait.
pub(crate) type Gauge = [Meter; CLASSES];

/// The things that both sides have.
#[derive(Debug)]
pub(crate) struct Shared {
    commands: Mutex<Vec<Command>>,
    /// Links that messages may be sent on.
    gauges: Mutex<BTreeMap<LinkId, Gauge>>,
    next: AtomicU64,
    closed: AtomicBool,
    thread: OnceLock<ThreadId>,
    pub waker: Waker,
    pub tally: Tally,
}

impl Shared {
    pub fn new() -> std::io::Result<Shared> {
        Ok(Shared {
            commands: Mutex::default(),
            gauges: Mutex::default(),
            next: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            thread: OnceLock::new(),
            waker: Waker::new()?,
            tally: Tally::default(),
        })
    }

    pub fn new_link(&self) -> LinkId {
        LinkId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Messages may be sent on this link.
    pub fn open(&self, link: LinkId, gauge: Gauge) {
        lock(&self.gauges).insert(link, gauge);
    }

    /// Nothing is sent on this link any more.
    pub fn shut(&self, link: LinkId) {
        lock(&self.gauges).remove(&link);
    }

    /// Makes room for a message of this length, which will wait.
    ///
    /// # Errors
    /// The link is not there, or so much waits that there is no room.
    pub fn reserve(&self, link: LinkId, class: Class, length: usize) -> Result<(), SendError> {
        let gauges = lock(&self.gauges);
        let meter = &gauges.get(&link).ok_or(SendError::Gone)?[class.index()];
        let more = HEADER + length;
        if meter.fetch_add(more, Ordering::Relaxed) + more > MAX_CLASS_BACKLOG {
            meter.fetch_sub(more, Ordering::Relaxed);
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// The meters of a link that is there.
    pub fn gauge(&self, link: LinkId) -> Option<Gauge> {
        lock(&self.gauges).get(&link).cloned()
    }

    /// This thread needs no waking: it looks for commands before it waits.
    pub fn belong_to_this_thread(&self) {
        let _ = self.thread.set(thread::current().id());
    }

    /// Hands something over to the thread.
    pub fn command(&self, command: Command) {
        lock(&self.commands).push(command);
        if self.thread.get() != Some(&thread::current().id()) {
            self.waker.wake();
        }
    }

    /// The commands since the last time, put into an empty list.
    pub fn take_commands(&self, commands: &mut Vec<Command>) {
        std::mem::swap(&mut *lock(&self.commands), commands);
    }

    /// The last handle goes.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// The last handle is gone.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
