//! The inputs and outputs of a [`Stack`](crate::Stack).

mod backup;
mod bench;
mod cause;
mod cold;
mod commands;
mod config;
mod deployment;
mod event;
mod growth;
mod hang;
mod keys;
mod moves;
mod nested;
mod output;
mod program;
mod reserve;
mod restyle;
mod status;
mod storage;
mod transfer;
mod upgrade;

use wire::limits::{MAX_GROUPS, MAX_NAME};

pub use crate::disk::Kept;
pub use backup::{DiscardError, Nodes, Restore, RestoreError, SaveError, Saved};
pub use bench::{BenchError, BenchProgress, BenchRequest, BenchResult};
pub use cause::{Deviation, Suspicion};
pub use cold::{Checkpoints, LogStatus};
pub use commands::{Command, Executed, ServiceOutcome, Ticket};
pub use config::{Config, Quorum};
pub use deployment::DeploymentNews;
pub use event::Event;
pub use growth::{GrowthError, GrowthStatus, RosterNews};
pub use hang::HangRule;
pub use keys::{KeyChangeStatus, KeyCommand, KeyError, KeyStatus};
pub use moves::MoveError;
pub use nested::{AwayCall, AwayWait, NestedCall, NestedError, NestedStatus};
pub use output::Output;
pub use program::{Begun, ProgramNews};
pub use reserve::ReserveNews;
pub use restyle::RestyleError;
pub use status::{GroupStatus, JournalStatus, ReplicaStatus, RingStatus, StateNote, Status};
pub use storage::StorageNews;
pub use transfer::Transfer;
pub use upgrade::{UpgradeError, Versions};

/// The reason why a replica cannot be hosted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The name is empty or too long.
    #[error("a group's name has 1 to {MAX_NAME} bytes, this one {0}")]
    Name(usize),
    /// A colon is between a cell's path and a group's name.
    #[error("a group's name has no colon: that stands behind the path of a group's cell")]
    Colon,
    /// This node hosts a replica of the group already.
    #[error("this node hosts a replica of this group already: a node hosts at most one")]
    Twice,
    /// A stateless group has no state to keep.
    #[error(
        "a stateless group has no state that a disk could keep: leave durability out, or choose another style"
    )]
    DiskOfStateless,
    /// There is no storage.
    #[error(
        "a group with durability = \"disk\" needs storage at this node: name a folder in [storage] of its configuration \
         (Config::storage), or host the group elsewhere"
    )]
    NoStorage,
    /// Too many groups.
    #[error("this node hosts {MAX_GROUPS} replicas already, the limit")]
    TooMany,
}
