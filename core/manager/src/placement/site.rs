//! All that a decision depends on, and which nodes can take a replica now.

use alloc::string::String;
use alloc::vec::Vec;

use wire::{GroupId, NodeId, Time};

use super::policy::{self, Host};
use crate::bug::{Bug, Planted};
use crate::cluster_state::{ClusterState, Deployment, Placed};
use crate::picture::{Picture, Shape};

/// All that a decision depends on.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) picture: &'a Picture,
    pub(crate) cluster_state: &'a ClusterState,
    /// Ordered time, as far as this node's clock can tell.
    pub(crate) wall: Time,
    pub(crate) planted: Planted,
}

impl<'a> Site<'a> {
    pub(crate) fn shape(&self, deployment: &Deployment) -> Option<&'a Shape> {
        let id = GroupId::of(&deployment.group);
        self.picture.groups.iter().find(|shape| shape.id == id)
    }

    /// The node is in the component.
    pub(crate) fn is_present(&self, node: NodeId) -> bool {
        self.picture.nodes.binary_search_by_key(&node, |(node, _)| *node).is_ok()
    }

    /// The replica there has the state.
    pub(crate) fn is_synced(&self, deployment: &Deployment, node: NodeId) -> bool {
        let here = |shape: &Shape| shape.primary == node || shape.backups.contains(&node);
        self.shape(deployment).is_some_and(here)
    }

    /// A node as policies see it.
    pub(crate) fn host(&self, node: NodeId, beside: &Deployment) -> Option<Host<'a>> {
        let introduced = self.cluster_state.node(node)?;
        let others = self
            .cluster_state
            .placed()
            .filter(|placed| placed.on.contains(&node) && placed.deployment.group != beside.group);
        Some(Host {
            node,
            labels: &introduced.labels,
            capacity: introduced.capacity,
            used: self.picture.usage(node).map(|usage| usage.used),
            replicas: others.count(),
        })
    }

    /// Why this node is not to have a replica of this deployment now, and is not to keep one;
    /// `None`: it may.
    pub(crate) fn objection(&self, placed: &Placed, node: NodeId) -> Option<String> {
        if !self.is_present(node) {
            return Some("it is not in the cluster now".into());
        }
        if self.cluster_state.is_drained(node) && !self.planted.is(Bug::PlaceOnDrained) {
            return Some("it is being drained".into());
        }
        let fails = |until: Time| self.wall < until;
        if placed.failing.get(&node).is_some_and(|failing| fails(failing.until)) {
            return Some("the program ended there again and again".into());
        }
        self.cluster_state.unfit(&placed.deployment, node)
    }

    /// Nodes that could have one more replica, the best first.
    pub(crate) fn candidates(&self, placed: &Placed, beside: &[NodeId]) -> Vec<NodeId> {
        let deployment = &placed.deployment;
        let policy = policy::distribution(deployment);
        let others: Vec<Host<'_>> =
            beside.iter().filter_map(|node| self.host(*node, deployment)).collect();
        let mut costs: Vec<_> = self
            .cluster_state
            .nodes()
            .map(|(node, _)| node)
            .filter(|node| {
                let there = placed.on.contains(node) || self.is_synced(deployment, *node);
                !there || self.planted.is(Bug::PlaceTwice)
            })
            .filter(|node| self.objection(placed, *node).is_none())
            .filter(|node| self.cluster_state.has_room(deployment, *node))
            .filter_map(|node| {
                let host = self.host(node, deployment)?;
                Some((policy.cost(&host, &others)?, node))
            })
            .collect();
        costs.sort_unstable();
        costs.into_iter().map(|(_, node)| node).collect()
    }
}
