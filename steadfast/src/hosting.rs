//! Services and nodes (feature `node`).

pub use ::admin::bench;
pub use config::{
    Config as NodeConfig, ConfigError, DEFAULT_CONFIG, Execution, Folders, JobsKnobs, ManagerKnobs,
    NodeAddress, Others, ProgramConfig, ProgramProblem, RegistryKnobs, ReplicaConfig, Rights,
    RingKnobs, Rule, SHORT_CONFIG, founder, key_file,
};
pub use node::{
    AttachError, Backup, BackupError, BoxError, Call, Content, Context, DiscardError, Factory,
    HangRule, HostError, HostOptions, MoveError, NestedError, Node, ProgramError, ReloadError,
    RestoreError, RestyleError, SaveError, Service, ServiceOutcome, StartError, Stopped, WaitError,
    attach, attach_in_lanes, cluster_state, write_backup,
};
pub use os::ports::{free_ring_addresses, free_ring_addresses_at};
pub use os::{realtime, threads};

/// A node's status, its own and its cluster's: [`Node::status`], `steadfast status --json`.
pub mod status {
    pub use ::admin::deployments::{DeploymentStatus, DeploymentsStatus, NodeDeployed, SeatStatus};
    pub use ::admin::growth::{MovingStatus, NodesStatus};
    pub use ::admin::registry::RegistryStatus;
    pub use ::admin::status::{
        BufferStatus, ChargeStatus, Counters, ExclusionStatus, Fill, GroupStatus,
        HandshakeCounters, HostStatus, JournalStatus, KeyChange, LinkStatus, LogStatus,
        MalformedCounters, ManagerStatus, NestedStatus, NodeLinks, NodeProgram, NoteStatus,
        ProgramState, ProgramStatus, ReplicaStatus, ReplicaUse, RingStatus, SealCounters,
        SealStatus, Status, StorageStatus, TlsStatus, UnfitStatus, VersionsStatus,
    };
    pub use ::admin::{Explanation, IfLost, Standing, explain};
    pub use os::own_time::OwnTime;
    pub use os::realtime::{Grant, RealtimeStatus};
}

/// The admin protocol: what tools ask of a node, at its local socket or over TLS.
pub mod admin {
    pub use ::admin::growth::WelcomeAnswer;
    pub use ::admin::server::ServeError;
    pub use ::admin::{
        AdminError, Client, DeployAnswer, DoneAnswer, Events, KeyAnswer, KeyAsk, LevelAnswer,
        MoveAnswer, PoisonedAnswer, PoisonedCall, ReloadAnswer, Request, RestoreAnswer,
        RestyleAnswer, SaveAnswer, StateAnswer, StopAnswer, digest,
    };
}

/// Events at a node ([`Node::subscribe`], [`admin::Client::events`]).
pub mod node_events {
    pub use ::admin::events::{
        DeviationCause, EventFormatter, EventKind, EventRecord, FaultCause, Interest,
        ReplicaRecord, Stamped,
    };
    pub use node::Event;
}
