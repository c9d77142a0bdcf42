//! Requested moves of a group's primary.

use wire::NodeId;
use wire::limits::MAX_MOVES;

/// Why a primary cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// Groups do not act here.
    #[error(
        "no quorum: the primary cannot be moved until more nodes are in the ring; `steadfast status` names those that are \
         missing"
    )]
    NoQuorum,
    /// The cluster has no such group.
    #[error("the cluster has no such group: `steadfast status` lists the groups")]
    NoSuchGroup,
    /// No replica has the group's state.
    #[error(
        "the group has no primary now: no replica with its state is up; start the nodes that \
         `steadfast status` shows as missing"
    )]
    NoPrimary,
    /// There is no replica at this node.
    #[error(
        "{0} has no replica of the group: host one there ([[replica]] in its configuration, or \
         Node::host), and move the primary when `steadfast status` shows it without brackets"
    )]
    NotAReplica(NodeId),
    /// The replica at this node does not have the state yet.
    #[error(
        "the replica at {0} is still receiving the state: move the primary when `steadfast status` \
         shows the replica without brackets"
    )]
    NotSynced(NodeId),
    /// An earlier move of the group, requested at this node, is not over.
    #[error("the primary is being moved to {0} already: wait for that")]
    UnderWay(NodeId),
    /// Too many moves at a time.
    #[error("this node has {MAX_MOVES} moves under way, the limit: wait for them")]
    TooMany,
    /// The target node did not take over in time.
    #[error(
        "{0} did not take over in time: is it overloaded, or about to stop? See its log, and try \
         again; `steadfast status` shows the primary"
    )]
    Late(NodeId),
}
