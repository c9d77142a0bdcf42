//! Replicas that are back from the disk, or wait for it.

use alloc::vec::Vec;
use core::mem;

use wire::ordered::Recalled;
use wire::{GroupId, Member, Time};

use crate::directory::Change;
use crate::groups::GroupHandler;
use crate::ordering::Ordering;

impl<O: Ordering> GroupHandler<'_, O> {
    /// Gives up kept states when all members' disks know the component's table: nobody needs a
    /// state that the table does not count. The replica joins anew.
    pub(crate) fn give_up_kept(&mut self, now: Time) -> bool {
        if !self.base.records.take_effective() || !self.base.membership.is_effective() {
            return false;
        }
        let kept = self.replicas.hosted.iter().filter(|(_, hosted)| hosted.on_disk.kept);
        let kept: Vec<GroupId> = kept.map(|(id, _)| *id).collect();
        for group in &kept {
            self.reconcile_replica(now, *group);
        }
        !kept.is_empty()
    }

    /// A member has begun to host a group whose state is on its disk. Its announcement did not
    /// include the group.
    pub(crate) fn act_on_recalled(&mut self, now: Time, sender: Member, recalled: Recalled) {
        let Recalled { group, taken } = recalled;
        let announces = self.base.membership.announces_mut();
        let Some(announce) = announces.get_mut(&sender) else { return };
        let Some(recall) = &mut announce.recall else { return };
        recall.waiting.retain(|waiting| *waiting != group);
        if announce.replicas.iter().any(|(known, _)| *known == group) {
            return;
        }
        announce.replicas.push((group, taken));
        let change = self.base.directory.wake(
            group,
            self.base.membership.announces(),
            self.base.membership.gathering(),
        );
        self.base.tell_went_back();
        self.changed(now, group, change);
        if change != Change::None {
            // Votes that it sent before it was in the table do not count.
            self.replicas().open_votes_of(now, group);
        }
        let waits = self.base.directory.get(group).is_some_and(|group| group.primary().is_none());
        let Some(hosted) = self.replicas.hosted.get_mut(&group).filter(|_| sender == self.base.me)
        else {
            return;
        };
        if mem::take(&mut hosted.on_disk.recalled) && change == Change::None && !waits {
            // The others went on without it, or have ended the group.
            self.reconcile_replica(now, group);
        }
    }

    /// Whether anything waits for other members' disks.
    pub(crate) fn waits_for_disks(&self) -> bool {
        let forming = self.base.membership.is_active() && !self.base.membership.is_effective();
        self.base.membership.has_disks()
            && (forming
                || self.replies.clients.callers.any_unheld()
                || self.replicas.any_leader_waits()
                || !self.groups.restyles.is_empty()
                || self.replicas.nested.waits_to_pay()
                || self.replicas.backups.any_unheld())
    }

    /// Sets the time at which this node asks the others how much is on their disks.
    pub(crate) fn watch_disks(&mut self, now: Time) {
        let waits = self.waits_for_disks();
        self.base.records.watch_disks(now, waits);
    }
}
