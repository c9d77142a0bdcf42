//! Waiting for sockets: epoll, level-triggered.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

pub(crate) use rustix::event::epoll::EventFlags;

/// The owner of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Other threads have something for this one.
    Waker,
    /// New TCP connections.
    Listener,
    /// The UDP socket at this place.
    Datagrams(usize),
    /// A TCP connection.
    Stream(u64),
}

const KIND_SHIFT: u32 = 56;

impl Source {
    fn to_word(self) -> u64 {
        let (kind, number) = match self {
            Source::Waker => (0, 0),
            Source::Listener => (1, 0),
            Source::Datagrams(place) => (2, place as u64),
            Source::Stream(number) => (3, number),
        };
        kind << KIND_SHIFT | number
    }

    fn from_word(word: u64) -> Source {
        let number = word & ((1 << KIND_SHIFT) - 1);
        match word >> KIND_SHIFT {
            0 => Source::Waker,
            1 => Source::Listener,
            2 => Source::Datagrams(number as usize),
            _ => Source::Stream(number),
        }
    }
}

/// An epoll instance. A socket that is not read to the end is reported again.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
}

/// Descriptors reported by one wait; the rest comes with the next.
const BATCH: usize = 128;

impl Poller {
    pub fn new() -> Result<Poller, Errno> {
        Ok(Poller { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    pub fn add(&self, fd: impl AsFd, source: Source, flags: EventFlags) -> Result<(), Errno> {
        epoll::add(&self.epoll, fd, epoll::EventData::new_u64(source.to_word()), flags)
    }

    pub fn modify(&self, fd: impl AsFd, source: Source, flags: EventFlags) -> Result<(), Errno> {
        epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(source.to_word()), flags)
    }

    /// Waits until something is ready or `due` has come, and appends what is ready.
    pub fn wait(
        &self,
        now: Instant,
        due: Option<Instant>,
        ready: &mut Vec<(Source, EventFlags)>,
    ) -> Result<(), Errno> {
        let timeout = due.map(|due| timespec(due.saturating_duration_since(now)));
        let mut room = [MaybeUninit::uninit(); BATCH];
        let events = match epoll::wait(&self.epoll, &mut room, timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error),
        };
        let source = |event: &epoll::Event| (Source::from_word(event.data.u64()), event.flags);
        ready.extend(events.iter().map(source));
        Ok(())
    }
}

fn timespec(span: Duration) -> Timespec {
    // Some hours are enough for any wait.
    let seconds = span.as_secs().min(10_000);
    Timespec { tv_sec: seconds as i64, tv_nsec: i64::from(span.subsec_nanos()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_survives_its_word() {
        for source in
            [Source::Waker, Source::Listener, Source::Datagrams(1), Source::Stream(1 << 40)]
        {
            assert_eq!(Source::from_word(source.to_word()), source);
        }
    }
}
