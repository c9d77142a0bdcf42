//! This node's position: in the order of its component, and in its own life.

use alloc::collections::VecDeque;

use wire::limits::MAX_SEND_QUEUE;
use wire::{Duration, Time};

use crate::ordering::Delivery;

/// A clean stop waits this long for its hand-over to be ordered before it leaves all the same.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);

/// After an installation, the replicas of unknown groups join within some round trips. For this
/// long at least no client is told that a group does not exist. On a slow ring the time is longer,
/// in proportion to the announcements' time, which took the same way.
const JOIN_GRACE: Duration = Duration::from_millis(50);
const JOIN_ROUNDS: u32 = 4;

/// The maximum, and the time while configured nodes are missing: the cluster may still be forming.
const FORMING_GRACE: Duration = Duration::from_secs(2);

/// Ordered messages that may wait for an installation: what all members may have queued.
const MAX_DEFERRED: usize = MAX_SEND_QUEUE * 4;

/// The ring's knowledge of which members have what.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    pub(crate) majority: u64,
    pub(crate) all: u64,
}

/// This node's position.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    held: Held,
    /// Deliveries now belong to a ring that has ended; whether most of its members go on together.
    transitional: Option<bool>,
    /// Messages delivered before the installation of their component.
    deferred: VecDeque<Delivery>,
    /// The place of the last message of the component that was delivered.
    delivered: u64,
    /// When the last configuration was delivered.
    configured_at: Time,
    /// The time until which groups outside the table may still be on their way.
    joining_until: Option<Time>,
    /// The time at which a clean stop ends at the latest.
    leaving: Option<Time>,
    left: bool,
}

impl Progress {
    pub(crate) fn new(now: Time) -> Progress {
        Progress {
            held: Held::default(),
            transitional: None,
            deferred: VecDeque::new(),
            delivered: 0,
            configured_at: now,
            joining_until: None,
            leaving: None,
            left: false,
        }
    }

    /// Sets whether the last messages of the old ring follow, and whether most of its members get
    /// them.
    pub(crate) fn set_transitional(&mut self, transitional: Option<bool>) {
        self.transitional = transitional;
    }

    /// Begins a configuration.
    pub(crate) fn configured(&mut self, now: Time) {
        self.configured_at = now;
        self.deferred.clear();
        self.held = Held::default();
        self.delivered = 0;
    }

    /// When the last configuration was delivered.
    pub(crate) fn configured_at(&self) -> Time {
        self.configured_at
    }

    pub(crate) fn is_transitional(&self) -> bool {
        self.transitional.is_some()
    }

    /// A delivery now is part of a history that the others may go on without.
    pub(crate) fn is_left_behind(&self) -> bool {
        self.transitional == Some(false)
    }

    /// Everything up to this place of the component was delivered.
    pub(crate) fn deliver(&mut self, sequence: u64) {
        self.delivered = sequence;
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(crate) fn hold(&mut self, held: Held) {
        self.held = held;
    }

    pub(crate) fn held(&self) -> Held {
        self.held
    }

    /// Keeps a message until its component is installed. A message without room is dropped by every
    /// member alike, as all defer the same ones.
    pub(crate) fn defer(&mut self, delivery: Delivery) {
        if self.deferred.len() < MAX_DEFERRED {
            self.deferred.push_back(delivery);
        }
    }

    /// Returns the place of the first message that waits.
    pub(crate) fn first_deferred(&self) -> Option<u64> {
        self.deferred.front().map(|first| first.sequence)
    }

    pub(crate) fn take_deferred(&mut self) -> VecDeque<Delivery> {
        core::mem::take(&mut self.deferred)
    }

    /// Begins the component, `whole` if no configured node is missing: unknown groups may join.
    pub(crate) fn await_joins(&mut self, now: Time, whole: bool) {
        let took = now.since(self.configured_at) * JOIN_ROUNDS;
        let grace = if whole { took.max(JOIN_GRACE) } else { FORMING_GRACE };
        self.joining_until = Some(now + grace.min(FORMING_GRACE));
    }

    /// Whether groups may still be on their way.
    pub(crate) fn awaits_joins(&self) -> bool {
        self.joining_until.is_some()
    }

    /// True once when no more groups are waited for. While a ring is formed nothing is ordered:
    /// groups on their way still are.
    pub(crate) fn ends_joins(&mut self, now: Time, orders: bool) -> bool {
        let due = self.joining_until.is_some_and(|until| until <= now);
        if due {
            self.joining_until = (!orders).then(|| now + JOIN_GRACE);
        }
        due && orders
    }

    /// Begins a clean stop. False if one has begun already.
    pub(crate) fn begin_to_leave(&mut self, now: Time) -> bool {
        let begins = self.leaving.is_none();
        self.leaving.get_or_insert(now + LEAVE_TIMEOUT);
        begins
    }

    /// Returns when the clean stop that has begun ends at the latest.
    pub(crate) fn leaving(&self) -> Option<Time> {
        self.leaving
    }

    pub(crate) fn leave(&mut self) {
        self.left = true;
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.joining_until.into_iter().chain(self.leaving).min()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.deferred.len() <= MAX_DEFERRED, "deferred messages are bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_waited_for_as_long_as_the_announcements_took() {
        let begin = Time(1_000_000_000);
        let mut progress = Progress::new(begin);
        progress.configured(begin);
        let slow = Duration::from_millis(100);
        progress.await_joins(begin + slow, true);
        assert_eq!(progress.next_timeout(), Some(begin + slow * (1 + JOIN_ROUNDS)));
        progress.await_joins(begin, true);
        assert_eq!(progress.next_timeout(), Some(begin + JOIN_GRACE));
        progress.await_joins(begin, false);
        assert_eq!(progress.next_timeout(), Some(begin + FORMING_GRACE));
    }

    #[test]
    fn while_a_ring_is_formed_groups_are_still_waited_for() {
        let begin = Time(1_000_000_000);
        let mut progress = Progress::new(begin);
        progress.await_joins(begin, true);
        let due = begin + JOIN_GRACE;
        assert!(!progress.ends_joins(due, false) && progress.awaits_joins());
        assert!(!progress.ends_joins(due, true), "it waits anew");
        assert!(progress.ends_joins(due + JOIN_GRACE, true) && !progress.awaits_joins());
    }

    #[test]
    fn a_clean_stop_begins_once() {
        let mut progress = Progress::new(Time(0));
        assert!(progress.begin_to_leave(Time(0)));
        assert!(!progress.begin_to_leave(Time(7)));
        assert_eq!(progress.leaving(), Some(Time(0) + LEAVE_TIMEOUT));
    }
}
