//! The daemon's state in one line, for `systemctl status`.

use steadfast::status::{GroupStatus, Status};

/// Says whether the node serves: its quorum, and its own replicas.
pub fn line(status: &Status) -> String {
    if let Some(why) = status.ring.no_quorum() {
        return why;
    }
    let quorum = match status.ring.quorate {
        None => "looking for the other nodes; ",
        Some(_) => "",
    };
    let count =
        |is: &dyn Fn(&GroupStatus) -> bool| status.groups.iter().filter(|it| is(it)).count();
    let hosted = count(&|group| own_replica(group, status).is_some());
    let serving = count(&|group| own_replica(group, status) == Some(true));
    let primary = count(&|group| group.primary.is_some_and(|it| it.node == status.node));
    format!("{quorum}{serving} of {hosted} replicas have the state, {primary} primary")
}

/// Whether this node's replica of the group has the state, if it hosts one.
fn own_replica(group: &GroupStatus, status: &Status) -> Option<bool> {
    group.replicas.iter().find(|it| it.node == status.node).map(|it| it.synced)
}
