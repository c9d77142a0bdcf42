//! How one group stands, in the table that all members share.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Deposit, GroupOptions, Place};
use crate::codec::at_most;
use crate::limits::{MAX_NAME, MAX_REPLICAS};
use crate::{Malformed, Member, ViewNumber};

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupEntry {
    /// Its name.
    pub name: String,
    /// What its members agreed on.
    pub options: GroupOptions,
    /// The number of its view.
    pub view: ViewNumber,
    /// The place of the last request to it: who has taken that has the group's state.
    pub last: Place,
    /// The place of the last request before its synced replicas became just these: what was answered up to
    /// there may have been held by others.
    pub floor: Place,
    /// Its replicas in order of rank: the first that is synced is the primary.
    pub replicas: Vec<ReplicaEntry>,
    /// While no replica in the component is known to have all that was answered: who were the synced ones, in
    /// order of rank. The group goes on when enough of them are back in the same life.
    pub asleep: Vec<Member>,
    /// Whose replicas were taken out, or went to come anew, and are to come back: until then the only one with the state stays.
    pub awaited: Vec<Member>,
    /// The state that it begins with, or has begun with, if that is not its service's initial one.
    pub deposit: Option<Deposit>,
}

impl GroupEntry {
    /// Refuses lists that are longer than their limits.
    pub(crate) fn checked(&self) -> Result<(), Malformed> {
        at_most(self.name.len(), MAX_NAME, "name")?;
        at_most(self.replicas.len(), MAX_REPLICAS, "replicas")?;
        at_most(self.asleep.len(), MAX_REPLICAS, "asleep")?;
        at_most(self.awaited.len(), MAX_REPLICAS, "awaited")
    }

    /// Nobody has a replica any more, or waits to have one again, and no state waits for one.
    pub fn is_gone(&self) -> bool {
        self.replicas.is_empty() && self.asleep.is_empty() && !self.waits()
    }

    /// A state that was deposited waits for the group's first replica.
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
