//! Places in the order, and whether a call with a place may be answered.

use alloc::vec::Vec;

use wire::ordered::{AckLevel, Place};
use wire::{GroupId, Member, RingId};

use crate::base::Base;
use crate::bug::Bug;
use crate::directory::{Group, majority};
use crate::ordering::Ordering;
use crate::parts::Held;

/// The knowledge of which members have the component's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// By the ring that orders them.
    Present,
    /// The ring has just ended: by what was known then.
    AtTheEnd,
}

impl<O: Ordering> Base<O> {
    /// Returns this place of the present component.
    pub(crate) fn place(&self, sequence: u64) -> Place {
        Place { epoch: self.membership.epoch(), ring: self.membership.ring(), sequence }
    }

    /// Whether a call with this place in the order may be answered now.
    pub(crate) fn is_held(&self, group: GroupId, sequence: u64) -> bool {
        self.is_held_by(Knowledge::Present, group, sequence)
    }

    /// The same by what is, or was, known of the members.
    pub(crate) fn is_held_by(&self, known: Knowledge, group: GroupId, sequence: u64) -> bool {
        if self.planted.is(Bug::ReplyBeforeHeld) {
            return true;
        }
        // Nothing is known any more of a group that is gone: the most careful rule is right for
        // all.
        let (id, group) = (group, self.directory.get(group));
        let ack = group.map_or(AckLevel::All, |group| group.options.ack);
        let held = match known {
            Knowledge::Present => self.progress.held(),
            Knowledge::AtTheEnd => self.held_at_the_end(),
        };
        let by_all = sequence <= held.all;
        self.membership.is_effective()
            && match (ack, group) {
                (AckLevel::One, _) => true,
                (AckLevel::Majority, Some(group)) => {
                    by_all || (sequence <= held.majority && self.is_held_in(known, group, sequence))
                }
                (AckLevel::Majority | AckLevel::All, _) => by_all,
            }
            && group.is_none_or(|group| self.is_stored(known, group, id, sequence))
    }

    /// Whether a majority of the group's replicas that had the state at this place have everything
    /// up to it. Only they keep it when the ring is gone.
    fn is_held_in(&self, known: Knowledge, group: &Group, sequence: u64) -> bool {
        if self.planted.is(Bug::CountBystanders) {
            return true;
        }
        if self.place(sequence) <= group.floor {
            return false; // they were others then: all members have to hold it
        }
        let ring = self.membership.ring();
        let holds = |member: &Member| self.reached(known, ring, *member) >= sequence;
        group.synced().filter(holds).count() >= majority(group.synced().count())
    }

    /// Up to where a majority, and all members, had the component when its ring ended.
    fn held_at_the_end(&self) -> Held {
        let ring = self.membership.ring();
        let reached = |member| self.reached(Knowledge::AtTheEnd, ring, member);
        let mut all: Vec<u64> = self.membership.members().map(reached).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        let at = |place: usize| all.get(place).copied().unwrap_or(0);
        let told = self.progress.held();
        let (majority, all) = (at(all.len() / 2), at(all.len().saturating_sub(1)));
        Held { majority: majority.max(told.majority), all: all.max(told.all) }
    }

    fn reached(&self, known: Knowledge, ring: RingId, member: Member) -> u64 {
        match known {
            Knowledge::Present => self.outbox.ordering.reached(ring, member),
            Knowledge::AtTheEnd => self.outbox.ordering.reached_before(ring, member),
        }
    }

    /// Up to where this member's disk has its records.
    pub(super) fn persisted(&self, known: Knowledge, ring: RingId, member: Member) -> u64 {
        match known {
            Knowledge::Present => self.outbox.ordering.stored(ring, member),
            Knowledge::AtTheEnd => self.outbox.ordering.stored_before(ring, member),
        }
    }

    /// Returns how far a member has persisted the order: on its disk, or in memory if it has no
    /// disk.
    pub(super) fn stored(&self, known: Knowledge, ring: RingId, member: Member) -> u64 {
        let announce = self.membership.announces().get(&member);
        match announce.is_some_and(|announce| announce.recall.is_some()) {
            true => self.persisted(known, ring, member),
            false => self.reached(known, ring, member),
        }
    }
}
