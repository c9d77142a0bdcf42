//! How recent reads without an order are.

use wire::{Duration, Time};

/// Reads of this node's replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Requests answered by this time were delivered here.
    current: Option<Time>,
    /// Counts reads that replicas here were given.
    executions: u64,
}

impl Reads {
    /// Requests answered by this time were delivered here.
    pub(crate) fn confirm(&mut self, at: Time) {
        self.current = self.current.max(Some(at));
    }

    /// Whether the state here is at most this old.
    pub(crate) fn is_recent(&self, now: Time, most: Duration) -> bool {
        self.current.is_some_and(|at| now.since(at) <= most)
    }

    /// Returns the number of the next read for a replica.
    pub(crate) fn next(&mut self) -> u64 {
        self.executions += 1;
        self.executions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_confirmation_takes_nothing_back() {
        let mut reads = Reads::default();
        let second = Duration::from_secs(1);
        let at = |seconds: u32| Time(1_000_000_000) + second * seconds;
        assert!(!reads.is_recent(at(0), second), "nothing is known");
        reads.confirm(at(5));
        reads.confirm(at(3));
        assert!(reads.is_recent(at(6), second) && !reads.is_recent(at(7), second));
    }
}
