//! The queue by which everything comes to the task that owns the router.

use admin::cell::CellStatus;
use cells::{Call, Cell, End, Path, Refusal, Verdict};
use tokio::sync::{mpsc, oneshot};
use wire::Duration;
use wire::client::Targets;

/// Things that wait to be taken by the task. Threads that bring more wait for room.
pub(crate) const MAX_INBOUND: usize = 4_096;

/// The sending end.
pub(crate) type Tell = mpsc::Sender<Inbound>;

/// Something for the router to know.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// The node's copy of the book, as it is now.
    Book(Box<(CellStatus, Cell)>),
    /// The node does not answer.
    Blind,
    /// Something has happened to a link.
    Links(links::Event),
    /// The group's verdict on an order; `Err(None)`: nobody ordered it.
    Verdict { ask: u64, verdict: Result<Verdict, Option<Refusal>> },
    /// The targets of a group of the cell, by the follower of this number.
    Located { group: String, follower: u64, targets: Option<Targets> },
    /// A caller of this cell calls a group of that one, and waits for the end.
    Call { to: Path, call: Box<Call>, left: Duration, done: oneshot::Sender<End> },
    /// A call was executed in the cell, and ended so.
    Executed { call: u64, end: End },
}
