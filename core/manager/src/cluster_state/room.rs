//! Which nodes can have a replica at all, by what they told of themselves.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wire::{NodeId, Share};

use super::{ClusterState, Deployment, Distribution, Refusal};
use qos::{Policy, Task};

impl ClusterState {
    /// Why a node can never have a replica of this deployment, as it is labelled now.
    pub(crate) fn unfit(&self, deployment: &Deployment, node: NodeId) -> Option<String> {
        let Some(introduced) = self.node(node) else {
            return Some("it never told of itself".into());
        };
        let lacks = deployment
            .labels
            .iter()
            .find(|(name, value)| introduced.labels.get(name.as_str()) != Some(value));
        if let Some((name, value)) = lacks {
            return Some(match introduced.labels.get(name.as_str()) {
                Some(other) => format!("its label {name} is {other}, not {value}"),
                None => format!("it has no label {name}"),
            });
        }
        match &deployment.distribution {
            Distribution::Pinned(nodes) if !nodes.contains(&node) => {
                Some("it is not one of those that it is pinned to".into())
            }
            Distribution::Spread(label) if !introduced.labels.contains_key(label) => {
                Some(format!("it has no label {label} to spread over"))
            }
            _ => None,
        }
    }

    /// Whether a node's host could serve this deployment in time beside those that are placed
    /// there.
    pub(crate) fn has_room(&self, deployment: &Deployment, node: NodeId) -> bool {
        let Some(need) = &deployment.need else { return true };
        let Some(introduced) = self.node(node) else { return false };
        let others = self.at(node).filter(|other| other.group != deployment.group);
        let mut tasks: Vec<Task> =
            others.filter_map(|other| other.need.as_ref()).map(|need| need.task()).collect();
        tasks.push(need.task());
        Policy::ResponseTime.admits(&tasks, Share::ZERO, introduced.capacity)
    }

    /// Whether a deployment has places enough, on the nodes that ever told of themselves.
    ///
    /// # Errors
    /// Too few, and why.
    pub(crate) fn fits(&self, deployment: &Deployment) -> Result<(), Refusal> {
        let mut found = 0;
        let mut why = Vec::new();
        for (node, _) in self.nodes() {
            match self.unfit(deployment, node) {
                Some(reason) => why.push(format!("{node}: {reason}")),
                None if !self.has_room(deployment, node) => {
                    why.push(format!(
                        "{node}: what is placed there leaves too little of its processors"
                    ));
                }
                None => found += 1,
            }
        }
        let wanted = deployment.replicas as usize;
        if found >= wanted {
            return Ok(());
        }
        if why.is_empty() {
            why.push(match self.nodes().count() {
                0 => "no node has told of itself: set on = true in [manager], and an admin socket, at each".to_string(),
                nodes => format!("{nodes} nodes have told of themselves, and each takes one replica of a group"),
            });
        }
        Err(Refusal::NoRoom { found, wanted, why: why.join("; ") })
    }
}
