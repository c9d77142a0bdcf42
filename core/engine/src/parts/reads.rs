//! How recent reads without an order are.

use wire::limits::CONFIRM_EVERY;
use wire::{Duration, Time};

/// Reads of this node's replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// Requests answered by this time were delivered here.
    current: Option<Time>,
    /// The same of a later time, as soon as everything up to the number is delivered here.
    coming: Option<(u64, Time)>,
    /// The round that the node asked for by itself, and when.
    round: Option<(u64, Time)>,
    /// When the node last saw whether it should ask.
    looked: Option<Time>,
    /// Counts reads that replicas here were given.
    executions: u64,
}

impl Reads {
    /// Requests answered by this time were delivered here.
    pub(crate) fn confirm(&mut self, at: Time) {
        self.current = self.current.max(Some(at));
    }

    /// Requests answered by this time are in the order up to this number.
    pub(crate) fn learn(&mut self, upto: u64, at: Time) {
        // The former may be delivered by now, and this may never be.
        if self.coming.is_none_or(|(before, _)| upto <= before) {
            self.coming = Some((upto, at));
        }
    }

    /// Everything up to this number is delivered here.
    pub(crate) fn delivered(&mut self, upto: u64) {
        if let Some((_, at)) = self.coming.take_if(|(number, _)| *number <= upto) {
            self.confirm(at);
        }
    }

    /// The node is to ask by itself: what it knows would else be too old for most reads if it were
    /// cut off.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next_timeout().is_none_or(|due| due <= now)
    }

    /// When it is; `None`: now.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.current.max(self.looked).map(|at| at + CONFIRM_EVERY)
    }

    /// The node has asked for this round, if it has anything to read and the ring orders messages.
    pub(crate) fn looked(&mut self, at: Time, round: Option<u64>) {
        self.looked = Some(at);
        self.round = round.map(|round| (round, at)).or(self.round);
    }

    /// A round has its answer.
    pub(crate) fn answered(&mut self, round: u64, upto: u64) {
        if let Some((_, at)) = self.round.filter(|(asked, _)| *asked <= round) {
            self.learn(upto, at);
        }
    }

    /// The configuration is over: no answers come any more.
    pub(crate) fn interrupted(&mut self) {
        (self.coming, self.round, self.looked) = (None, None, None);
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

    fn at(seconds: u32) -> Time {
        Time(1_000_000_000) + Duration::from_secs(1) * seconds
    }

    #[test]
    fn an_older_confirmation_takes_nothing_back() {
        let mut reads = Reads::default();
        let second = Duration::from_secs(1);
        assert!(!reads.is_recent(at(0), second), "nothing is known");
        reads.confirm(at(5));
        reads.confirm(at(3));
        assert!(reads.is_recent(at(6), second) && !reads.is_recent(at(7), second));
    }

    #[test]
    fn what_is_learnt_counts_when_all_of_it_is_delivered() {
        let mut reads = Reads::default();
        assert!(reads.is_due(at(0)));
        reads.looked(at(1), Some(4));
        assert!(!reads.is_due(at(2)), "an answer may come");
        reads.answered(3, 7);
        reads.delivered(7);
        assert!(!reads.is_recent(at(2), Duration::from_secs(1)), "an earlier round");
        reads.answered(4, 9);
        reads.learn(12, at(2));
        reads.delivered(8);
        assert!(!reads.is_recent(at(2), Duration::from_secs(1)));
        reads.delivered(9);
        assert!(reads.is_recent(at(2), Duration::from_secs(1)));
        assert!(reads.is_due(at(1) + CONFIRM_EVERY));
        reads.looked(at(20), Some(5));
        reads.interrupted();
        reads.answered(5, 1);
        reads.delivered(90);
        assert!(!reads.is_recent(at(20), Duration::from_secs(1)), "of another ring");
    }
}
