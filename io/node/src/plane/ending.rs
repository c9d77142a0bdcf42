//! The data plane's end.

use engine::Stack;
use wire::{Duration, Time};

use crate::error::Stopped;

/// A clean stop that is not over after this long is cut short: the others will find out.
const LEAVE_WITHIN: Duration = Duration::from_secs(1);

/// How far a clean stop is, and why it is made.
#[derive(Debug)]
pub(crate) struct Ending {
    stop: Stop,
    /// Why the node has to end.
    failure: Option<Stopped>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    LeavingUntil(Time),
    Done,
}

impl Ending {
    pub fn new() -> Ending {
        Ending { stop: Stop::No, failure: None }
    }

    /// Primaries are handed over, and the ring is left, unless that has begun.
    pub fn begin(&mut self, now: Time, stack: &mut Stack) {
        if self.stop == Stop::No {
            self.stop = Stop::LeavingUntil(now + LEAVE_WITHIN);
            stack.leave(now);
        }
    }

    /// The node cannot go on.
    pub fn fail(&mut self, now: Time, stack: &mut Stack, reason: Stopped) {
        self.failure = Some(reason);
        self.begin(now, stack);
    }

    pub fn failure(&mut self) -> Option<Stopped> {
        self.failure.take()
    }

    /// The ring has been left, which counts if that was asked for.
    pub fn left(&mut self) {
        if self.stop != Stop::No {
            self.stop = Stop::Done;
        }
    }

    pub fn is_over(&self) -> bool {
        self.stop == Stop::Done
    }

    pub fn next_timeout(&self) -> Time {
        match self.stop {
            Stop::LeavingUntil(bound) => bound,
            Stop::No | Stop::Done => Time::FAR,
        }
    }

    pub fn handle_timeout(&mut self) {
        tracing::warn!("the ring did not let this node go in time: it stops all the same");
        self.stop = Stop::Done;
    }
}
