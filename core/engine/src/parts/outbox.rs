//! The engine that orders messages, and the messages on their way there.

use alloc::collections::VecDeque;

use wire::ordered::Ordered;
use wire::{Payload, Time};

use crate::ordering::{Level, Ordering};

/// Messages leave in the order in which they were handed in.
#[derive(Clone, Debug)]
pub(crate) struct Outbox<O> {
    pub(crate) ordering: O,
    /// Messages that the ring does not take yet. They are bounded: a node's own messages answer
    /// messages that were delivered to it.
    unsent: VecDeque<Ordered>,
    /// Messages that were handed in and are not delivered yet, in their order: a node need not
    /// decode its own messages.
    under_way: VecDeque<(Payload, Ordered)>,
    /// Counts messages that were handed in to be ordered.
    handed: u64,
}

impl<O: Ordering> Outbox<O> {
    pub(crate) fn new(ordering: O) -> Outbox<O> {
        Outbox { ordering, unsent: VecDeque::new(), under_way: VecDeque::new(), handed: 0 }
    }

    /// Whether no message waits here for the ring.
    pub(crate) fn is_clear(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Returns how many messages were handed in to be ordered.
    pub(crate) fn handed(&self) -> u64 {
        self.handed
    }

    /// Hands bytes in. False if they were refused: then nothing has happened.
    pub(crate) fn multicast(&mut self, now: Time, payload: Payload, level: Level) -> bool {
        if self.ordering.multicast(now, payload, level).is_err() {
            return false;
        }
        // Not `handed += u64::from(taken)` with `taken` given back: where that is inlined into a
        // condition, rustc 1.95 drops the comparison that makes `taken`, and what is added is
        // undefined (rust-lang/rust#158206). `the_wait_for_the_flow_control_is_told_apart` shows
        // it, optimized.
        self.handed += 1;
        true
    }

    /// Hands a message in. False if it was refused: then nothing has happened.
    pub(crate) fn hand_in(&mut self, now: Time, ordered: Ordered, level: Level) -> bool {
        let payload = ordered.payload();
        let taken = self.multicast(now, payload.clone(), level);
        if taken {
            self.under_way.push_back((payload, ordered));
        }
        taken
    }

    /// Orders a message, now or as soon as the ring takes it. Returns its bytes, by which it can be
    /// withdrawn.
    pub(crate) fn order(&mut self, now: Time, ordered: Ordered, level: Level) -> Payload {
        let payload = ordered.payload();
        if self.is_clear() && self.multicast(now, payload.clone(), level) {
            self.under_way.push_back((payload.clone(), ordered));
        } else {
            self.unsent.push_back(ordered);
        }
        payload
    }

    /// Takes the message with these bytes, which this node has handed in and which is delivered
    /// now. `None` if it is unknown and must be decoded.
    pub(crate) fn delivered(&mut self, payload: &[u8]) -> Option<Ordered> {
        let at = self.under_way.iter().position(|(sent, _)| sent.equals(payload))?;
        // Messages before it were lost with their ring.
        self.under_way.drain(..at);
        self.under_way.pop_front().map(|(_, ordered)| ordered)
    }

    /// Returns the first message that waits.
    pub(crate) fn first(&self) -> Option<&Ordered> {
        self.unsent.front()
    }

    /// Hands in the first message that waits. False if there is none, or it was refused.
    pub(crate) fn order_first(&mut self, now: Time, level: Level) -> bool {
        let Some(payload) = self.first().map(Ordered::payload) else { return false };
        let taken = self.multicast(now, payload.clone(), level);
        if taken {
            self.under_way.extend(self.unsent.pop_front().map(|first| (payload, first)));
        }
        taken
    }

    /// Drops messages that are of no use any more.
    pub(crate) fn retain(&mut self, useful: impl FnMut(&Ordered) -> bool) {
        self.unsent.retain(useful);
    }

    /// Withdraws a message that has no place in the order yet.
    pub(crate) fn withdraw(&mut self, payload: &Payload) {
        if self.ordering.withdraw(payload) {
            self.handed -= 1;
            self.under_way.retain(|(sent, _)| !sent.is(payload));
        } else {
            self.unsent.retain(|waiting| waiting.payload() != *payload);
        }
    }
}
