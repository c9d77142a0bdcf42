//! This node's clients: their waiting calls, reads and watches, and the rate of replies.

use alloc::string::String;

use wire::{Duration, Time};

use super::{Reads, Watches};
use crate::callers::Callers;
use crate::pace::Pace;

/// This node's clients.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    /// Connections, and calls that wait for a reply.
    pub(crate) callers: Callers,
    pub(crate) watches: Watches,
    pub(crate) reads: Reads,
    /// The cluster's name, sent to each client that connects.
    cluster: String,
    /// The most calls that may wait here.
    room: usize,
    pace: Pace,
    /// Calls that services have answered since the start; `pace` derives its rate from it.
    answered: u64,
}

impl Clients {
    pub(crate) fn new(cluster: String, room: usize) -> Clients {
        Clients {
            callers: Callers::default(),
            watches: Watches::default(),
            reads: Reads::default(),
            cluster,
            room,
            pace: Pace::default(),
            answered: 0,
        }
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Whether a further call must be refused.
    pub(crate) fn is_full(&self) -> bool {
        self.callers.len() >= self.room
    }

    /// Counts a reply of a service.
    pub(crate) fn answer(&mut self) {
        self.answered += 1;
    }

    /// Updates the rate of replies. Called for each incoming call.
    pub(crate) fn observe(&mut self, now: Time) {
        self.pace.observe(now, self.answered);
    }

    /// The time until half of `waiting` calls will have been answered.
    pub(crate) fn retry_after(&self, waiting: usize) -> Duration {
        self.pace.retry_after(waiting)
    }
}
