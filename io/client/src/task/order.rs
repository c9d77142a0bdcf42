//! What is told to the task, and what it tells.

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::Stats;
use crate::buffers::{Ended, EventLog};
use crate::session::What;

pub(super) type Asker = oneshot::Sender<Ended>;

#[derive(Debug)]
pub(super) struct Order {
    pub(super) group: String,
    pub(super) what: What,
    pub(super) body: Bytes,
    pub(super) deadline: Instant,
    pub(super) asker: Asker,
}

/// What can be seen from outside while the task runs.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) stats: Stats,
    pub(super) events: EventLog,
}

pub(super) const POISONED: &str = "the client's task never panics with the lock held";
