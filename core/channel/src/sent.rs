//! The sender's end of a channel: its log.

use alloc::collections::VecDeque;

use crate::Head;

/// Messages to one rank.
#[derive(Clone, Debug)]
pub(crate) struct Sent<P> {
    /// Those that may still be needed, the oldest first, without a gap.
    log: VecDeque<Entry<P>>,
    /// The number of the last one.
    last: u64,
    /// Its checksum.
    check: u32,
    /// Bytes of those in the log.
    bytes: u64,
    /// The last one that may leave.
    left: u64,
}

#[derive(Clone, Debug)]
struct Entry<P> {
    head: Head,
    /// Choices that were made before it.
    after: u64,
    place: P,
}

impl<P> Default for Sent<P> {
    fn default() -> Sent<P> {
        Sent { log: VecDeque::new(), last: 0, check: 0, bytes: 0, left: 0 }
    }
}

impl<P> Sent<P> {
    /// A log that ends with this number and checksum, whose messages leave when so many choices are
    /// noted.
    pub fn restored(
        (last, check): (u64, u32),
        log: impl Iterator<Item = (Head, P)>,
        after: u64,
    ) -> Sent<P> {
        let entry = |(head, place)| Entry { head, after, place };
        let log: VecDeque<_> = log.map(entry).collect();
        let bytes = log.iter().map(|entry| entry.head.length).sum();
        let left = last - log.len() as u64;
        Sent { log, last, check, bytes, left }
    }

    /// The number of the first message in the log, or of the next one.
    pub fn first(&self) -> u64 {
        self.last + 1 - self.log.len() as u64
    }

    pub fn last(&self) -> u64 {
        self.last
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The last message that may leave.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The checksum of the last one.
    pub fn check(&self) -> u32 {
        self.check
    }

    /// The head of the next message.
    pub fn next(&self, message: (u32, u64, u32)) -> Head {
        Head::after(self.check, self.last + 1, message)
    }

    /// Another message, made after so many choices.
    pub fn push(&mut self, message: (u32, u64, u32), after: u64, place: P) -> Head {
        let head = self.next(message);
        (self.last, self.check) = (head.number, head.check);
        self.bytes += head.length;
        self.log.push_back(Entry { head, after, place });
        head
    }

    /// So many choices are noted. True: more messages may leave.
    pub fn open(&mut self, noted: u64) -> bool {
        let before = self.left;
        let first = self.first();
        let from = (self.left + 1).saturating_sub(first) as usize;
        for entry in self.log.iter().skip(from) {
            if entry.after > noted {
                break;
            }
            self.left = entry.head.number;
        }
        self.left > before
    }

    /// The receiver will never need messages up to this one. Their places are free.
    pub fn release(&mut self, below: u64) -> impl Iterator<Item = (Head, P)> + '_ {
        let many = below.saturating_add(1).saturating_sub(self.first());
        let many = many.min(self.log.len() as u64) as usize;
        self.bytes -= self.log.iter().take(many).map(|entry| entry.head.length).sum::<u64>();
        // Nobody waits for these any more.
        self.left = self.left.max(self.first() + many as u64 - 1);
        self.log.drain(..many).map(|entry| (entry.head, entry.place))
    }

    /// The places of all messages in the log.
    pub fn places_mut(&mut self) -> impl Iterator<Item = (Head, &mut P)> {
        self.log.iter_mut().map(|entry| (entry.head, &mut entry.place))
    }

    /// The messages in the log from this one on.
    pub fn from(&self, number: u64) -> impl Iterator<Item = (Head, &P)> {
        let skip = number.saturating_sub(self.first()) as usize;
        self.log.iter().skip(skip).map(|entry| (entry.head, &entry.place))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn messages_leave_with_their_choices_and_go_when_nobody_needs_them() {
        let mut sent = Sent::default();
        for (place, after) in [('a', 0), ('b', 0), ('c', 2), ('d', 1)] {
            sent.push((7, 10, 1), after, place);
        }
        assert!(sent.open(0) && !sent.open(0));
        assert_eq!(sent.left(), 2);
        assert!(!sent.open(1), "c waits, and d behind it");
        assert!(sent.open(2));
        assert_eq!((sent.left(), sent.bytes()), (4, 40));
        let gone: Vec<char> = sent.release(2).map(|(_, place)| place).collect();
        assert_eq!((gone, sent.first(), sent.bytes()), (Vec::from(['a', 'b']), 3, 20));
        assert_eq!(sent.release(1).count(), 0, "a late word");
        let from: Vec<u64> = sent.from(4).map(|(head, _)| head.number).collect();
        assert_eq!(from, [4]);
        assert_eq!(sent.from(1).count(), 2);
        let log = sent.from(1).map(|(head, place)| (head, *place));
        let mut copy = Sent::restored((4, sent.check()), log, 7);
        assert_eq!(copy.next((7, 10, 2)), sent.next((7, 10, 2)));
        assert_eq!((copy.first(), copy.last(), copy.left()), (3, 4, 2));
        assert!(!copy.open(6) && copy.open(7));
        assert_eq!(copy.left(), 4);
        drop(sent.release(u64::MAX));
        assert_eq!((sent.first(), sent.last(), sent.bytes()), (5, 4, 0));
        let mut gated = Sent::restored(
            (4, 0),
            [(Head { number: 4, tag: 0, length: 1, check: 0 }, 'd')].into_iter(),
            7,
        );
        drop(gated.release(4));
        assert_eq!(gated.left(), 4, "its receiver had it before");
    }
}
