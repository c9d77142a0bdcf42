//! Errors of a requested change of style.

use wire::limits::MAX_RESTYLES;
use wire::ordered::Style;

/// Why a group keeps its style.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestyleError {
    /// Groups do not act here.
    #[error(
        "no quorum: no group can change its style until more nodes are in the ring; `steadfast status` names those that \
         are missing"
    )]
    NoQuorum,
    /// The cluster has no such group.
    #[error("the cluster has no such group: `steadfast status` lists the groups")]
    NoSuchGroup,
    /// No replica has the group's state.
    #[error(
        "no replica with the group's state is up: start the nodes that `steadfast status` shows as missing, and ask again"
    )]
    NoPrimary,
    /// A stateless group keeps nothing.
    #[error(
        "a {from} group has a state, and a stateless group keeps none: acknowledged requests would \
         be lost, and retries executed again; to do that all the same, save the state with \
         `steadfast state save`, stop the group's replicas at all nodes, and start them with style = \
         \"stateless\""
    )]
    LosesState {
        /// The group's style.
        from: Style,
    },
    /// An earlier change of the group's style, requested at this node, is not over.
    #[error("the group's style is being changed to {0} already: wait for that")]
    UnderWay(Style),
    /// Too many changes at a time.
    #[error("this node has {MAX_RESTYLES} changes of style under way, the limit: wait for them")]
    TooMany,
    /// The change was not ordered in time.
    #[error(
        "the change was not ordered in time: the ring is being formed, or is overloaded; \
         `steadfast status` shows the group's style, try again if it is not {0}"
    )]
    Late(Style),
}
