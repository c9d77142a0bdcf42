//! Commit: the representative collects what every member brings along, and tells all.

use alloc::vec::Vec;

use wire::ring::{Commit, CommitMember};
use wire::{Member, RingId, Time};

use crate::gather::Sets;
use crate::order::Order;

#[derive(Debug)]
pub(crate) struct Forming {
    pub sets: Sets,
    pub commit: Commit,
    /// When the commit (or this member's entry) is sent again.
    pub retry_at: Time,
    /// When the attempt is given up.
    pub give_up_at: Time,
}

/// An empty entry for each member.
pub(crate) fn blank(ring: RingId, members: impl Iterator<Item = Member>) -> Commit {
    let entry = |member| CommitMember {
        member,
        old_ring: RingId::default(),
        aru: 0,
        high: 0,
        obliged: 0,
        filled: false,
    };
    Commit { ring, round: 1, members: members.map(entry).collect() }
}

/// What this node brings along from the ring that it was in last.
pub(crate) fn entry(order: &Order) -> CommitMember {
    CommitMember {
        member: order.members[order.mine],
        old_ring: order.id,
        aru: order.window.aru(),
        high: order.window.high(),
        obliged: order.obliged,
        filled: true,
    }
}

pub(crate) fn members_of(commit: &Commit) -> Vec<Member> {
    commit.members.iter().map(|entry| entry.member).collect()
}

pub(crate) fn is_complete(commit: &Commit) -> bool {
    commit.members.iter().all(|entry| entry.filled)
}

/// Whether nobody lacks what another from the same ring has. Then there is nothing to exchange,
/// and the ring can be installed as soon as this is known.
pub(crate) fn is_settled(commit: &Commit) -> bool {
    commit.members.iter().all(|a| {
        commit.members.iter().all(|b| {
            a.member == b.member
                || a.old_ring != b.old_ring
                || (a.aru == a.high && b.aru == b.high && a.aru == b.aru)
        })
    })
}
