//! A node's knowledge of the cluster and of itself, as people and tools read it.

mod counters;
mod exclusion;
mod group;
mod host;
mod node;
mod notes;
mod program;
mod ring;
mod security;
mod storage;
mod versions;

pub use self::ring::{LinkStatus, NodeLinks, RingStatus, absent, no_quorum};
pub use ::ring::{Buffers as BufferStatus, Fill};
pub use ::seal::Counters as SealCounters;
pub use counters::{Counters, HandshakeCounters, MalformedCounters};
pub use engine::{JournalStatus, NestedStatus};
pub use exclusion::{ChargeStatus, ExclusionStatus, SLOW_REMEDY, owed};
pub use group::{GroupStatus, LogStatus, ReplicaStatus};
pub use host::{HostStatus, ManagerStatus, ReplicaUse};
pub use node::{SocketStatus, Status};
pub use notes::NoteStatus;
pub use program::{ProgramState, ProgramStatus};
pub use security::{KeyChange, SealStatus, TlsStatus};
pub use storage::StorageStatus;
pub use versions::{NodeProgram, UnfitStatus, VersionsStatus};
