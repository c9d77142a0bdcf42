//! The messages of one channel that a program has taken.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers of messages: all up to one, and some beyond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    below: u64,
    /// The checksum of the last of these.
    check: u32,
    /// Taken earlier than older ones, by their tags: their checksums.
    ahead: BTreeMap<u64, u32>,
    /// The start of the sender that has sent these, as it, or again.
    start: u64,
}

impl Seen {
    /// All messages up to this one were taken.
    pub fn below(&self) -> u64 {
        self.below
    }

    /// The last one that was taken.
    pub fn last(&self) -> u64 {
        self.ahead.last_key_value().map_or(self.below, |(number, _)| *number)
    }

    /// The checksum of all messages up to [`below`](Seen::below).
    pub fn check(&self) -> u32 {
        self.check
    }

    /// The start of the sender that has sent what was taken, as it, or again.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// This start of the sender has sent what was taken, as before.
    pub(crate) fn join(&mut self, start: u64) {
        self.start = start;
    }

    /// The checksum of one that was taken before older ones.
    pub(crate) fn check_of(&self, number: u64) -> Option<u32> {
        self.ahead.get(&number).copied()
    }

    /// Whether this one was taken.
    pub fn has(&self, number: u64) -> bool {
        number <= self.below || self.ahead.contains_key(&number)
    }

    /// How many were taken before older ones.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// This one is taken now.
    pub(crate) fn take(&mut self, number: u64, check: u32) {
        if number == self.below + 1 && self.ahead.is_empty() {
            (self.below, self.check) = (number, check);
            return;
        }
        self.ahead.insert(number, check);
        while let Some(check) = self.ahead.remove(&(self.below + 1)) {
            (self.below, self.check) = (self.below + 1, check);
        }
    }

    pub(crate) fn forget_ahead(&mut self) {
        self.ahead.clear();
    }

    /// It could have come about.
    pub(crate) fn is_possible(&self) -> bool {
        self.ahead.first_key_value().is_none_or(|(first, _)| *first > self.below + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_early_counts_when_the_older_ones_are() {
        let mut seen = Seen::default();
        [2, 4, 3].into_iter().for_each(|number| seen.take(number, number as u32));
        assert_eq!((seen.below(), seen.ahead()), (0, 3));
        assert!(seen.has(4) && !seen.has(1) && seen.is_possible());
        assert_eq!((seen.check(), seen.check_of(3)), (0, Some(3)));
        seen.take(1, 1);
        assert_eq!((seen.below(), seen.check(), seen.ahead()), (4, 4, 0));
        assert!(seen.has(1) && !seen.has(5));
    }
}
