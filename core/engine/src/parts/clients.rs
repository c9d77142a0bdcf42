//! Clients here: their waiting calls, and how quickly those are answered.

use alloc::string::String;

use wire::{Duration, Time};

use super::{Reads, Watches};
use crate::callers::Callers;
use crate::pace::Pace;

/// This node's knowledge of clients.
pub(crate) struct Clients {
    /// Their connections, and the calls that wait.
    pub(crate) callers: Callers,
    pub(crate) watches: Watches,
    pub(crate) reads: Reads,
    /// The name of the cluster, for clients that connect.
    cluster: String,
    /// The number of calls that may wait here.
    room: usize,
    pace: Pace,
    /// Calls answered by their service.
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

    /// Whether no further call may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.callers.len() >= self.room
    }

    /// Counts a service's answer.
    pub(crate) fn answer(&mut self) {
        self.answered += 1;
    }

    /// Observes the answers when a call comes.
    pub(crate) fn observe(&mut self, now: Time) {
        self.pace.observe(now, self.answered);
    }

    /// Returns after what time half of so many calls will have been answered.
    pub(crate) fn retry_after(&self, waiting: usize) -> Duration {
        self.pace.retry_after(waiting)
    }
}
