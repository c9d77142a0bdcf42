//! One replica of a group executes a call before the others do, and what kills two is executed by
//! nobody (`docs/protocol/poison.md`). What a replica decides: `replica/lead.rs`.

mod handler;

use alloc::collections::{BTreeMap, BTreeSet};

use wire::{Duration, GroupId, Time};

/// What a leader has executed is told by the next request that its node orders; after this time by
/// itself.
const PROGRESS_AFTER: Duration = Duration::from_millis(1);

/// A replica that tries a call beside a silent leader may itself be silent for this many times the
/// time-out for leaders.
const SILENT_ROUNDS: u32 = 4;

/// A replica here waits until another has executed this call.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    number: u64,
    until: Time,
    /// So often it was waited for in vain.
    rounds: u32,
}

/// What leaders here have to tell.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    /// Groups whose others do not know that so many calls were executed here.
    untold: BTreeMap<GroupId, u64>,
    /// When they are told if no request has done so.
    tell_at: Option<Time>,
    /// Groups whose replica here waits until its word is held.
    unheld: BTreeSet<GroupId>,
    /// Voting groups whose replica here waits for another.
    awaited: BTreeMap<GroupId, Awaited>,
}
