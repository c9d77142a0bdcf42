//! The receiver's end of a channel.

use alloc::collections::VecDeque;

use crate::bug::{Bug, Planted};
use crate::error::ChannelError;
use crate::seen::Seen;
use crate::{CHECKED, Head, OWN_TAGS};

/// The fate of a message that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It waits for the program.
    New,
    /// It had come before.
    Again,
    /// Its sender's start is over.
    Old,
}

/// Messages from one rank.
#[derive(Clone, Debug)]
pub(crate) struct Received<P> {
    /// The sender's newest start that was heard of.
    start: u64,
    /// All messages up to this one have come.
    last: u64,
    /// The checksum of the last one.
    check: u32,
    /// Messages of the present start follow on that one.
    joined: bool,
    /// Those that the program has not taken, the oldest first.
    waiting: VecDeque<(Head, P)>,
    seen: Seen,
    /// Heads of the last messages that have come.
    heads: VecDeque<Head>,
}

impl<P> Default for Received<P> {
    fn default() -> Received<P> {
        Received::restored(Seen::default())
    }
}

impl<P> Received<P> {
    /// Messages that were not taken by then come once more.
    pub fn restored(seen: Seen) -> Received<P> {
        let (waiting, heads) = (VecDeque::new(), VecDeque::new());
        let (last, check) = (seen.below(), seen.check());
        Received { start: 0, last, check, joined: false, waiting, seen, heads }
    }

