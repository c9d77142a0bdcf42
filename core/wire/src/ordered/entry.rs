//! A group's entry in the table that all members share.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Deposit, GroupOptions, Place};
use crate::codec::at_most;
use crate::limits::MAX_NAME;
use crate::system::most_replicas_ever;
use crate::{GroupId, Malformed, Member, ViewNumber};

/// A group's entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEntry {
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: GroupOptions,
    /// The number of its view.
    pub view: ViewNumber,
    /// The place of the group's last request. A replica that has taken it has the group's state.
    pub last: Place,
    /// The place of the last request before the present set of synced replicas. Other replicas may
    /// have counted for the acknowledgement of the requests up to there.
    pub floor: Place,
    /// Its replicas in order of rank. The first synced one is the primary.
    pub replicas: Vec<ReplicaEntry>,
    /// If the group sleeps: its last synced replicas, in order of rank. The group goes on when
    /// enough of them are back in the same life.
    pub asleep: Vec<Member>,
    /// Members whose replicas left and will join again without the state. While there are any, the
    /// only synced replica must stay in the group.
    pub awaited: Vec<Member>,
    /// The deposited state with which the group begins, or has begun. `None`: it began with the
    /// service's initial state.
    pub deposit: Option<Deposit>,
}

impl GroupEntry {
    /// Refuses lists that are longer than their limits.
    pub(crate) fn checked(&self) -> Result<(), Malformed> {
        at_most(self.name.len(), MAX_NAME, "name")?;
        let most = most_replicas_ever(GroupId::of(&self.name));
        at_most(self.replicas.len(), most, "replicas")?;
        at_most(self.asleep.len(), most, "asleep")?;
        at_most(self.awaited.len(), most, "awaited")
    }

    /// Whether the group has ended: it has no replica, awake or asleep, and no pending deposit.
    pub fn is_gone(&self) -> bool {
        self.replicas.is_empty() && self.asleep.is_empty() && !self.waits()
    }

    /// Whether a deposited state waits for the group's first replica.
    pub fn waits(&self) -> bool {
        self.deposit.is_some_and(|deposit| deposit.pending)
    }
}

/// One replica of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaEntry {
    /// The node that hosts it, in the life in which it joined.
    pub member: Member,
    /// It has the group's state.
    pub synced: bool,
}
