//! Virtual time: the next event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wire::Time;

/// Happenings in order of time. Those of one moment come in the order in which they were put in,
/// so that a run depends on nothing but its seed.
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    serial: u64,
    now: Time,
}

struct Entry<E> {
    at: Time,
    serial: u64,
    what: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.serial)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), serial: 0, now: Time::ZERO }
    }
}

impl<E> Queue<E> {
    /// The moment of the last happening taken out.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When the next happening is due.
    pub fn due(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// Lets `what` happen at `at`, or now if that has passed.
    pub fn push(&mut self, at: Time, what: E) {
        self.serial += 1;
        let entry = Entry { at: at.max(self.now), serial: self.serial, what };
        self.heap.push(Reverse(entry));
    }

    /// The next happening; time moves to it.
    pub fn pop(&mut self) -> Option<E> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_keeps_the_order_of_pushing() {
        let mut queue = Queue::default();
        queue.push(Time(20), 'c');
        queue.push(Time(10), 'a');
        queue.push(Time(10), 'b');
        assert_eq!(queue.pop(), Some('a'));
        queue.push(Time(5), 'x');
        assert_eq!((queue.pop(), queue.now()), (Some('b'), Time(10)));
        assert_eq!((queue.pop(), queue.now()), (Some('x'), Time(10)), "the past is now");
        assert_eq!((queue.pop(), queue.now()), (Some('c'), Time(20)));
    }
}