    /// The first message that has not come.
    pub fn wanted(&self) -> u64 {
        self.last + 1
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The sender has another start.
    pub fn starts(&mut self, start: u64) {
        if start > self.start {
            (self.start, self.joined) = (start, false);
        }
    }

    pub fn arrived(
        &mut self,
        (from, start): (u32, u64),
        head: Head,
        place: P,
        body: impl FnOnce(&P) -> u32,
        planted: Planted,
    ) -> Result<Arrival, ChannelError> {
        if start < self.start && !planted.is(Bug::AcceptOldStart) {
            return Ok(Arrival::Old);
        }
        self.starts(start);
        let Head { number, tag, length, check } = head;
        let diverged = ChannelError::Diverged { from, number, tag };
        if number > self.last + 1 {
            return Err(ChannelError::Gap { from, wanted: self.last + 1, first: number });
        }
        if number <= self.last {
            if planted.is(Bug::DeliverTwice) {
                self.waiting.push_back((head, place));
                return Ok(Arrival::New);
            }
            let age = (self.last - number) as usize;
            let known = self.heads.len().checked_sub(age + 1).map(|at| self.heads[at]);
            let same = known.is_none_or(|known| known == head)
                && (number < self.last || check == self.check)
                && self.seen.check_of(number).is_none_or(|known| known == check);
            if !same && !planted.is(Bug::BelieveSender) {
                return Err(diverged);
            }
            if number == self.last {
                // All before it are the same, too.
                self.joined = true;
                self.join();
            }
            return Ok(Arrival::Again);
        }
        let same = self.joined
            || planted.is(Bug::BelieveSender)
            || Head::after(self.check, number, (tag, length, body(&place))).check == check;
        if !same || self.seen.check_of(number).is_some_and(|known| known != check) {
            return Err(diverged);
        }
        (self.last, self.check, self.joined) = (number, check, true);
        self.join();
        if self.heads.len() == CHECKED {
            self.heads.pop_front();
        }
        self.heads.push_back(head);
        if self.seen.has(number) {
            return Ok(Arrival::Again);
        }
        self.waiting.push_back((head, place));
        Ok(Arrival::New)
    }

    /// The sender's present start has sent all that was taken, as it, or again.
    fn join(&mut self) {
        if self.last >= self.seen.last() {
            self.seen.join(self.start);
        }
    }

    /// The oldest message of this tag that waits.
    pub fn first(&self, tag: Option<u32>) -> Option<&Head> {
        self.waiting.iter().map(|(head, _)| head).find(|head| fits(head, tag))
    }

    /// Takes it.
    pub fn take(&mut self, tag: Option<u32>) -> Option<(Head, P)> {
        let at = self.waiting.iter().position(|(head, _)| fits(head, tag))?;
        let (head, place) = self.waiting.remove(at)?;
        self.seen.take(head.number, head.check);
        if self.seen.below() > self.last {
            // The next ones were taken before the state was saved: they may be in no log any more.
            (self.last, self.check, self.joined) = (self.seen.below(), self.seen.check(), false);
            self.heads.clear();
        }
        Some((head, place))
    }

    /// The oldest message that waits, of any tag.
    pub fn oldest(&self) -> Option<&Head> {
        self.waiting.front().map(|(head, _)| head)
    }
}

/// Any tag is any one that does not ask to be taken by itself.
fn fits(head: &Head, tag: Option<u32>) -> bool {
    tag.map_or(head.tag < OWN_TAGS, |tag| tag == head.tag)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const NONE: fn() -> Planted = Planted::default;

    /// The heads of messages with these checksums of their bytes; each second one has another tag.
    fn heads<const MANY: usize>(bodies: [u32; MANY]) -> Vec<Head> {
        let mut heads: Vec<Head> = Vec::new();
        for (number, body) in (1..).zip(bodies) {
            let before = heads.last().map_or(0, |head| head.check);
            heads.push(Head::after(before, number, (number as u32 % 2, 8, body)));
        }
        heads
    }

    fn come(
        it: &mut Received<u32>,
        start: u64,
        head: Head,
        body: u32,
    ) -> Result<Arrival, ChannelError> {
        it.arrived((9, start), head, body, |body| *body, NONE())
    }

    #[test]
    fn each_message_is_taken_once_by_its_tag_and_in_order() {
        let (mut it, heads) = (Received::default(), heads([1, 2, 3, 4, 5]));
        for (head, body) in heads[..4].iter().zip(1..) {
            assert_eq!(come(&mut it, 1, *head, body), Ok(Arrival::New));
        }
        assert_eq!(it.take(Some(0)).unwrap().0.number, 2);
        assert_eq!(it.take(None).unwrap().0.number, 1);
        assert_eq!((it.seen().below(), it.wanted()), (2, 5));
        assert_eq!(come(&mut it, 1, heads[1], 2), Ok(Arrival::Again));
        assert_eq!(it.take(Some(0)).unwrap().0.number, 4);
        let mut later = Received::restored(it.seen().clone());
        assert_eq!(later.wanted(), 3);
        assert_eq!(come(&mut later, 2, heads[2], 3), Ok(Arrival::New));
        assert_eq!(later.take(None).unwrap().0.number, 3);
        assert_eq!(later.wanted(), 5, "4 was taken");
        assert_eq!(come(&mut later, 2, heads[3], 4), Ok(Arrival::Again));
        assert!(later.take(None).is_none());
        assert_eq!(come(&mut later, 2, heads[4], 5), Ok(Arrival::New));
    }

    #[test]
    fn another_message_of_the_same_number_and_a_gap_and_an_old_start_are_seen() {
        let (mut it, heads) = (Received::default(), heads([1, 2, 3]));
        come(&mut it, 2, heads[0], 1).unwrap();
        for other in [Head { check: 5, ..heads[0] }, Head { length: 9, ..heads[0] }] {
            let diverged = ChannelError::Diverged { from: 9, number: 1, tag: 1 };
            assert_eq!(come(&mut it, 2, other, 1), Err(diverged));
        }
        assert!(matches!(come(&mut it, 2, heads[2], 3), Err(ChannelError::Gap { .. })));
        assert_eq!(come(&mut it, 1, heads[1], 2), Ok(Arrival::Old));
        it.starts(3);
        assert_eq!(come(&mut it, 2, heads[1], 2), Ok(Arrival::Old));
    }

    /// The first message of a sender that goes on with other ones behind it tells of these.
    #[test]
    fn others_before_a_message_are_seen_by_it() {
        let (mut it, same, others) =
            (Received::default(), heads([1, 2, 3, 4]), heads([1, 7, 3, 4]));
        for body in [1, 2] {
            come(&mut it, 1, same[body as usize - 1], body).unwrap();
            it.take(None).or_else(|| it.take(Some(0))).unwrap();
        }
        let seen = it.seen().clone();
        let diverged = |number, tag| Err(ChannelError::Diverged { from: 9, number, tag });
        assert_eq!(come(&mut it, 2, others[2], 3), diverged(3, 1));
        let mut later = Received::restored(seen.clone());
        assert_eq!(come(&mut later, 2, others[2], 3), diverged(3, 1), "it has gone back itself");
        assert_eq!(come(&mut later, 2, others[1], 7), diverged(2, 0), "the last that it has taken");
        let mut later = Received::restored(seen);
        assert_eq!(come(&mut later, 2, same[2], 3), Ok(Arrival::New));
        assert_eq!(come(&mut later, 2, same[3], 0), Ok(Arrival::New), "its sender goes on");
    }

    #[test]
    fn another_one_than_what_was_taken_early_is_seen() {
        let (mut it, same, others) = (Received::default(), heads([1, 2]), heads([1, 9]));
        (0..2).for_each(|at| _ = come(&mut it, 1, same[at], at as u32 + 1).unwrap());
        it.take(Some(0)).unwrap();
        let mut later = Received::restored(it.seen().clone());
        come(&mut later, 2, others[0], 1).unwrap();
        let diverged = ChannelError::Diverged { from: 9, number: 2, tag: 0 };
        assert_eq!(come(&mut later, 2, others[1], 9), Err(diverged));
    }
}
