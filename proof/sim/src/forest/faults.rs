//! Faults: nodes that die or stop, ways that are cut, cells that are lost whole.

use wire::Duration;

use crate::celled::At;

mod striking;

/// A cell whose parent is lost whole is attached elsewhere within this time (`stheno.txt`, 1.1: a
/// reorganisation fails after a second), and the time that dials of silent hosts take here.
const REATTACHED: Duration = Duration::from_millis(1_800);

/// A link that nothing comes by is closed within this time: two pings of an idle one, and round trips
/// of this world.
const DEAF: Duration = Duration::from_millis(1_000);

/// A fault that lasts until it is over.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// A node was killed, and starts again then.
    Kill(At),
    /// A node is stopped until then.
    Stop(At),
    /// Nothing travels between two cells.
    Cut(usize, usize),
    /// Nothing travels from one cell to another; the other way is open.
    Silence(usize, usize),
    /// All nodes of a cell are killed.
    KillCell(usize),
    /// All nodes of a cell are stopped.
    StopCell(usize),
}
