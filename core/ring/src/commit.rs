//! Commit: the representative collects what every member brings along, and tells all.

use alloc::vec;
use alloc::vec::Vec;

use wire::ring::{CommitMember, CommitStep, MAX_ENTRIES};
use wire::{Member, RingId, Time};

use crate::gather::Sets;
use crate::order::Order;

/// A ring that is being formed: who shall be in it, and whose entries are here.
#[derive(Debug)]
pub(crate) struct Forming {
    pub sets: Sets,
    pub ring: RingId,
    pub members: Vec<Member>,
    entries: Vec<Option<CommitMember>>,
    /// When the call (or this member's entry) is sent again.
    pub retry_at: Time,
    /// When the attempt is given up.
    pub give_up_at: Time,
}

/// The entries of all members of a new ring, in ring order.
#[derive(Clone, Debug)]
pub(crate) struct Complete {
    pub ring: RingId,
    pub entries: Vec<CommitMember>,
}

impl Forming {
    pub fn new(sets: Sets, ring: RingId, now: Time, give_up_at: Time) -> Self {
        let members: Vec<_> = sets.live().collect();
        Forming {
            sets,
            ring,
            entries: vec![None; members.len()],
            members,
            retry_at: now,
            give_up_at,
        }
    }

    /// Takes a member's entry. False when it was here already, or cannot be one.
    pub fn fill(&mut self, entry: CommitMember) -> bool {
        let Ok(at) = self.members.binary_search(&entry.member) else { return false };
        if self.entries[at].is_some() || entry.aru > entry.high {
            return false;
        }
        self.entries[at] = Some(entry);
        true
    }

    /// Those whose entries are not here.
    pub fn lacking(&self) -> impl Iterator<Item = Member> + '_ {
        let empty = |(_, entry): &(&Member, &Option<CommitMember>)| entry.is_none();
        self.members.iter().zip(&self.entries).filter(empty).map(|(member, _)| *member)
    }

    /// All entries, when all are here.
    pub fn complete(&self) -> Option<Complete> {
        let entries: Option<Vec<_>> = self.entries.iter().copied().collect();
        Some(Complete { ring: self.ring, entries: entries? })
    }
}

impl Complete {
    pub fn members(&self) -> Vec<Member> {
        self.entries.iter().map(|entry| entry.member).collect()
    }

    /// The messages that tell a member everything.
    pub fn steps(&self) -> impl Iterator<Item = CommitStep> + '_ {
        self.entries.chunks(MAX_ENTRIES).map(|entries| CommitStep::Entries(entries.to_vec()))
    }

    /// Whether nobody lacks what another from the same ring has. Then there is nothing to
    /// exchange, and the ring can be installed as soon as this is known.
    pub fn is_settled(&self) -> bool {
        self.entries.iter().all(|a| {
            self.entries.iter().all(|b| {
                a.member == b.member
                    || a.old_ring != b.old_ring
                    || (a.aru == a.high && b.aru == b.high && a.aru == b.aru)
            })
        })
    }
}

/// This node's entry, from the ring that it was in last.
pub(crate) fn entry(order: &Order) -> CommitMember {
    CommitMember {
        member: order.members[order.mine],
        old_ring: order.id,
        aru: order.window.aru(),
        high: order.window.high(),
        stable: order.all(),
        obliged: order.obliged,
    }
}
