//! Clients that ask for a group while it may still come.

use wire::client::Bind;
use wire::{Caller, GroupId};

use crate::base::Base;
use crate::ordering::Ordering;
use crate::replicas::{ReplicaHandler, Replicas};

impl<O: Ordering> ReplicaHandler<'_, O> {
    pub(crate) fn bind(&mut self, caller: Caller, bind: Bind) {
        let id = GroupId::of(&bind.name);
        if !self.replicas.may_come(self.base, id) {
            self.base.answer_bind(caller, id);
        } else if !self.replies.clients.callers.keep_bind(caller, bind.name) {
            self.replies()
                .dismiss(caller, "too many clients wait for the cluster to form: try another node");
        }
    }

    pub(crate) fn answer_binds(&mut self) {
        for (caller, name) in self.replies.clients.callers.take_binds() {
            let id = GroupId::of(&name);
            // One that still has to wait had its place among them before.
            if !self.replicas.may_come(self.base, id)
                || !self.replies.clients.callers.keep_bind(caller, name)
            {
                self.base.answer_bind(caller, id);
            }
        }
    }
}

impl Replicas {
    /// The group is not in the table, but may soon be: nothing is known of groups yet, a component
    /// has just begun, or this node's own replica is on its way to be the first.
    pub(crate) fn may_come<O: Ordering>(&self, base: &Base<O>, id: GroupId) -> bool {
        let hosted = self.hosted.get(&id);
        let forming = !base.membership.is_active() && !base.membership.is_minority();
        let hosting =
            hosted.is_some_and(|hosted| !hosted.departure.begun && !hosted.admission.refused);
        let joining = base.membership.is_active() && (hosting || base.progress.awaits_joins());
        base.directory.get(id).is_none() && (forming || joining)
    }
}
