//! The groups of this node: views, admission, moves, styles, and what their hosts refuse.

mod calls;
pub(crate) mod cold;
mod hosting;
pub(crate) mod managing;
pub(crate) mod moves;
mod restoring;
pub(crate) mod restyle;
pub(crate) mod shedding;
mod storage;
mod votes;

use alloc::collections::BTreeMap;

use wire::{GroupId, Time};

use crate::api::Event;
use crate::base::Base;
use crate::directory::Change;
use crate::groups::cold::ColdGroups;
use crate::groups::managing::Load;
use crate::groups::moves::{Motive, Moving};
use crate::groups::restyle::Restyling;
use crate::ordering::Ordering;
use crate::replicas::{ReplicaHandler, Replicas};
use crate::replies::{Replies, ReplyHandler};

/// Node-wide state of the groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// Cold passive groups that have a replica here.
    pub(crate) cold: ColdGroups,
    /// Moves of primaries that were requested here.
    pub(crate) moves: BTreeMap<(GroupId, Motive), Moving>,
    /// Changes of style that were requested here.
    pub(crate) restyles: BTreeMap<GroupId, Restyling>,
    /// The hosts' load, and what they refuse because of it.
    pub(crate) load: Load,
}

/// Changes groups; their replicas follow.
pub(crate) struct GroupHandler<'a, O> {
    pub(crate) base: &'a mut Base<O>,
    pub(crate) replies: &'a mut Replies,
    pub(crate) replicas: &'a mut Replicas,
    pub(crate) groups: &'a mut Groups,
}

impl<O: Ordering> GroupHandler<'_, O> {
    pub(crate) fn replies(&mut self) -> ReplyHandler<'_, O> {
        ReplyHandler { base: self.base, replies: self.replies }
    }

    pub(crate) fn replicas(&mut self) -> ReplicaHandler<'_, O> {
        ReplicaHandler { base: self.base, replies: self.replies, replicas: self.replicas }
    }
}

impl<O: Ordering> GroupHandler<'_, O> {
    pub(crate) fn changed(&mut self, now: Time, id: GroupId, change: Change) {
        match change {
            Change::None => {}
            Change::View | Change::Removed => {
                if change == Change::Removed {
                    self.replies.faults.forget(id);
                    self.replicas.hosted.entry(id).and_modify(|hosted| hosted.led = None);
                }
                self.base.note_changed(id);
                let is_another = self
                    .base
                    .directory
                    .enthrone(id, self.base.place(self.base.progress.delivered()));
                self.view_changed(id);
                self.follow_view(now, id);
                if is_another {
                    self.replicas().park_forwarded(id);
                }
                self.reconcile_calls(now, id);
                self.replicas().reconcile_nested(now, id);
            }
        }
    }

    /// Reports that a group has a new view.
    pub(crate) fn view_changed(&mut self, id: GroupId) {
        self.groups.load.changed();
        self.replies.clients.watches.changed(id);
        let Some(group) = self.base.directory.get(id) else { return };
        if group.primary() == Some(self.base.me)
            && let Some(hosted) = self.replicas.hosted.get_mut(&id)
        {
            hosted.led = match hosted.led {
                Some((first, last)) if last.0 + 1 == group.view.0 => Some((first, group.view)),
                _ => Some((group.view, group.view)),
            };
        }
        let replicas = group
            .replicas
            .iter()
            .map(|replica| (replica.member, replica.state == crate::directory::State::Synced));
        let event = Event::View {
            group: id,
            name: group.name.clone(),
            style: group.options.style,
            view: group.view,
            replicas: replicas.collect(),
            primary: group.primary(),
        };
        self.base.event(event);
    }
}
