//! One replica of a group executes a call before the others do, and no replica executes a call that
//! has killed two (`docs/protocol/poison.md`). A replica's own decisions are in `replica/lead.rs`.

mod handler;

use alloc::collections::{BTreeMap, BTreeSet};

use wire::{Duration, GroupId, Time};

/// The next request that a leader's node orders carries the leader's progress. After this time the
/// progress is ordered by itself.
const PROGRESS_AFTER: Duration = Duration::from_millis(1);

/// A replica that tries a call beside a silent leader may itself be silent for this many times the
/// time-out for leaders.
const SILENT_ROUNDS: u32 = 4;

/// A replica here waits until another has executed this call.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    number: u64,
    until: Time,
    /// The number of waits that ended in vain.
    rounds: u32,
}

/// The progress that leaders here have to report, and the replicas that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leading {
    /// Groups, and the number of calls executed here that the other replicas do not know of.
    untold: BTreeMap<GroupId, u64>,
    /// The time at which they are told if no request has done so.
    tell_at: Option<Time>,
    /// Groups whose replica here waits until its word is held.
    unheld: BTreeSet<GroupId>,
    /// Voting groups whose replica here waits for another.
    awaited: BTreeMap<GroupId, Awaited>,
}
