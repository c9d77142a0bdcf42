//! The status of a group and its replicas, as seen by a node.

use engine::JournalStatus;
use serde::{Deserialize, Serialize};
use wire::ordered::{AckLevel, Durability, Style};
use wire::{Incarnation, Member, NodeId, Time, ViewNumber};

use super::notes::NoteStatus;

/// A node's view of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How it is replicated.
    pub style: Style,
    /// When a reply may leave.
    pub ack: AckLevel,
    /// Where its requests are kept.
    #[serde(default)]
    pub durability: Durability,
    /// The number of its view.
    pub view: ViewNumber,
    /// The primary, if any replica has the state.
    pub primary: Option<Member>,
    /// The replicas in order of rank.
    pub replicas: Vec<ReplicaStatus>,
    /// The things that replicas cannot do with the state, in order of node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteStatus>,
    /// Sessions of this node's replica, if it has one.
    pub sessions: Option<usize>,
    /// Requests of the group's history that this node's replica has executed, if it has one.
    pub executed: Option<u64>,
    /// The service of this node's replica is hung. The replica is about to leave, or stays because
    /// no other replica has the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hung: bool,
    /// The node with the restored state with which the group is to begin, until a replica takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depositor: Option<Member>,
    /// The checkpoint and log of this node's replica of a cold passive group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogStatus>,
    /// The journal of this node's replica, if a program serves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalStatus>,
}

/// The checkpoint and the log of a cold passive group's replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Requests after the last checkpoint.
    pub requests: u64,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// Bytes of the last checkpoint, with its sessions. 0: the service's initial state.
    pub checkpoint_bytes: usize,
    /// Milliseconds since the last checkpoint arrived. `None`: none arrived since this replica
    /// joined.
    pub checkpoint_age_ms: Option<u64>,
    /// The service runs here.
    pub runs: bool,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its node.
    pub node: NodeId,
    /// The node's incarnation.
    pub incarnation: Incarnation,
    /// It has the state.
    pub synced: bool,
}

impl GroupStatus {
    /// Converts the engine's status. `now` turns times into ages.
    pub fn new(group: engine::GroupStatus, now: Time) -> Self {
        let replica = |replica: engine::ReplicaStatus| ReplicaStatus {
            node: replica.member.node,
            incarnation: replica.member.incarnation,
            synced: replica.synced,
        };
        GroupStatus {
            name: group.name,
            style: group.options.style,
            ack: group.options.ack,
            durability: group.options.durability,
            view: group.view,
            primary: group.primary,
            replicas: group.replicas.into_iter().map(replica).collect(),
            notes: group.notes.into_iter().map(NoteStatus::from).collect(),
            sessions: group.sessions,
            executed: group.executed,
            hung: group.hung,
            depositor: group.depositor,
            log: group.log.map(|log| LogStatus {
                requests: log.requests,
                bytes: log.bytes,
                checkpoint_bytes: log.checkpoint_bytes,
                checkpoint_age_ms: log.checkpointed.map(|then| age_ms(then, now)),
                runs: log.runs,
            }),
            journal: group.journal,
        }
    }
}

impl GroupStatus {
    /// The things that keep copies of the group's state from being as many as they should be, each with its
    /// reason and a remedy.
    pub fn state_troubles(&self) -> impl Iterator<Item = String> + '_ {
        let lacking = self.replicas.iter().filter(|replica| !replica.synced);
        let lacking: Vec<NodeId> = lacking.map(|replica| replica.node).collect();
        self.notes.iter().filter_map(move |note| note.trouble(&self.name, &lacking))
    }

    /// A replica of this node has a trouble with the state.
    pub fn has_state_trouble(&self, node: NodeId) -> bool {
        self.notes.iter().any(|note| note.node == node && note.about.is_trouble())
    }
}

fn age_ms(then: Time, now: Time) -> u64 {
    u64::try_from(now.since(then).as_millis()).unwrap_or(u64::MAX)
}
