//! The status of the ring and its links, as seen by a node.

use ring::Buffers;
use serde::{Deserialize, Serialize};
use wire::histogram::Times;
use wire::{Member, NodeId, RingId};

use super::exclusion::ExclusionStatus;

/// A node's view of its ring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RingStatus {
    /// `operational`, `gather`, `commit`, `recovery`, or `stopped` of a node that has stopped.
    pub state: String,
    /// Its id.
    pub id: RingId,
    /// The nodes of the cluster, as this node's configuration lists them, in order of id.
    pub configured: Vec<NodeId>,
    /// Its members, in order of id.
    pub members: Vec<Member>,
    /// The ring has the quorum, so groups act in it; `None` until the verdict.
    pub quorate: Option<bool>,
    /// Every configuration has the quorum: the node's configuration has `quorum = "off"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quorum_off: bool,
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
    /// How full its buffers are, and the most that they were.
    #[serde(default)]
    pub buffers: Buffers,
    /// How long the token was away from this node, each time, on the present ring; `None` if it
    /// parks.
    #[serde(default)]
    pub rotations: Option<Times>,
}

/// A node's view of the links to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLinks {
    /// The other node.
    pub node: NodeId,
    /// The links in the configuration's order.
    pub links: Vec<LinkStatus>,
}

/// A node's view of one link to another node.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The link works from here to there. If the other node is silent: its last known state.
    pub up: bool,
    /// Milliseconds since the last datagram from the other node on this link; `None`: there was
    /// none.
    pub heard_ms: Option<f64>,
}

impl RingStatus {
    /// The configured nodes that are not in the ring.
    pub fn absent(&self) -> Vec<NodeId> {
        absent(&self.configured, &self.members)
    }

    /// Why the ring lacks the quorum, and the remedy; `None` unless it is known to lack it.
    pub fn no_quorum(&self) -> Option<String> {
        (self.quorate == Some(false)).then(|| no_quorum(&self.configured, &self.members))
    }
}

/// The configured nodes that are not among the members.
pub fn absent(configured: &[NodeId], members: &[Member]) -> Vec<NodeId> {
    let is_member = |node: &&NodeId| members.iter().any(|member| member.node == **node);
    configured.iter().filter(|node| !is_member(node)).copied().collect()
}

/// Why these members have no quorum, and the remedy.
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
