//! A group and its replicas, as a node sees them.

use serde::{Deserialize, Serialize};
use wire::ordered::{Durability, Hold, Style};
use wire::{Incarnation, Member, NodeId, ViewNumber};

/// What a node knows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// How it is replicated.
    pub style: Style,
    /// When a reply may leave.
    pub hold: Hold,
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

impl From<engine::GroupStatus> for GroupStatus {
    fn from(group: engine::GroupStatus) -> Self {
        let replica = |replica: engine::ReplicaStatus| ReplicaStatus {
            node: replica.member.node,
            incarnation: replica.member.incarnation,
            synced: replica.synced,
        };
        GroupStatus {
            name: group.name,
            style: group.options.style,
            hold: group.options.hold,
            durability: group.options.durability,
            view: group.view,
            primary: group.primary,
            replicas: group.replicas.into_iter().map(replica).collect(),
            sessions: group.sessions,
            executed: group.executed,
        }
    }
}
