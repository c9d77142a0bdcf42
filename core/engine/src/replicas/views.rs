//! Services are told of their groups' views (`docs/protocol/group.md`, "Services and views").

use wire::attach::View;
use wire::{GroupId, Time};

use crate::directory::{Group, State};
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;
use crate::style::StyleRules;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// The service of this node's replica is told of the group's view, if it has not been. A replica
    /// that waits for the state is told once it has that. In a passive group the primary alone
    /// executes.
    pub(crate) fn tell_view(&mut self, now: Time, id: GroupId) {
        let me = self.base.me;
        let Some(group) = self.base.directory.get(id) else { return };
        let Some(hosted) = self.replicas.hosted.get(&id) else { return };
        let goes_on = match group.replica(me).map(|replica| replica.state) {
            Some(State::Synced) => hosted.replica.has_state(),
            Some(State::Unsynced { transfer, .. }) => hosted.replica.transfer() == Some(transfer),
            None => false,
        };
        let executes = !group.options.style.executes_on_arrival() || group.primary() == Some(me);
        if goes_on && executes && !hosted.lost && !hosted.departure.abandoned {
            let view = view_of(group);
            self.with_replica(now, id, |replica, effects| replica.view(view, effects));
        }
    }
}

fn view_of(group: &Group) -> View {
    let node = |member: wire::Member| member.node;
    let joining = group.replicas.iter().filter(|replica| replica.state != State::Synced);
    View {
        number: group.view.0,
        members: group.synced().map(node).collect(),
        joining: joining.map(|replica| replica.member.node).collect(),
    }
}
