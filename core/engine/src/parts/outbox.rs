//! What orders messages, and what is on its way there.

use alloc::collections::VecDeque;

use bytes::Bytes;
use wire::Time;
use wire::ordered::Ordered;

use crate::ordering::{Level, Ordering};

/// Messages leave in the order in which they were given.
pub(crate) struct Outbox<O> {
    pub(crate) ordering: O,
    /// To be ordered as soon as the ring takes more. Bounded: what a node orders by itself answers
    /// what was delivered to it.
    unsent: VecDeque<Ordered>,
    /// Messages that were ever handed in to be ordered.
    handed: u64,
}

impl<O: Ordering> Outbox<O> {
    pub(crate) fn new(ordering: O) -> Outbox<O> {
        Outbox { ordering, unsent: VecDeque::new(), handed: 0 }
    }

    /// Nothing waits here for the ring.
    pub(crate) fn is_clear(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Messages that were ever handed in to be ordered.
    pub(crate) fn handed(&self) -> u64 {
        self.handed
    }

    /// Hands a message in. False if it was refused: then nothing has happened.
    pub(crate) fn multicast(&mut self, now: Time, payload: Bytes, level: Level) -> bool {
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

    /// Orders a message, now or as soon as the ring takes it.
    pub(crate) fn order(&mut self, now: Time, ordered: Ordered, payload: Bytes, level: Level) {
        if !self.is_clear() || !self.multicast(now, payload, level) {
            self.unsent.push_back(ordered);
        }
    }

    /// The first message that waits.
    pub(crate) fn first(&self) -> Option<&Ordered> {
        self.unsent.front()
    }

    /// The first was handed in.
    pub(crate) fn pop(&mut self) {
        self.unsent.pop_front();
    }

    /// Drops those that are of no use any more.
    pub(crate) fn retain(&mut self, useful: impl FnMut(&Ordered) -> bool) {
        self.unsent.retain(useful);
    }

    /// Takes a message back that has no place in the order yet.
    pub(crate) fn withdraw(&mut self, payload: &Bytes) {
        if self.ordering.withdraw(payload) {
            self.handed -= 1;
        } else {
            self.unsent.retain(|waiting| waiting.encode() != *payload);
        }
    }
}
