//! What a node knows of its ring and of groups, for people.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::histogram::Times;
use wire::ordered::GroupOptions;
use wire::{Member, RingId, ViewNumber};

use super::{KeyStatus, LogStatus, NestedStatus};

/// What a node knows of the cluster, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// This node.
    pub me: Member,
    /// The ring.
    pub ring: RingStatus,
    /// The groups that this node knows, in order of name.
    pub groups: Vec<GroupStatus>,
    /// The keys that seal datagrams; `None` where they are not sealed.
    pub keys: Option<KeyStatus>,
    /// What this node's replicas had ordered of calls between groups.
    pub nested: NestedStatus,
}

/// What a node knows of its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingStatus {
    /// `operational`, `gather`, `commit` or `recovery`.
    pub state: &'static str,
    /// Its id.
    pub id: RingId,
    /// Its members, in order of id.
    pub members: Vec<Member>,
    /// It has the quorum, and groups act in it; `None` until that is decided.
    pub quorate: Option<bool>,
    /// The number of the last quorate component that this node was in.
    pub epoch: u64,
    /// The last sequence number delivered here.
    pub delivered: u64,
    /// How full the ring's buffers are, if what orders the messages knows.
    pub buffers: Option<ring::Buffers>,
    /// How long the token was away each time, on a ring where it always circulates.
    pub rotations: Option<Times>,
}

/// What a node knows of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: GroupOptions,
    /// The number of its view.
    pub view: ViewNumber,
    /// The primary, if any replica has the state.
    pub primary: Option<Member>,
    /// The replicas in order of rank.
    pub replicas: Vec<ReplicaStatus>,
    /// Sessions kept by this node's replica, if it has one, and its service runs.
    pub sessions: Option<usize>,
    /// Requests executed in the group's history, by this node's replica, if it has one.
    pub executed: Option<u64>,
    /// The service of this node's replica is hung.
    pub hung: bool,
    /// The node that has the state that the group waits for to begin with.
    pub depositor: Option<Member>,
    /// If the group is a cold passive one and this node's replica has its state.
    pub log: Option<LogStatus>,
    /// If a program serves this node's replica: what is kept here in case that it dies.
    pub journal: Option<JournalStatus>,
}

/// What a node keeps in case that a program dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStatus {
    /// The group's state follows from it.
    pub whole: bool,
    /// Messages that were delivered since the state was taken.
    pub records: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Bytes of the state.
    pub state_bytes: usize,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Its node.
    pub member: Member,
    /// It has the state.
    pub synced: bool,
}
