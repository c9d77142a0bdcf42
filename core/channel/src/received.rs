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
        Received { start: 0, last: seen.below(), waiting, seen, heads }
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
        self.start = self.start.max(start);
    }

    pub fn arrived(
        &mut self,
        from: u32,
        start: u64,
        head: Head,
        place: P,
        planted: Planted,
    ) -> Result<Arrival, ChannelError> {
        if start < self.start && !planted.is(Bug::AcceptOldStart) {
            return Ok(Arrival::Old);
        }
        self.start = self.start.max(start);
        let Head { number, tag, .. } = head;
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
            return match known.is_none_or(|known| known == head) {
                true => Ok(Arrival::Again),
                false => Err(ChannelError::Diverged { from, number, tag }),
            };
        }
        self.last = number;
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

    /// The oldest message of this tag that waits.
    pub fn first(&self, tag: Option<u32>) -> Option<&Head> {
        self.waiting.iter().map(|(head, _)| head).find(|head| fits(head, tag))
    }

    /// Takes it.
    pub fn take(&mut self, tag: Option<u32>) -> Option<(Head, P)> {
        let at = self.waiting.iter().position(|(head, _)| fits(head, tag))?;
        let (head, place) = self.waiting.remove(at)?;
        self.seen.take(head.number);
        if self.seen.below() > self.last {
            // The next ones were taken before the state was saved: they may be in no log any more.
            self.last = self.seen.below();
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
    use super::*;

    fn head(number: u64) -> Head {
        Head { number, tag: number as u32 % 2, length: 8, check: number as u32 }
    }

    #[test]
    fn each_message_is_taken_once_by_its_tag_and_in_order() {
        let (mut it, none) = (Received::default(), Planted::default());
        for number in 1..=4 {
            assert_eq!(it.arrived(9, 1, head(number), (), none), Ok(Arrival::New));
        }
        assert_eq!(it.take(Some(0)).unwrap().0.number, 2);
        assert_eq!(it.take(None).unwrap().0.number, 1);
        assert_eq!((it.seen().below(), it.wanted()), (2, 5));
        assert_eq!(it.arrived(9, 1, head(2), (), none), Ok(Arrival::Again));
        assert_eq!(it.take(Some(0)).unwrap().0.number, 4);
        let mut later = Received::restored(it.seen().clone());
        assert_eq!(later.wanted(), 3);
        assert_eq!(later.arrived(9, 2, head(3), (), none), Ok(Arrival::New));
        assert_eq!(later.take(None).unwrap().0.number, 3);
        assert_eq!(later.wanted(), 5, "4 was taken");
        assert_eq!(later.arrived(9, 2, head(4), (), none), Ok(Arrival::Again));
        assert!(later.take(None).is_none());
    }

    #[test]
    fn another_message_of_the_same_number_and_a_gap_and_an_old_start_are_seen() {
        let (mut it, none) = (Received::default(), Planted::default());
        it.arrived(9, 2, head(1), (), none).unwrap();
        for other in [Head { check: 5, ..head(1) }, Head { length: 9, ..head(1) }] {
            let diverged = ChannelError::Diverged { from: 9, number: 1, tag: 1 };
            assert_eq!(it.arrived(9, 2, other, (), none), Err(diverged));
        }
        assert!(matches!(it.arrived(9, 2, head(3), (), none), Err(ChannelError::Gap { .. })));
        assert_eq!(it.arrived(9, 1, head(2), (), none), Ok(Arrival::Old));
        it.starts(3);
        assert_eq!(it.arrived(9, 2, head(2), (), none), Ok(Arrival::Old));
    }
}
