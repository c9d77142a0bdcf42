//! What the primary of a warm passive group does (`docs/protocol/group.md`, "Warm passive").
//!
//! It executes a call when it comes, and orders what that has changed, with the replies, as an
//! update. While one update is under way, what is executed meanwhile gathers for the next. Nothing
//! is answered, and nothing counts as executed, before the update has its place in the order: until
//! then another may become primary who knows nothing of it.

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

/// What the primary has executed, or is to execute, and is in no update yet that was delivered.
#[derive(Debug, Default)]
pub(super) struct Primary {
    /// Since when it is a passive group's primary, as it was told last. Nothing while groups do not
    /// act.
    pub(super) reigning: Option<Place>,
    /// Where this replica's time as primary began. `None`: it is not, or groups do not act.
    since: Option<Place>,
    /// Calls that may not be executed yet.
    arrivals: VecDeque<(Request, Time)>,
    /// Calls that were given to the service, in order.
    begun: VecDeque<Begun>,
    /// So many of these were executed.
    executed: usize,
    /// So many of these are in the change that the service has been asked for.
    asked: Option<usize>,
    /// The update under way.
    sent: Option<Sent>,
}

#[derive(Debug)]
struct Begun {
    client: ClientId,
    number: u64,
    unanswered: u64,
    time: Time,
    /// What was asked, if a group calls.
    asked: Option<u64>,
    outcome: Option<ServiceOutcome>,
    /// Services died of it, and it is executed no more: what is kept of it, but for its number in
    /// the history.
    poison: Option<Box<Poison>>,
    /// What to tell of reads that saw what it did, and nothing later.
    reads: Vec<Effect>,
}

#[derive(Debug)]
struct Sent {
    number: u64,
    /// Ordered time, as it tells it.
    clock: Time,
    /// It covers the first so many of those begun.
    calls: usize,
    bytes: Bytes,
    /// The chunk that is under way.
    next: u32,
}

impl Primary {
    pub(super) fn forget(&mut self) {
        *self = Primary { since: self.since, ..Primary::default() };
    }

    /// Calls that are executed by nobody are done when what came before them is.
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
