//! A way for other threads to end a wait.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// Wakes the thread that waits for its descriptor; many wake-ups before that looks cost one.
#[derive(Debug)]
pub struct Waker {
    eventfd: OwnedFd,
    raised: AtomicBool,
}

impl Waker {
    /// Makes one that is not raised.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> Result<Waker, Errno> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker { eventfd, raised: AtomicBool::new(false) })
    }

    /// Call after the thing to look at is in its queue.
    pub fn wake(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow: it is 0 or 1.
            let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
        }
    }

    /// Call before looking into the queues.
    pub fn lower(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.eventfd, &mut count);
        // A swap, not a store: it must see what was queued before the last wake-up.
        self.raised.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}
