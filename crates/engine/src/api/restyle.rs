//! What may come of a wish for another style.

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
    /// There is no way from one to the other while the group runs.
    #[error(
        "a group that runs does not change from {from} to {to}: {}; semi-active, active, voting, warm-passive and cold-passive, which \
         have a state, change into each other; for another style stop the group's replicas at all nodes, set \
         `style = \"{to}\"` where they are configured, and start them again (what the group has in memory is gone then)",
        apart(*from, *to)
    )]
    Apart {
        /// The group's style.
        from: Style,
        /// What was asked for.
        to: Style,
    },
    /// What such a group has is not on its disks.
    #[error("the group is kept on disk, and a {0} group cannot be: choose semi-active or active")]
    NotOnDisk(Style),
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

/// What keeps these two apart.
fn apart(from: Style, to: Style) -> &'static str {
    match (from, to) {
        (Style::Stateless, _) => {
            "each replica of a stateless group has what it was given itself, so there is no state with which the group could go on"
        }
        (_, Style::Stateless) => {
            "a stateless group remembers no call, so a retry of one that was answered before would be executed again"
        }
        _ => "they have nothing in common",
    }
}
