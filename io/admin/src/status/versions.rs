//! The versions in use, and the nodes' programs.

use serde::{Deserialize, Serialize};
use wire::{NodeId, Program, Time};

use crate::events::unfit;

/// The versions in use, as a node knows them (`docs/protocol/versions.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionsStatus {
    /// The version of the ring.
    pub ring: u8,
    /// The level of the rules in force; 0: none is known yet.
    pub level: u8,
    /// The level that every configured node knows beyond that: it may come into force.
    pub next: Option<u8>,
    /// Milliseconds until it comes into force unasked.
    pub next_in_ms: Option<u64>,
    /// Configured nodes that do not know the newest rules, or have not said.
    pub lacking: Vec<NodeId>,
    /// The programs of the nodes, as they said last, in order of node.
    pub programs: Vec<NodeProgram>,
    /// Nodes that cannot be in one ring with this one.
    pub unfit: Vec<UnfitStatus>,
}

/// A node's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeProgram {
    /// The node.
    pub node: NodeId,
    /// Its program.
    pub program: Program,
}

/// A node that cannot be in one ring with this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfitStatus {
    /// The node.
    pub node: NodeId,
    /// Why, with the remedy.
    pub why: String,
}

impl VersionsStatus {
    /// As the engine tells them.
    pub fn new(versions: engine::Versions, now: Time) -> VersionsStatus {
        let ours = versions.speaks;
        let (next, due) = versions.next.unzip();
        let ms = |due: Time| u64::try_from(due.since(now).as_millis()).unwrap_or(u64::MAX);
        let programs = versions.programs.into_iter();
        let unfit = versions.unfit.into_iter().map(|(member, speaks, why)| UnfitStatus {
            node: member.node,
            why: unfit(member.node, speaks, ours, why),
        });
        VersionsStatus {
            ring: versions.ring,
            level: versions.level,
            next,
            next_in_ms: due.flatten().map(ms),
            lacking: versions.lacking,
            programs: programs.map(|(node, program)| NodeProgram { node, program }).collect(),
            unfit: unfit.collect(),
        }
    }
}
