//! Deployments are where they should be: as many replicas as are wanted, on hosts that may have
//! them, and nothing moves without a reason.
//!
//! Source: docs/protocol/deployment.md; `jgroup-arm.txt`, section 2. The checker knows nothing of
//! the placer's rules but what they promise.

use std::collections::{BTreeMap, BTreeSet};

use manager::Picture;
use manager::cluster_state::{ClusterState, Distribution, Placed, Program};
use manager::placement::{Step, Why};
use wire::{GroupId, NodeId};

use super::{Verdict, demand};
use crate::fabric::node_id;

const PROPERTY: &str = "deployments";

/// The leader asks for this step. A host that gets a replica is present and not drained. A host
/// with the state leaves only if enough of the remaining ones have it.
pub fn decided(
    picture: &Picture,
    cluster_state: &ClusterState,
    placed: &Placed,
    step: &Step,
) -> Verdict {
    once_each(step)?;
    let present = |node: &NodeId| picture.nodes.iter().any(|(there, _)| there == node);
    for node in step.on.iter().filter(|node| !placed.on.contains(node)) {
        demand(present(node) && !cluster_state.is_drained(*node), PROPERTY, || {
            format!("{node} is to have a replica, and is away or drained: {step:?}")
        })?;
    }
    let id = GroupId::of(&placed.deployment.group);
    let Some(shape) = picture.groups.iter().find(|shape| shape.id == id) else { return Ok(()) };
    let has = |node: &&NodeId| shape.primary == **node || shape.backups.contains(*node);
    let goes = placed.on.iter().filter(|node| !step.on.contains(node));
    let loses = goes.filter(has).any(&present);
    let leaves = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
    let left = step.on.iter().filter(|node| has(node) && leaves != Some(**node)).count();
    // Where nobody can take its replica a drained host goes all the same: one is enough then.
    let places =
        cluster_state.nodes().filter(|(node, _)| present(node) && !cluster_state.is_drained(*node));
    let wanted = (placed.deployment.replicas as usize).min(places.count()).max(1);
    demand(!loses || left >= wanted, PROPERTY, || {
        format!(
            "one with the state goes, and {left} of {wanted} have it: {step:?}, {placed:?}, {shape:?}"
        )
    })?;
    let Why::Upgrade(next) = step.why else { return Ok(()) };
    // For a while it is not there.
    let others = placed.on.iter().filter(|node| **node != next && has(node)).count();
    let wanted = (placed.deployment.replicas as usize).min(placed.on.len());
    demand(others >= 1 && (!has(&&next) || others + 1 >= wanted), PROPERTY, || {
        format!("{next} changes over, and {others} others have the state: {placed:?}, {shape:?}")
    })
}

/// The cluster state takes a node for one that runs the new program and has the state. `said`: it
/// has said so.
pub fn changed_over(node: NodeId, group: &str, said: bool) -> Verdict {
    demand(said, PROPERTY, || {
        format!("{node} is taken to run the new program of {group}, and has never said so")
    })
}

/// No host has two replicas of a group.
pub fn once_each(step: &Step) -> Verdict {
    let nodes: BTreeSet<NodeId> = step.on.iter().copied().collect();
    demand(nodes.len() == step.on.len(), PROPERTY, || {
        format!("a host is to have two replicas: {step:?}")
    })
}

/// All was as it should be, and this is asked for.
pub fn moved_for_nothing(step: &Step) -> Verdict {
    demand(step.why == Why::Filled, PROPERTY, || {
        format!("all is where it should be, nothing happens, and this is to be so: {step:?}")
    })
}

/// Returns a deployment that is not as requested, although all nodes are present.
pub fn missing(
    cluster_state: &ClusterState,
    drained: &BTreeSet<NodeId>,
    nodes: usize,
    placed: Option<&Placed>,
) -> Option<String> {
    let is_so = |node: &NodeId| cluster_state.is_drained(*node) == drained.contains(node);
    if let Some(node) = (0..nodes).map(node_id).find(|node| !is_so(node)) {
        return Some(format!("{node} is not drained as people were told: {drained:?}"));
    }
    let Some(placed) = placed else {
        return Some("what was deployed is not in the cluster state".into());
    };
    let able: Vec<NodeId> = cluster_state
        .nodes()
        .map(|(node, _)| node)
        .filter(|node| !cluster_state.is_drained(*node))
        .collect();
    if cluster_state.nodes().count() < nodes {
        return Some("not all nodes have told of themselves".into());
    }
    let wanted = (placed.deployment.replicas as usize).min(able.len());
    let well = placed.on.iter().all(|node| able.contains(node)) && placed.on.len() == wanted;
    // If no node can take the replicas, those that have the state stay.
    let alone = able.is_empty() && !placed.on.is_empty();
    if !well && !alone {
        return Some(format!("{wanted} replicas are to be on some of {able:?}: {placed:?}"));
    }
    let racks = |nodes: &[NodeId]| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in nodes {
            let rack = cluster_state.node(*node).and_then(|it| it.labels.get("rack"));
            *counts.entry(rack.map_or("", String::as_str)).or_default() += 1;
        }
        counts
    };
    let (have, could) = (racks(&placed.on), racks(&able));
    let fewer = |rack: &str, most: usize| {
        let here = have.get(rack).copied().unwrap_or_default();
        here + 1 < most && could[rack] > here
    };
    let most = have.values().max().copied().unwrap_or_default();
    let spread = matches!(placed.deployment.distribution, Distribution::Spread(_));
    let better = could.keys().find(|rack| fewer(rack, most)).filter(|_| spread && !alone);
    better.map(|rack| format!("rack {rack} has room, and another has {most}: {placed:?}"))
}

/// Which replica does not run the program that it should, all else being as people said.
pub fn unlike(
    cluster_state: &ClusterState,
    placed: &Placed,
    runs: impl Fn(NodeId, &Program) -> bool,
) -> Option<String> {
    let able = cluster_state.nodes().filter(|(node, _)| !cluster_state.is_drained(*node));
    // One host alone can give nobody the state meanwhile.
    if able.count() < 2 {
        return None;
    }
    if placed.upgrade.is_some() {
        return Some(format!("an upgrade is under way: {placed:?}"));
    }
    let program = &placed.deployment.program;
    let other = placed.on.iter().find(|node| !runs(**node, program));
    other.map(|node| format!("{node} does not run {program:?}: {placed:?}"))
}

/// At the end all nodes have the same cluster state.
pub fn alike(cluster_states: &[&ClusterState]) -> Verdict {
    demand(cluster_states.windows(2).all(|pair| pair[0] == pair[1]), PROPERTY, || {
        format!("cluster states differ at the end: {cluster_states:?}")
    })
}
