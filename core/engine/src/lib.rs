//! The rooms above the ring: configurations with a quorum, groups and their views, sessions with
//! exactly-once replies, state transfer. [`Stack`] is a whole node without its sockets, above
//! whatever orders messages ([`ordering::Ordering`]): the ring, unless another engine is put there.
//!
//! Everything here is a pure machine, described in `docs/protocol/group.md`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod api;
mod base;
mod bench;
mod bug;
mod callers;
mod changes;
mod component;
mod component_order;
mod directory;
mod disk;
mod faults;
mod groups;
mod keys;
mod levels;
pub mod ordering;
mod outgoing;
mod pace;
mod parts;
mod quorum;
mod replica;
mod replicas;
mod replies;
mod roll;
mod session;
mod stack;
mod stopwatch;
mod style;
mod tally;

pub use api::{
    AwayCall, AwayWait, Begun, BenchError, BenchProgress, BenchRequest, BenchResult, Checkpoints,
    Command, Config, DeploymentNews, Deviation, DiscardError, Event, Executed, GroupStatus,
    GrowthError, GrowthStatus, HangRule, HostError, JournalStatus, Kept, KeyChangeStatus,
    KeyCommand, KeyError, KeyStatus, LogStatus, MoveError, NestedCall, NestedError, NestedStatus,
    Nodes, Output, ProgramNews, Quorum, ReplicaStatus, ReserveNews, Restore, RestoreError,
    RestyleError, RingStatus, RosterNews, SaveError, Saved, ServiceOutcome, StateNote, Status,
    StorageNews, Suspicion, Ticket, Transfer, UpgradeError, Versions,
};
#[cfg(feature = "planted-bugs")]
pub use bug::Bug;
pub use changes::{Applied, Changes};
pub use disk::Recovery;
pub use ring::Route;
pub use stack::Stack;
