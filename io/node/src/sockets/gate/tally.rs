//! Counts of the fates of visitors at a gate, for other threads to read.

use std::sync::atomic::{AtomicU64, Ordering};

use admin::status::HandshakeCounters;

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub done: AtomicU64,
    pub resumed: AtomicU64,
    pub plaintext: AtomicU64,
    pub failed: AtomicU64,
    pub refused: AtomicU64,
    pub late: AtomicU64,
    pub crowded: AtomicU64,
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

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
