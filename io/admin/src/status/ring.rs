//! The ring and its links, as a node sees them.

use ring::Buffers;
use serde::{Deserialize, Serialize};
use wire::histogram::Times;
use wire::{Member, NodeId, RingId};

use super::exclusion::ExclusionStatus;

/// What a node knows of its ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingStatus {
    /// `operational`, `gather`, `commit`, `recovery`, or `stopped` when the node runs no more.
    pub state: String,
    /// Its id.
    pub id: RingId,
    /// The nodes of the cluster, as this node's configuration lists them, in order of id.
    pub configured: Vec<NodeId>,
    /// Its members, in order of id.
    pub members: Vec<Member>,
    /// It has the quorum, and groups act in it; `None` until that is decided.
    pub quorate: Option<bool>,
    /// The number of the last quorate component that this node was in.
    pub epoch: u64,
    /// The last sequence number delivered here.
    pub delivered: u64,
    /// The links to each of the other configured nodes, in order of id.
    #[serde(default)]
    pub links: Vec<NodeLinks>,
    /// The last time that this node was excluded because it did not keep up.
    #[serde(default)]
    pub excluded: Option<ExclusionStatus>,
    /// How full its buffers are, and were.
    #[serde(default)]
    pub buffers: Buffers,
    /// How long the token was away from this node each time, on the present ring; `None` where it parks.
    #[serde(default)]
    pub rotations: Option<Times>,
}

/// What a node knows of the links to another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLinks {
    /// The other node.
    pub node: NodeId,
    /// Each link, as the configuration lists them.
    pub links: Vec<LinkStatus>,
}

/// What a node knows of one link to another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// It carries from here to there, as far as is known; of a node that is silent, what was known
    /// last.
    pub up: bool,
    /// Milliseconds since anything came by it from there; none if nothing ever did.
    pub heard_ms: Option<f64>,
}

impl RingStatus {
    /// The configured nodes that are not in the ring.
    pub fn absent(&self) -> Vec<NodeId> {
        absent(&self.configured, &self.members)
    }

    /// If the ring is known to lack the quorum: why, and what to do.
    pub fn no_quorum(&self) -> Option<String> {
        (self.quorate == Some(false)).then(|| no_quorum(&self.configured, &self.members))
    }
}

/// The configured nodes that are not among the members.
pub fn absent(configured: &[NodeId], members: &[Member]) -> Vec<NodeId> {
    let is_member = |node: &&NodeId| members.iter().any(|member| member.node == **node);
    configured.iter().filter(|node| !is_member(node)).copied().collect()
}

/// Why these members have no quorum, and what to do.
pub fn no_quorum(configured: &[NodeId], members: &[Member]) -> String {
    let absent = absent(configured, members);
    let (all, here) = (configured.len(), configured.len() - absent.len());
    let needed = all / 2 + 1;
    let names: Vec<String> = absent.iter().map(NodeId::to_string).collect();
    let names = names.join(" ");
    if here < needed {
        return format!(
            "no quorum: nothing is answered until {needed} of {all} nodes are in the ring, here \
             {here}; start {names}, or see why this node cannot reach them"
        );
    }
    format!(
        "no quorum: waiting for {names}; {here} of {all} nodes are here, but those that were \
         restarted have forgotten what they acknowledged, and the others may still know it. Start \
         {names}, or, if a host is lost for good, a node with its id on another"
    )
}

#[cfg(test)]
mod tests {
    use wire::Incarnation;

    use super::*;

    #[test]
    fn a_missing_quorum_names_the_nodes_that_are_waited_for() {
        let configured = [1, 2, 3].map(NodeId);
        let member = |node| Member { node, incarnation: Incarnation(7) };
        let why = |here: &[NodeId]| {
            no_quorum(&configured, &here.iter().copied().map(member).collect::<Vec<_>>())
        };
        let too_few = why(&configured[1..2]);
        assert!(too_few.contains("until 2 of 3 nodes are in the ring, here 1"), "{too_few}");
        assert!(too_few.contains("start n1 n3"), "{too_few}");
        let forgotten = why(&configured[..2]);
        assert!(forgotten.starts_with("no quorum: waiting for n3;"), "{forgotten}");
        assert!(forgotten.contains("Start n3"), "{forgotten}");
    }
}
