//! The deployments and their state, for people and tools (`docs/protocol/deployment.md`).

use std::collections::BTreeMap;

use manager::Picture;
use manager::cluster_state::{ClusterState, Deployment, Placed, Undone, Upgrade};
use manager::placement::{Seat, survey};
use serde::{Deserialize, Serialize};
use wire::system::MANAGER_ID;
use wire::{NodeId, Share, Time};

use crate::status::NoteStatus;

/// The cluster state, as the asked node has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentsStatus {
    /// The node that says where replicas are to be.
    pub leads: Option<NodeId>,
    /// All nodes that ever told of themselves, in order of id.
    pub nodes: Vec<NodeDeployed>,
    /// All deployments, in order of their groups' names.
    pub deployments: Vec<DeploymentStatus>,
}

/// A node that can have replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDeployed {
    /// The node.
    pub node: NodeId,
    /// It is in the cluster now.
    pub present: bool,
    /// It is to be emptied.
    pub drained: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The capacity of its host, in millionths of a processor.
    pub capacity: Share,
    /// The groups of which it is to have replicas.
    pub replicas: Vec<String>,
}

/// A deployment, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentStatus {
    /// The deployment as people requested it.
    pub deployment: Deployment,
    /// As many replicas as are wanted have the state, at nodes that may keep them, and there are no
    /// others.
    pub settled: bool,
    /// Some replicas still run another program.
    pub upgrade: Option<Upgrade>,
    /// The last upgrade was taken back, and why.
    pub undone: Option<Undone>,
    /// The things that its replicas cannot do with the state, in order of node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<NoteStatus>,
    /// Every node, as a place for it.
    pub seats: Vec<SeatStatus>,
}

/// A node as a place for one deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatStatus {
    /// The node.
    pub node: NodeId,
    /// It is to have a replica.
    pub on: bool,
    /// It has one with the state.
    pub synced: bool,
    /// Why it is not to have one, or not to keep it.
    pub objection: Option<String>,
    /// How much is wrong with it by the policy: replicas at the same value of the label, for one.
    pub flaws: Option<u32>,
}

impl From<Seat> for SeatStatus {
    fn from(seat: Seat) -> SeatStatus {
        let Seat { node, on, synced, objection, cost } = seat;
        SeatStatus { node, on, synced, objection, flaws: cost.map(|cost| cost.flaws) }
    }
}

impl DeploymentsStatus {
    /// The state at the moment `wall`, from the cluster state, the manager's picture, and what a
    /// group's replicas say about its state.
    pub fn new(
        wall: Time,
        picture: &Picture,
        cluster_state: &ClusterState,
        notes: impl Fn(&str) -> Vec<NoteStatus>,
    ) -> DeploymentsStatus {
        let shape = picture.groups.iter().find(|shape| shape.id == MANAGER_ID);
        let node =
            |(node, introduced): (NodeId, &manager::cluster_state::Introduced)| NodeDeployed {
                node,
                present: picture.nodes.iter().any(|(present, _)| *present == node),
                drained: cluster_state.is_drained(node),
                labels: introduced.labels.clone(),
                capacity: introduced.capacity,
                replicas: cluster_state
                    .at(node)
                    .map(|deployment| deployment.group.clone())
                    .collect(),
            };
        let deployment = |placed: &Placed| {
            let seats = survey(wall, picture, cluster_state, placed);
            let wanted = placed.deployment.replicas as usize;
            let well = |seat: &&Seat| seat.on && seat.synced && seat.objection.is_none();
            DeploymentStatus {
                deployment: placed.deployment.clone(),
                settled: seats.iter().filter(well).count() == wanted
                    && placed.on.len() == wanted
                    && placed.upgrade.is_none(),
                upgrade: placed.upgrade.clone(),
                undone: placed.undone.clone(),
                notes: notes(&placed.deployment.group),
                seats: seats.into_iter().map(SeatStatus::from).collect(),
            }
        };
        DeploymentsStatus {
            leads: shape.map(|shape| shape.primary),
            nodes: cluster_state.nodes().map(node).collect(),
            deployments: cluster_state.placed().map(deployment).collect(),
        }
    }
}
