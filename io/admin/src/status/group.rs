//! A group and its replicas, as a node sees them.

use engine::JournalStatus;
use serde::{Deserialize, Serialize};
use wire::ordered::{AckLevel, Durability, Style};
use wire::{Incarnation, Member, NodeId, Time, ViewNumber};

/// What a node knows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How it is replicated.
    pub style: Style,
    /// When a reply may leave.
    pub ack: AckLevel,
    /// Where it is kept.
    #[serde(default)]
    pub durability: Durability,
    /// The number of its view.
    pub view: ViewNumber,
    /// The primary, if any replica has the state.
    pub primary: Option<Member>,
    /// The replicas in order of rank.
    pub replicas: Vec<ReplicaStatus>,
    /// Sessions kept by this node's replica, if it has one.
    pub sessions: Option<usize>,
    /// Requests executed in the group's history, by this node's replica, if it has one.
    pub executed: Option<u64>,
    /// The service of this node's replica is hung, and stays as no other has the state, or is about to go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hung: bool,
    /// The node that has the state with which the group is to begin, and that no replica has yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depositor: Option<Member>,
    /// What this node's replica of a cold passive group keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogStatus>,
    /// What this node keeps for the program that serves its replica, in case that it dies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalStatus>,
}

/// What a replica of a cold passive group keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStatus {
    /// Requests that are in no checkpoint.
    pub requests: u64,
    /// Bytes of their arguments.
    pub bytes: usize,
    /// Bytes of the last checkpoint, with its sessions. 0: the service's initial state.
    pub checkpoint_bytes: usize,
    /// Milliseconds since that came. `None`: there was none since this replica joined.
    pub checkpoint_age_ms: Option<u64>,
    /// Its service runs here.
    pub runs: bool,
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its node.
    pub node: NodeId,
    /// Which of the node's lives.
    pub incarnation: Incarnation,
    /// It has the state.
    pub synced: bool,
}

impl GroupStatus {
    /// As the engine says at this moment.
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

fn age_ms(then: Time, now: Time) -> u64 {
    u64::try_from(now.since(then).as_millis()).unwrap_or(u64::MAX)
}
