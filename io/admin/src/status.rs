//! What a node knows of the cluster and of itself, as people and tools read it.

mod counters;
mod exclusion;
mod group;
mod host;
mod nested;
mod node;
mod program;
mod ring;
mod security;
mod storage;

pub use self::ring::{BufferStatus, Fill, LinkStatus, NodeLinks, RingStatus, absent, no_quorum};
pub use ::seal::Counters as SealCounters;
pub use counters::{Counters, HandshakeCounters, MalformedCounters};
pub use exclusion::{ChargeStatus, ExclusionStatus, SLOW_REMEDY, owed};
pub use group::{GroupStatus, JournalStatus, LogStatus, ReplicaStatus};
pub use host::{HostStatus, ManagerStatus, ReplicaUse};
pub use nested::NestedStatus;
pub use node::{SocketStatus, Status};
pub use program::{ProgramState, ProgramStatus};
pub use security::{KeyChange, SealStatus, TlsStatus};
pub use storage::StorageStatus;
