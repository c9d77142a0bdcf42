//! What may come of a proposal for another style.

use wire::limits::MAX_RESTYLES;
use wire::ordered::Style;

/// Why a group does not get another style.
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
        "a {from} group has a state, and a stateless group keeps none: what its clients were told is done would be lost, and a \
         retry would be executed again; if that is meant, save the state with `steadfast state save`, stop the group's replicas at \
         all nodes, and start them with style = \"stateless\""
    )]
    LosesState {
        /// The group's style.
        from: Style,
    },
    /// A change of the group's style that was asked for here is not over.
    #[error("the group's style is being changed to {0} already: wait for that")]
    UnderWay(Style),
    /// Too many changes at a time.
    #[error(
        "{MAX_RESTYLES} changes of style were asked for at this node and are not over, the limit: wait for them"
    )]
    TooMany,
    /// It was not ordered in time.
    #[error(
        "the change was not ordered in time: the ring is being formed, or is overloaded; `steadfast status` says which style the \
         group has, ask again if it is not {0}"
    )]
    Late(Style),
}
