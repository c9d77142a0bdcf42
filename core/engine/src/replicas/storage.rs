//! Groups on disk: what is given to the store, and what waits until it is there
//! (`docs/protocol/store.md`, "How groups use it").

mod handler;

use wire::ViewNumber;
use wire::ordered::Place;

/// How much of a group is in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Logged {
    /// Since the last snapshot, or the one that is being taken.
    pub(crate) records: u64,
    pub(crate) bytes: usize,
    /// How many records of all strands there were, and the place, when the state was taken that is
    /// on its way.
    pub(crate) taken: Option<(u64, Place)>,
    /// The same when the state was given up that a transfer is to replace.
    pub(crate) lost: (u64, Place),
    /// The transfer that is over when its state is on the disk.
    pub(crate) syncing: Option<ViewNumber>,
}
