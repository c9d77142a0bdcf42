//! The upgrade of the nodes to another version of the program.

use alloc::vec::Vec;

use wire::versions::Unfit;
use wire::{Member, NodeId, Program, Speaks, Time};

/// Why newer rules cannot come into force now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// Nothing can be ordered.
    #[error("no quorum: rules come into force in the cluster's order; start the missing nodes")]
    NoQuorum,
    /// The rules in force are the newest that the programs know.
    #[error(
        "nothing is to be finished: all nodes know the rules in force (level {0}) and no newer ones"
    )]
    Nothing(u8),
    /// Not all nodes know newer rules, or have said so.
    #[error(
        "not every configured node is known to run the newer program: {}; upgrade it, start it once, \
         or take it out of the list of nodes",
        listed(.0)
    )]
    Lacking(Vec<NodeId>),
}

fn listed(nodes: &[NodeId]) -> alloc::string::String {
    let names: Vec<_> = nodes.iter().map(|node| alloc::format!("{node}")).collect();
    names.join(", ")
}

/// The versions in use, as a node knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version of the ring.
    pub ring: u8,
    /// The level of the rules in force; 0: none is known yet.
    pub level: u8,
    /// The level that every configured node knows beyond that, and when it comes into force unasked.
    pub next: Option<(u8, Option<Time>)>,
    /// Configured nodes that do not know the newest rules, or have not said.
    pub lacking: Vec<NodeId>,
    /// The programs of the nodes, as they said last.
    pub programs: Vec<(NodeId, Program)>,
    /// Nodes that cannot be in one ring with this one, what they speak, and why.
    pub unfit: Vec<(Member, Speaks, Unfit)>,
    /// This node's own versions.
    pub speaks: Speaks,
}
