//! The status of a node: its ring, its groups, its keys.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::histogram::Times;
use wire::ordered::{About, GroupOptions};
use wire::{Member, RingId, ViewNumber};

use super::{GrowthStatus, KeyStatus, LogStatus, NestedStatus, Versions};

/// A node's view of the cluster, for `steadfast status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// This node.
    pub me: Member,
    /// The ring.
    pub ring: RingStatus,
    /// The groups that this node knows, in order of name.
    pub groups: Vec<GroupStatus>,
    /// The keys that seal datagrams; `None`: datagrams are not sealed.
    pub keys: Option<KeyStatus>,
    /// The nested calls that this node's replicas have ordered.
    pub nested: NestedStatus,
    /// The versions in use.
    pub versions: Versions,
    /// The nodes that count.
    pub growth: GrowthStatus,
}

/// A node's view of its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingStatus {
    /// `operational`, `gather`, `commit` or `recovery`.
    pub state: &'static str,
    /// Its id.
    pub id: RingId,
    /// Its members, in order of id.
    pub members: Vec<Member>,
    /// The ring has the quorum, so groups act in it; `None` until the verdict.
    pub quorate: Option<bool>,
    /// The number of the last quorate component that this node was in.
    pub epoch: u64,
    /// The last sequence number delivered here.
    pub delivered: u64,
    /// How full the ring's buffers are; `None` if the ordering layer does not report it.
    pub buffers: Option<ring::Buffers>,
    /// How long the token was away from this node, each time; `None` if the token parks.
    pub rotations: Option<Times>,
}

/// A node's view of a group.
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
    /// The things that replicas cannot do with the state, and why; in order of node.
    pub notes: Vec<StateNote>,
    /// Sessions of this node's replica; `None` without a replica or a running service.
    pub sessions: Option<usize>,
    /// Requests of the group's history that this node's replica has executed, if it has one.
    pub executed: Option<u64>,
    /// The service of this node's replica is hung.
    pub hung: bool,
    /// The node that has the [deposit](super::Restore) with which the group is to begin.
    pub depositor: Option<Member>,
    /// The log of this node's replica; only of a synced replica of a cold passive group.
    pub log: Option<LogStatus>,
    /// The journal of this node's replica, if a program serves it.
    pub journal: Option<JournalStatus>,
}

/// A journal: the state and the messages after it, from which a new program continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStatus {
    /// The journal is complete: it suffices to rebuild the group's state.
    pub whole: bool,
    /// Messages that were delivered after the journal's snapshot.
    pub records: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Bytes of the snapshot.
    pub state_bytes: usize,
}

/// A thing that a replica cannot do with its group's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateNote {
    /// Its node.
    pub member: Member,
    /// The thing that it cannot do.
    pub about: About,
    /// The reason, or the fields.
    pub text: String,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Its node.
    pub member: Member,
    /// It has the state.
    pub synced: bool,
}
