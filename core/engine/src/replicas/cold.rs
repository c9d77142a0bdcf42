//! Cold passive groups: when the primary takes a checkpoint, how long a promotion takes, and whom a
//! reply is brought to (`docs/protocol/group.md`, "Cold passive").

mod handler;

use wire::{Duration, Time};

use crate::api::Checkpoints;

/// After a checkpoint that could not be taken, the next is tried no sooner than this.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The times of this node's replica of a cold passive group.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ColdTimes {
    /// When it takes checkpoints as primary.
    pub(crate) checkpoints: Checkpoints,
    /// When the first request came that is in no checkpoint.
    waiting_since: Option<Time>,
    /// When the last checkpoint was there.
    checkpointed: Option<Time>,
    /// No checkpoint is tried before.
    not_before: Time,
    /// It is to hand over, after a checkpoint.
    pub(crate) last_one: bool,
    /// Its promotion began then, and its service had the checkpoint then.
    promotion: Option<(Time, Time)>,
    /// It is primary no more, and answers what was ordered up to this place of the component.
    pub(crate) finishing: u64,
}

/// A step of a replica for which times are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Milestone {
    Promoting,
    Restored,
    Replayed(u64),
    Checkpointed,
    CheckpointFailed,
}
