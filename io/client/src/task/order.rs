//! The orders to the task, and the data that it shares.

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::buffers::{Ended, EventLog};
use crate::{Followed, Invocation, Stats};

pub(super) type Asker = oneshot::Sender<Ended>;

#[derive(Debug)]
pub(super) enum Order {
    Call { invocation: Invocation<'static>, deadline: Instant, asker: Asker },
    Follow(Follower),
}

/// Somebody who is told of a group's targets.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) group: String,
    pub(super) told: watch::Sender<Followed>,
}

/// The part that can be seen from outside while the task runs.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) stats: Stats,
    pub(super) events: EventLog,
}

pub(super) const POISONED: &str = "the client's task never panics with the lock held";
