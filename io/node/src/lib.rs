//! the driver around [`engine::Stack`]: what touches sockets, clocks, threads and files.
//!
//! - [`Node`] starts the data plane (`plane.rs`), one thread that runs the event loop, and composes
//!   it with everything else.
//! - [`Service`] is what it replicates, at the level of bytes; handlers run in `executor.rs`.
//! - [`Node::run`] has a program serve a replica in a process of its own (crate `supervisor`),
//!   which
//!   [`attach`] is the other end of (`attached.rs`).
//! - `registering.rs` is this node's part in the registry.
//! - `managing.rs` tells what the host has to do, and asks for what follows.
//! - `administration.rs` answers what the admin server (crate `admin`) asks.
//! - `control.rs` is how all these threads talk with the data plane.
//!
//! What a node is made with comes from crate `config`, what it tells from crate `admin`; both are
//! named here again, where the node's own functions take or give them.
#![forbid(unsafe_code)]

mod administration;
mod attached;
mod backups;
mod control;
mod error;
mod events;
mod executor;
mod incarnation;
mod key_file_writer;
mod liveness;
mod managing;
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
mod security;
mod service;
mod sockets;
pub mod storage;
mod transport;

pub use ::admin;
pub use admin::bench;
pub use admin::deployments::{DeploymentStatus, DeploymentsStatus, NodeDeployed, SeatStatus};
pub use admin::events::{
    DeviationCause, EventFormatter, EventKind, EventRecord, FaultCause, Interest, ReplicaRecord,
    Stamped,
};
pub use admin::registry::RegistryStatus;
pub use admin::status::{
    BufferStatus, ChargeStatus, Counters, ExclusionStatus, Fill, GroupStatus, HandshakeCounters,
    HostStatus, JournalStatus, KeyChange, LinkStatus, LogStatus, MalformedCounters, ManagerStatus,
    NestedStatus, NodeLinks, ProgramState, ProgramStatus, ReplicaStatus, ReplicaUse, RingStatus,
    SealCounters, SealStatus, Status, StorageStatus, TlsStatus,
};
pub use admin::{Explanation, IfLost, Standing, explain};
pub use attached::{AttachError, attach};
pub use backups::{Backup, BackupError, Content, write_backup};
pub use config::{
    Config, ConfigError, DEFAULT_CONFIG, Execution, ManagerKnobs, NodeAddress, Problem,
    ProgramConfig, ProgramProblem, RegistryKnobs, ReplicaConfig, RingKnobs, Security, TlsFiles,
    key_file,
};
pub use engine::{Event, HangRule, NestedError, ServiceOutcome};
pub use error::{
    DiscardError, HostError, MoveError, RestoreError, RestyleError, SaveError, StartError, Stopped,
    WaitError,
};
/// What people say of services, for tools.
pub use manager::cluster_state;
pub use node::Node;
pub use os::own_time::OwnTime;
pub use os::ports::{free_ring_addresses, free_ring_addresses_at};
pub use os::realtime;
pub use service::{BoxError, Call, Context, Factory, HostOptions, Service};
pub use supervisor::ProgramError;
