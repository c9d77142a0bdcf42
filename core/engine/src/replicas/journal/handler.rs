//! Keeps the deliveries that a replica takes, for its next program.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{Going, LeaveGroup, Ordered, Style};
use wire::{GroupId, Time};

use crate::bug::Bug;
use crate::ordering::Ordering;
use crate::replicas::ReplicaHandler;
use crate::replicas::hosted::is_on_disk;

impl<O: Ordering> ReplicaHandler<'_, O> {
    /// The group has another style from here on.
    pub(crate) fn keep_style(&mut self, group: GroupId, style: Style) {
        if self.base.planted.is(Bug::JournalWithoutStyle) {
            return;
        }
        let journal =
            self.replicas.hosted.get_mut(&group).and_then(|hosted| hosted.program.journal.as_mut());
        journal.into_iter().for_each(|journal| journal.restyle(style));
    }

    /// Keeps a delivery that a replica here takes: on the disk, and in case its program dies.
    pub(crate) fn keep_taken(&mut self, group: GroupId, payload: &Bytes) {
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        if let Some(journal) = &mut hosted.program.journal
            && !self.base.planted.is(Bug::DropLogOfDeadProgram)
        {
            journal.push(payload);
        }
        let (on_disk, place) = (is_on_disk(hosted), hosted.taken);
        if on_disk {
            self.log_taken(group, place, payload);
        }
    }

    /// A state is taken if a program that dies would have too much to do again.
    pub(crate) fn cut_journal(&mut self, now: Time, group: GroupId) {
        if self.base.planted.is(Bug::NeverCutJournal) {
            return;
        }
        let after = self.base.records.snapshot_after();
        let Some(hosted) = self.replicas.hosted.get_mut(&group) else { return };
        let long = hosted.program.journal.as_ref().is_some_and(|journal| journal.is_long(after));
        let of_journal = !is_on_disk(hosted) && !hosted.replica.has_log();
        if long && of_journal && hosted.replica.may_snapshot() {
            self.with_replica(now, group, |replica, effects| replica.keep(effects));
        }
    }

    /// Orders that services here have died, once on each ring. True if there were any.
    pub(crate) fn pump_fallen(&mut self, now: Time) -> bool {
        if !self.base.membership.is_active() {
            return false;
        }
        let ring = self.base.membership.ring();
        let mut fallen = Vec::new();
        for (id, hosted) in &mut self.replicas.hosted {
            if !hosted.program.fallen || hosted.admission.asked == Some(ring) {
                continue;
            }
            if self.base.directory.get(*id).is_some_and(|group| group.knows(self.base.me)) {
                hosted.admission.asked = Some(ring);
                let going = Going::ForGood;
                fallen.push(LeaveGroup { group: *id, going, died: hosted.program.died.clone() });
            }
        }
        let any = !fallen.is_empty();
        for leave in fallen {
            self.base.order(now, Ordered::LeaveGroup(leave));
        }
        any
    }
}
