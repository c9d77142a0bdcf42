//! What a new configuration's members tell each other: who brings what, and how the groups stand.

use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{GroupEntry, Place, Recall};
use crate::codec::at_most;
use crate::keys::{KeyTable, checked_table};
use crate::limits::{MAX_GROUPS, MAX_MEMBERS};
use crate::{GroupId, Malformed, Member, RingId};

/// A configuration that had the quorum: its number, and who was in it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Component {
    /// One more than all that its members named. 0: there was none.
    pub epoch: u64,
    /// Its ring. Of two components with one epoch that of the larger ring came later, as long as nobody has forgotten one of them.
    pub ring: RingId,
    /// Its members, in order of id.
    pub members: Vec<Member>,
}

/// What a member brings to a new configuration, said by each of its members.
///
/// ```text
/// | ring.seq | rep | first life | last: component | attempts: count, each component | position |
///                        replicas: count, each (group, place) | ahead: count, each group | address | recall |
/// component   | epoch | ring.seq | rep | members: count, each (node, incarnation) |
/// place       | epoch | ring.seq | rep | sequence |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announce {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The sender knows that its node never ran before: it cannot have forgotten anything.
    pub first_life: bool,
    /// The last component that the sender knows to have been installed by all its members.
    pub last: Component,
    /// Later components, oldest first, that the sender installed without learning whether all
    /// their members did.
    pub attempts: Vec<Component>,
    /// The sender has executed all that was ordered, up to this sequence number, in the newest
    /// component named here.
    pub position: u64,
    /// The groups of which the sender has a replica with the state, in order, each with the place
    /// of the last request that it took.
    pub replicas: Vec<(GroupId, Place)>,
    /// Those of these groups, in order, of whose calls the sender has executed some that are in no update yet: it
    /// can only go on as their primary.
    pub ahead: Vec<GroupId>,
    /// Where the sender's clients connect.
    pub address: Option<SocketAddr>,
    /// What its disk knows; `None` of a node without storage.
    pub recall: Option<Recall>,
}

/// Attempts that an announcement may carry.
pub const MAX_ATTEMPTS: usize = 16;

impl Announce {
    /// Refuses lists that are longer than their limits.
    pub(super) fn checked(self) -> Result<Announce, Malformed> {
        at_most(self.attempts.len(), MAX_ATTEMPTS, "attempts")?;
        at_most(self.replicas.len(), MAX_GROUPS, "announced replicas")?;
        at_most(self.ahead.len(), MAX_GROUPS, "replicas ahead")?;
        for component in core::iter::once(&self.last).chain(&self.attempts) {
            at_most(component.members.len(), MAX_MEMBERS, "component")?;
        }
        self.recall.as_ref().map_or(Ok(()), Recall::checked)?;
        Ok(self)
    }
}

/// The groups as they stand after a configuration's announcements, from a member that knows.
///
/// ```text
/// | ring.seq | rep | epoch | groups: count, each group | keys: 0 or 1, the table |
/// group   | name | options | view | last: place | floor: place |
///                      replicas: count, each (member, synced) | asleep: count, each member |
///                      awaited: count, each member | deposit: 0 or 1, it |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The number of the component that is hereby installed.
    pub epoch: u64,
    /// Every group, in order of name.
    pub groups: Vec<GroupEntry>,
    /// The keys that seal datagrams; `None` where they are not sealed.
    pub keys: Option<KeyTable>,
}

impl Install {
    /// Refuses lists that are longer than their limits.
    pub(super) fn checked(self) -> Result<Install, Malformed> {
        at_most(self.groups.len(), MAX_GROUPS, "groups")?;
        self.groups.iter().try_for_each(GroupEntry::checked)?;
        self.keys.as_ref().map_or(Ok(()), checked_table)?;
        Ok(self)
    }
}
