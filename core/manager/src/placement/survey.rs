//! A report on a deployment's places for people: why it is where it is, and where it would go.

use alloc::string::String;
use alloc::vec::Vec;

use wire::{Duration, NodeId, Time};

use super::Placer;
use super::policy::{self, Cost};
use super::site::Site;
use crate::bug::Planted;
use crate::cluster_state::{ClusterState, Command, Deployment, Placed, Refusal};
use crate::picture::Picture;

/// A node, as a place for a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The node.
    pub node: NodeId,
    /// It is to have a replica.
    pub on: bool,
    /// It has one, with the state.
    pub synced: bool,
    /// Why it is not to have one, or not to keep it.
    pub objection: Option<String>,
    /// The cost there, by the policy, beside the others that are placed.
    pub cost: Option<Cost>,
}

/// All nodes that ever told of themselves, in order of id. `wall` is the clock of ordered time.
pub fn survey(
    wall: Time,
    picture: &Picture,
    cluster_state: &ClusterState,
    placed: &Placed,
) -> Vec<Seat> {
    let site = Site { picture, cluster_state, wall, planted: Planted::default() };
    let deployment = &placed.deployment;
    let policy = policy::distribution(deployment);
    let seat = |node: NodeId| {
        let others = placed.on.iter().filter(|other| **other != node);
        let beside: Vec<_> = others.filter_map(|other| site.host(*other, deployment)).collect();
        let on = placed.on.contains(&node);
        let room = on || cluster_state.has_room(deployment, node);
        let objection = site.objection(placed, node);
        let full = || String::from("what is placed there leaves too little of its processors");
        Seat {
            node,
            on,
            synced: site.is_synced(deployment, node),
            objection: objection.or_else(|| (!room).then(full)),
            cost: site.host(node, deployment).and_then(|host| policy.cost(&host, &beside)),
        }
    };
    cluster_state.nodes().map(|(node, _)| seat(node)).collect()
}

/// Where replicas would be if this was deployed now, and what each node is as a place.
///
/// # Errors
/// It would be refused.
pub fn preview(
    wall: Time,
    picture: &Picture,
    cluster_state: &ClusterState,
    deployment: Deployment,
) -> Result<Vec<Seat>, Refusal> {
    let (mut cluster_state, group) = (cluster_state.clone(), deployment.group.clone());
    cluster_state.apply(wall, Command::Deploy(deployment))?;
    let mut now = Time::ZERO;
    for _ in 0..picture.nodes.len() {
        now += Duration::from_secs(3_600);
        for (_, command) in Placer::default().look(now, wall, picture, &cluster_state) {
            if matches!(&command, Command::Place { group: of, .. } if *of == group) {
                cluster_state.apply(wall, command)?;
            }
        }
    }
    Ok(cluster_state
        .of(&group)
        .map(|placed| survey(wall, picture, &cluster_state, placed))
        .unwrap_or_default())
}
