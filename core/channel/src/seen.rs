//! The messages of one channel that a program has taken.

use alloc::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Numbers of messages: all up to one, and some beyond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    below: u64,
    /// Taken earlier than older ones, by their tags.
    ahead: BTreeSet<u64>,
}

impl Seen {
    /// All messages up to this one were taken.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// The last one that was taken.
    pub fn last(&self) -> u64 {
        self.ahead.last().copied().unwrap_or(self.below)
    }

    /// Whether this one was taken.
    pub fn has(&self, number: u64) -> bool {
        number <= self.below || self.ahead.contains(&number)
    }

    /// How many were taken before older ones.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// This one is taken now.
    pub(crate) fn take(&mut self, number: u64) {
        self.ahead.insert(number);
        while self.ahead.remove(&(self.below + 1)) {
            self.below += 1;
        }
    }

    pub(crate) fn forget_ahead(&mut self) {
        self.ahead.clear();
    }

    /// It could have come about.
    pub(crate) fn is_possible(&self) -> bool {
        self.ahead.first().is_none_or(|first| *first > self.below + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_early_counts_when_the_older_ones_are() {
        let mut seen = Seen::default();
        [2, 4, 3].into_iter().for_each(|number| seen.take(number));
        assert_eq!((seen.below(), seen.ahead()), (0, 3));
        assert!(seen.has(4) && !seen.has(1) && seen.is_possible());
        seen.take(1);
        assert_eq!((seen.below(), seen.ahead()), (4, 0));
        assert!(seen.has(1) && !seen.has(5));
    }
}
