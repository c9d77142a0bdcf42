//! The driver around [`engine::Stack`]: sockets, clocks, threads and files.
//!
//! - [`Node`] starts the data plane (`plane.rs`), one thread that runs the event loop, and composes
//!   it with everything else.
//! - [`Service`] is replicated, at the level of bytes; handlers run in `executor.rs`.
//! - [`Node::run`] has a program serve a replica in a process of its own (crate `supervisor`). The
//!   program's end is [`attach`] (`attached.rs`).
//! - `registering.rs` is this node's part in the registry.
//! - `celling.rs` is this node's part in its cell's book.
//! - `managing.rs` reports the host's load and proposes changes.
//! - `administration.rs` answers the admin server (crate `admin`).
//! - `control.rs` connects all these threads with the data plane.
//!
//! A node is made from a configuration of crate `config` and reports in types of crate `admin`.
//! Both are exported again here, because the node's functions take or return them.
#![forbid(unsafe_code)]

mod administration;
mod attached;
mod backups;
mod celling;
mod control;
mod directing;
mod error;
mod events;
mod executor;
mod heavy;
mod incarnation;
mod key_file_writer;
mod liveness;
mod managing;
mod names;
mod nested;
mod node;
mod opening;
mod order;
mod plane;
#[cfg(feature = "planted-bugs")]
mod plant;
mod poller;
mod programs;
mod registering;
mod renewal;
mod roster_file;
mod security;
mod service;
mod shared;
mod sockets;
pub mod storage;
mod streams;
mod transport;

pub use ::admin;
pub use admin::bench;
pub use admin::cell::{CellAnswer, CellStatus, Neighbour, Ranks};
pub use admin::deployments::{DeploymentStatus, DeploymentsStatus, NodeDeployed, SeatStatus};
pub use admin::events::{
    DeviationCause, EventFormatter, EventKind, EventRecord, FaultCause, Interest, ReplicaRecord,
    Stamped,
};
pub use admin::registry::RegistryStatus;
pub use admin::status::{
    BufferStatus, ChargeStatus, Counters, ExclusionStatus, Fill, GroupStatus, HandshakeCounters,
    HostStatus, JournalStatus, KeyChange, LinkStatus, LogStatus, MalformedCounters, ManagerStatus,
    NestedStatus, NodeLinks, NoteStatus, ProgramState, ProgramStatus, ReplicaStatus, ReplicaUse,
    RingStatus, SealCounters, SealStatus, Status, StorageStatus, TlsStatus,
};
pub use admin::{Explanation, IfLost, Standing, explain};
pub use attached::{AttachError, attach, attach_in_lanes};
pub use backups::{Backup, BackupError, Content, write_backup};
pub use config::{
    Config, ConfigError, DEFAULT_CONFIG, Execution, ManagerKnobs, NodeAddress, Problem,
    ProgramConfig, ProgramProblem, RegistryKnobs, ReplicaConfig, RingKnobs, Security, TlsFiles,
    founder, key_file,
};
pub use engine::{Event, HangRule, NestedError, ReserveNews, ServiceOutcome};
pub use error::{
    DiscardError, GrowthRefused, HostError, MoveError, ReloadError, RestoreError, RestyleError,
    SaveError, StartError, Stopped, WaitError,
};
/// The deployments, for tools.
pub use manager::cluster_state;
pub use node::Node;
pub use os::own_time::OwnTime;
pub use os::ports::{free_ring_addresses, free_ring_addresses_at};
pub use os::{realtime, sched, threads};
pub use service::{
    BoxError, Call, Context, Factory, HostOptions, Service, digest_of_bytes, has_same_bytes,
};
pub use supervisor::ProgramError;
