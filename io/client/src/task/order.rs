//! The orders to the task, and the data that it shares.

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::buffers::{Ended, EventLog};
use crate::{Invocation, Stats};

pub(super) type Asker = oneshot::Sender<Ended>;

#[derive(Debug)]
pub(super) struct Order {
    pub(super) invocation: Invocation<'static>,
    pub(super) deadline: Instant,
    pub(super) asker: Asker,
}

/// The part that can be seen from outside while the task runs.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) stats: Stats,
    pub(super) events: EventLog,
}

pub(super) const POISONED: &str = "the client's task never panics with the lock held";
