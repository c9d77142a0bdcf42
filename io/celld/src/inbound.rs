//! The queue by which everything comes to the task that owns the router.

use admin::cell::CellStatus;
use cells::{Cell, End, Made, Path, Refusal, Verdict};
use tokio::sync::{mpsc, oneshot};
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
    /// A caller of this cell calls a group of another one, and waits for the end.
    Call { made: Box<Made>, done: oneshot::Sender<End> },
    /// A caller of this cell will call this group of that one.
    Bound { to: Path, group: String },
    /// Whether the first of the targets can be reached from here that a question has found.
    Probed { token: u64, targets: Targets, is_reached: bool },
    /// A call was executed in the cell, and ended so.
    Executed { call: u64, end: End },
}
