//! How recent reads are that no order was asked for.

use wire::{Duration, Time};

/// Reads of this node's replicas.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// All that was answered by this time was delivered here.
    current: Option<Time>,
    /// Reads that replicas here were given.
    executions: u64,
}

impl Reads {
    /// All that was answered by this time was delivered here.
    pub(crate) fn confirm(&mut self, at: Time) {
        self.current = self.current.max(Some(at));
    }

    /// The state here is at most so old.
    pub(crate) fn is_recent(&self, now: Time, most: Duration) -> bool {
        self.current.is_some_and(|at| now.since(at) <= most)
    }

    /// The number of the next read that a replica is given.
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
