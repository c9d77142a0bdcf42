//! The nodes of the cluster: how they come and go.

use alloc::vec::Vec;

use wire::NodeId;
use wire::limits::MAX_MEMBERS;
use wire::ordered::Place;
use wire::roster::Seat;

/// Why the nodes cannot be changed so now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrowthError {
    /// Nothing can be ordered.
    #[error("no quorum: nodes come and go in the cluster's order; start the missing nodes")]
    NoQuorum,
    /// The rules in force do not know of it.
    #[error(
        "rules of level {0} are in force, and nodes come and go from level 2 on: \
         `steadfast upgrade finish`"
    )]
    Rules(u8),
    /// Another change is under way.
    #[error("{0} is coming or going just now: wait for that, or give it up")]
    UnderWay(NodeId),
    /// It counts already.
    #[error("{0} is one of the cluster's nodes already: choose another number")]
    Member(NodeId),
    /// Its number was used before.
    #[error(
        "{0} was retired, and its number is never used again: a disk of before could come back; \
         join with another number and an empty data_dir"
    )]
    Retired(NodeId),
    /// It is no node of the cluster.
    #[error("{0} is none of the cluster's nodes: `steadfast nodes` lists them")]
    Unknown(NodeId),
    /// It is the only one.
    #[error("it is the cluster's last node: stop it instead")]
    Last,
    /// All places are taken.
    #[error("the cluster has {MAX_MEMBERS} nodes, the limit: retire one first")]
    Full,
    /// There is nothing to give up.
    #[error("no node is coming or going")]
    Nothing,
}

/// A node comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterNews {
    /// It was proposed to come.
    Coming(NodeId),
    /// It counts from here on.
    Admitted(NodeId),
    /// It was proposed to go.
    Going(NodeId),
    /// It counts no more.
    Retired(NodeId),
    /// That was given up.
    Withdrawn(NodeId),
    /// This node has gone, and nobody counts on it any more: it is to end.
    Dismissed,
}

impl RosterNews {
    /// Whether this node begins to come or to go.
    pub fn is_begin_of(self, node: NodeId) -> bool {
        matches!(self, RosterNews::Coming(it) | RosterNews::Going(it) if it == node)
    }
}

/// The nodes, as a node knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrowthStatus {
    /// The place of the last change.
    pub stamp: Place,
    /// Those that count, with their addresses if they came while the cluster ran.
    pub seats: Vec<Seat>,
    /// Those that have gone.
    pub retired: Vec<NodeId>,
    /// The one that comes or goes just now, whether it comes, and the nodes whose disks have that.
    pub moving: Option<(NodeId, bool, Vec<NodeId>)>,
}
