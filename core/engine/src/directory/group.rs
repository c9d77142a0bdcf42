//! A group as the table has it.

use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::MAX_REPLICAS;
use wire::ordered::{Deposit, Durability, GroupOptions, Place};
use wire::{Member, ViewNumber};

use crate::style::Standing;

/// A group as the table has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) options: GroupOptions,
    pub(crate) view: ViewNumber,
    /// The place of the last request to it.
    pub(crate) last: Place,
    /// The place of the last request before its synced replicas became just these.
    pub(crate) floor: Place,
    /// The primary, and the place since which it is primary in this component.
    pub(crate) reign: Option<(Member, Place)>,
    /// In order of rank.
    pub(crate) replicas: Vec<Replica>,
    /// The last replicas with the group's state, in order of rank, while no member here is known to
    /// have it.
    pub(crate) asleep: Vec<Member>,
    /// Members whose replicas will rejoin, without the state. Until then the only one that has it
    /// stays.
    pub(crate) awaited: Vec<Member>,
    /// The state with which the group begins or has begun, if that is not the service's initial
    /// one.
    pub(crate) deposit: Option<Deposit>,
    /// See [`Directory::transfers`].
    pub(super) transfers: u64,
}

/// A replica as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replica {
    pub(crate) member: Member,
    pub(crate) state: State,
}

/// Whether a replica has the group's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has the state.
    Synced,
    /// It waits for this transfer, from this member: `None` while nobody has the state.
    Unsynced { transfer: ViewNumber, donor: Option<Member> },
}

impl Group {
    /// Its state is kept on disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.options.durability == Durability::Disk
    }

    /// The first replica in rank that has the state.
    pub(crate) fn primary(&self) -> Option<Member> {
        self.synced().next()
    }

    /// The replicas that have the state, in order of rank.
    pub(crate) fn synced(&self) -> impl DoubleEndedIterator<Item = Member> + '_ {
        self.replicas.iter().filter(|r| r.state == State::Synced).map(|r| r.member)
    }

    /// This member's role in the group.
    pub(crate) fn standing(&self, member: Member) -> Standing {
        match self.replica(member).map(|replica| replica.state) {
            None => Standing::Stranger,
            Some(State::Unsynced { .. }) => Standing::Joining,
            Some(State::Synced) if self.primary() == Some(member) => Standing::Primary,
            Some(State::Synced) => Standing::Backup,
        }
    }

    /// The begin of this member's time as primary, if it is.
    pub(crate) fn reign_of(&self, member: Member) -> Option<Place> {
        self.reign.filter(|(primary, _)| *primary == member).map(|(_, since)| since)
    }

    /// The replica on this member.
    pub(crate) fn replica(&self, member: Member) -> Option<&Replica> {
        self.replicas.iter().find(|replica| replica.member == member)
    }

    /// The targets for clients: first the replicas with the state, by rank.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Member> + '_ {
        let unsynced = self.replicas.iter().filter(|r| r.state != State::Synced);
        self.synced().chain(unsynced.map(|replica| replica.member))
    }

    /// The last in rank that has the state sends it, to spare the primary.
    pub(super) fn donor(&self) -> Option<Member> {
        self.synced().next_back()
    }

    /// This replica alone has the state, and others wait for it, or will. It has to stay until one
    /// of them has it.
    pub(crate) fn needs(&self, member: Member) -> bool {
        let others = self.replicas.len() > 1 || !self.awaited.is_empty();
        self.options.style.has_state() && others && self.synced().eq([member])
    }

    /// Another replica can begin the group, for it was never called.
    pub(crate) fn can_begin_anew(&self) -> bool {
        self.last == Place::default() && self.replicas.len() > 1
    }

    /// No other replica has the state.
    pub(crate) fn is_alone(&self, member: Member) -> bool {
        let known = self.replica(member).is_some() && self.options.style.has_state();
        known && self.synced().all(|synced| synced == member)
    }

    /// This member has a replica in the group, or is to have one again.
    pub(crate) fn knows(&self, member: Member) -> bool {
        self.replica(member).is_some() || self.awaited.contains(&member)
    }

    /// The node still hosts the replica that is gone: it will rejoin.
    pub(super) fn await_again(&mut self, member: Member) {
        // Each group has the same bound, whatever rules are in force.
        if self.awaited.len() == MAX_REPLICAS {
            self.awaited.remove(0);
        }
        self.awaited.push(member);
    }

    /// Replicas that have the state come first in rank.
    pub(super) fn put_synced_first(&mut self) {
        self.replicas.sort_by_key(|replica| replica.state != State::Synced);
    }

    /// The name of a transfer that begins with this view.
    pub(crate) fn transfer(&self) -> ViewNumber {
        ViewNumber(self.transfers.wrapping_add(self.view.0))
    }

    pub(super) fn advance(&mut self) {
        // Only a confused member's table can come near the limit.
        self.view.0 = self.view.0.saturating_add(1);
    }

    /// A group that was never called has the service's initial state, and answered no request. If
    /// no replica here has the state, the first in rank begins it.
    pub(super) fn begin_if_never_called(&mut self) {
        if self.last == Place::default()
            && self.primary().is_none()
            && let Some(first) = self.replicas.first_mut()
        {
            first.state = State::Synced;
            self.asleep.clear();
        }
    }

    /// Transfers whose donor is gone begin anew, from another and under a new name.
    pub(super) fn renew_transfers(&mut self) {
        let donor = self.donor();
        let (synced, transfer) = (self.synced().collect::<Vec<Member>>(), self.transfer());
        for replica in &mut self.replicas {
            if let State::Unsynced { donor: old, .. } = replica.state
                && !old.is_some_and(|old| synced.contains(&old))
            {
                replica.state = State::Unsynced { transfer, donor };
            }
        }
    }
}
