//! Counts of what others did that was refused.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::refusal::Refusal;

/// Connections of others that came to no link, by reason, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that others have begun.
    pub entered: u64,
    /// Those whose handshake failed, or that ended before they were a link's.
    pub left: u64,
    /// Those that had to go so that others could come in.
    pub crowded: u64,
    /// Those of links that are more than may be accepted.
    pub full: u64,
    /// Those whose certificate is genuine and not let in.
    pub unwelcome: u64,
    /// Those whose link has one of their class, or another owner.
    pub twice: u64,
    /// Those that did not say in time what they are, or whose link did not become whole.
    pub late: u64,
    /// Those that sent bytes that the protocol does not have, those of links included.
    pub malformed: u64,
}

/// The counters in force.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub entered: AtomicU64,
    pub left: AtomicU64,
    pub crowded: AtomicU64,
    full: AtomicU64,
    unwelcome: AtomicU64,
    twice: AtomicU64,
    late: AtomicU64,
    pub malformed: AtomicU64,
}

impl Tally {
    pub fn refused(&self, refusal: Refusal) {
        count(match refusal {
            Refusal::Crowded => &self.full,
            Refusal::Unwelcome => &self.unwelcome,
            Refusal::Twice => &self.twice,
            Refusal::Late => &self.late,
            Refusal::Unreadable => &self.malformed,
        });
    }

    pub fn read(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            entered: read(&self.entered),
            left: read(&self.left),
            crowded: read(&self.crowded),
            full: read(&self.full),
            unwelcome: read(&self.unwelcome),
            twice: read(&self.twice),
            late: read(&self.late),
            malformed: read(&self.malformed),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
