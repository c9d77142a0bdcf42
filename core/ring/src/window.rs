//! The datagrams of one ring that are not yet known to be everywhere.

use alloc::collections::VecDeque;

use wire::Member;
use wire::limits::MAX_WINDOW;
use wire::ring::Data;

/// A datagram, kept until every member has it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The first sender.
    pub sender: Member,
    pub data: Data,
}

/// Slots for the sequence numbers after `base`. Bounded by [`MAX_WINDOW`]: no member sends
/// further than that beyond what all have, so whatever is farther off is a lie.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Everything up to here is released.
    base: u64,
    /// Everything up to here has arrived.
    aru: u64,
    /// Slot i holds number `base + 1 + i`. The last one is never empty.
    slots: VecDeque<Option<Kept>>,
    /// The most slots that there were at a time.
    most: usize,
}

impl Window {
    pub fn base(&self) -> u64 {
        self.base
    }

    pub fn aru(&self) -> u64 {
        self.aru
    }

    /// How many datagrams are kept now, and the most that were so far.
    pub fn fill(&self) -> (usize, usize) {
        (self.slots.len(), self.most)
    }

    /// The largest number that has arrived.
    pub fn high(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Whether a datagram of this number can be real.
    pub fn admits(&self, sequence: u64) -> bool {
        sequence > 0 && sequence <= self.base.saturating_add(MAX_WINDOW as u64)
    }

    pub fn get(&self, sequence: u64) -> Option<&Kept> {
        let slot = sequence.checked_sub(self.base + 1)?;
        self.slots.get(usize::try_from(slot).ok()?)?.as_ref()
    }

    pub fn has(&self, sequence: u64) -> bool {
        sequence <= self.aru || self.get(sequence).is_some()
    }

    /// Keeps a datagram. False when it was there already, or cannot be real.
    pub fn insert(&mut self, kept: Kept) -> bool {
        let sequence = kept.data.sequence;
        if !self.admits(sequence) || self.has(sequence) {
            return false;
        }
        let slot = (sequence - self.base - 1) as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, || None);
            self.most = self.most.max(self.slots.len());
        }
        self.slots[slot] = Some(kept);
        while self.get(self.aru + 1).is_some() {
            self.aru += 1;
        }
        true
    }

    /// Forgets everything up to `sequence`, which has arrived.
    pub fn release(&mut self, sequence: u64) {
        assert!(sequence <= self.aru, "only what has arrived is released");
        while self.base < sequence {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    /// The numbers up to `last` that have not arrived.
    pub fn missing(&self, last: u64) -> impl Iterator<Item = u64> + '_ {
        let last = last.min(self.base.saturating_add(MAX_WINDOW as u64));
        (self.aru + 1..=last).filter(|sequence| !self.has(*sequence))
    }

    pub fn check(&self) {
        assert!(self.base <= self.aru && self.aru <= self.high());
        assert!(self.slots.len() <= MAX_WINDOW);
        assert!(self.get(self.aru + 1).is_none(), "aru stands before a gap");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use wire::{Incarnation, NodeId, RingId};

    use super::*;

    fn kept(sequence: u64) -> Kept {
        let sender = Member { node: NodeId(1), incarnation: Incarnation(1) };
        let data = Data {
            ring: RingId::default(),
            ack_wanted: false,
            complete: false,
            hop: 0,
            sequence,
            stable: 0,
            origin: None,
            body: Bytes::new(),
        };
        Kept { sender, data }
    }

    #[test]
    fn aru_stands_before_the_first_gap() {
        let mut window = Window::default();
        assert!(window.insert(kept(2)));
        assert_eq!((window.aru(), window.high()), (0, 2));
        assert!(window.insert(kept(1)));
        assert!(!window.insert(kept(1)), "a duplicate");
        assert_eq!((window.aru(), window.high()), (2, 2));
        window.insert(kept(5));
        assert!(window.missing(9).eq([3, 4, 6, 7, 8, 9]));
        window.release(2);
        assert!(!window.insert(kept(2)), "released");
        window.check();
    }

    #[test]
    fn what_is_beyond_the_window_is_refused() {
        let mut window = Window::default();
        assert!(window.insert(kept(MAX_WINDOW as u64)));
        assert!(!window.insert(kept(MAX_WINDOW as u64 + 1)));
        assert!(!window.insert(kept(u64::MAX)));
        assert_eq!(window.missing(u64::MAX).count(), MAX_WINDOW - 1);
        window.check();
    }
}
