//! Places in the order, and whether a call with a place may be answered.

use wire::ordered::{AckLevel, Place};
use wire::{GroupId, Member};

use crate::base::Base;
use crate::bug::Bug;
use crate::directory::{Group, majority};
use crate::ordering::Ordering;

impl<O: Ordering> Base<O> {
    /// Returns this place of the present component.
    pub(crate) fn place(&self, sequence: u64) -> Place {
        Place { epoch: self.membership.epoch(), ring: self.membership.ring(), sequence }
    }

    /// Whether a call with this place in the order may be answered now.
    pub(crate) fn is_held(&self, group: GroupId, sequence: u64) -> bool {
        if self.planted.is(Bug::ReplyBeforeHeld) {
            return true;
        }
        // Nothing is known any more of a group that is gone: the most careful rule is right for
        // all.
        let (id, group) = (group, self.directory.get(group));
        let ack = group.map_or(AckLevel::All, |group| group.options.ack);
        let held = self.progress.held();
        let by_all = sequence <= held.all;
        self.membership.is_effective()
            && match (ack, group) {
                (AckLevel::One, _) => true,
                (AckLevel::Majority, Some(group)) => {
                    by_all || (sequence <= held.majority && self.is_held_in(group, sequence))
                }
                (AckLevel::Majority | AckLevel::All, _) => by_all,
            }
            && group.is_none_or(|group| self.is_stored(group, id, sequence))
    }

    /// Whether a majority of the group's replicas that had the state at this place have everything
    /// up to it. Only they keep it when the ring is gone.
    pub(crate) fn is_held_in(&self, group: &Group, sequence: u64) -> bool {
        if self.planted.is(Bug::CountBystanders) {
            return true;
        }
        if self.place(sequence) <= group.floor {
            return false; // they were others then: all members have to hold it
        }
        let ring = self.membership.ring();
        let holds = |member: &Member| self.outbox.ordering.reached(ring, *member) >= sequence;
        group.synced().filter(holds).count() >= majority(group.synced().count())
    }
}
