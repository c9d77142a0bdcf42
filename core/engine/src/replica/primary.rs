//! The primary of a warm passive group (`docs/protocol/group.md`, "Warm passive").
//!
//! It executes a call on arrival, and orders its changes and reply as an update. Calls executed
//! meanwhile gather for the next update. No call is answered, or counts as executed, before its
//! update has a place in the order: until then another replica may become primary that knows
//! nothing of it.

mod acting;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_ARRIVALS, MAX_UPDATE_CALLS};
use wire::ordered::{Place, Poison, Request};
use wire::{ClientId, Time};

use super::Effect;
use crate::api::ServiceOutcome;
use crate::session::Asked;

/// Calls that the primary has executed, or is to execute, and that are in no delivered update.
#[derive(Clone, Debug, Default)]
pub(super) struct Primary {
    /// The begin of its time as a passive group's primary, as last reported. `None` while groups do
    /// not act.
    pub(super) reigning: Option<Place>,
    /// The begin of this replica's time as primary. `None`: it is not, or groups do not act.
    since: Option<Place>,
    /// Calls that may not be executed yet.
    arrivals: VecDeque<(Request, Time)>,
    /// Calls that were given to the service, in order.
    begun: VecDeque<Begun>,
    /// The number of these that were executed.
    executed: usize,
    /// The number of these in the change that the service has been asked for.
    asked: Option<usize>,
    /// The update under way.
    sent: Option<Sent>,
}

#[derive(Clone, Debug)]
struct Begun {
    client: ClientId,
    number: u64,
    unanswered: u64,
    time: Time,
    /// Its arguments, as sessions compare them.
    asked: Asked,
    outcome: Option<ServiceOutcome>,
    /// The record of a call that services died of, and that is executed no more, but for its number
    /// in the history.
    poison: Option<Box<Poison>>,
    /// The reports on reads that saw this call's effects, and nothing later.
    reads: Vec<Effect>,
}

#[derive(Clone, Debug)]
struct Sent {
    number: u64,
    /// Ordered time after the update.
    clock: Time,
    /// The number of begun calls that it covers.
    calls: usize,
    bytes: Bytes,
    /// The chunk that is under way.
    next: u32,
}

impl Primary {
    /// All that it was given is executed and ordered.
    pub(super) fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.begun.is_empty() && self.sent.is_none()
    }

    pub(super) fn forget(&mut self) {
        *self = Primary { since: self.since, ..Primary::default() };
    }

    /// Calls that nobody executes are done when all earlier ones are.
    fn pass_refused(&mut self) {
        while self.begun.get(self.executed).is_some_and(|begun| begun.outcome.is_some()) {
            self.executed += 1;
        }
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.arrivals.len() <= MAX_ARRIVALS, "arrivals are bounded");
        assert!(self.begun.len() <= MAX_UPDATE_CALLS, "an update is bounded");
        let covered = self.sent.as_ref().map(|sent| sent.calls).or(self.asked).unwrap_or(0);
        assert!(covered <= self.begun.len(), "an update is about what was executed");
        assert!(self.asked.is_none() || self.sent.is_none(), "one update is under way at a time");
    }
}
