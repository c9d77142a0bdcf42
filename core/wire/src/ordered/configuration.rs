//! The messages at the start of a configuration: each member's announcement, and the group table.

use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{GroupEntry, Place, Recall};
use crate::codec::at_most;
use crate::keys::{KeyTable, checked_table};
use crate::limits::{MAX_GROUPS, MAX_MEMBERS};
use crate::roster::Roster;
use crate::{Extension, GroupId, Malformed, Member, NodeId, Program, RingId};

/// A configuration that had the quorum: its number, and who was in it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Component {
    /// One more than the highest epoch that its members announced. 0: there was no component.
    pub epoch: u64,
    /// Its ring. If two components have the same epoch, the one with the larger ring is later,
    /// unless a member has forgotten one of them.
    pub ring: RingId,
    /// Its members, in order of id.
    pub members: Vec<Member>,
}

/// The state of a member at the start of a configuration. Every member orders one. Its form is frozen:
/// it is read before the level is known. A member with a roster that was changed, which none but
/// programs of level 2 have, puts that before it.
///
/// ```text
/// | ring.seq | rep | first life | last: component | attempts: count, each component | position |
///                        replicas: count, each (group, place) | ahead: count, each group | address | recall |
///                        program | level | extension |
/// component   | epoch | ring.seq | rep | members: count, each (node, incarnation) |
/// place       | epoch | ring.seq | rep | sequence |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announce {
    /// The configuration that this is about.
    pub ring: RingId,
    /// The sender's node never ran before, as its disk shows. So it cannot have forgotten anything.
    pub first_life: bool,
    /// The last component that the sender knows to have been installed by all its members.
    pub last: Component,
    /// Later components, oldest first, that the sender installed without learning whether all
    /// their members did.
    pub attempts: Vec<Component>,
    /// The last sequence number up to which the sender has executed the order of the newest
    /// component named here.
    pub position: u64,
    /// The sender's synced replicas, in order of group, each with the place of the last request
    /// that it took.
    pub replicas: Vec<(GroupId, Place)>,
    /// Those of the replicas that have executed calls of which no update was delivered. Such a
    /// replica can only go on as the primary.
    pub ahead: Vec<GroupId>,
    /// The sender's address for clients.
    pub address: Option<SocketAddr>,
    /// The disk's part; `None`: the node has no storage.
    pub recall: Option<Recall>,
    /// The sender's program.
    pub program: Program,
    /// The level of the rules in force, as far as the sender knows; 0: it knows of none.
    pub level: u8,
    /// Bytes that a newer program adds.
    pub extension: Extension,
    /// The sender's roster.
    #[serde(skip)]
    pub roster: Roster,
}

/// The most attempts in an announcement.
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
        self.program.check()?;
        self.extension.check()?;
        Ok(self)
    }
}

/// The group table that follows from a configuration's announcements, from a member of the
/// authority.
///
/// ```text
/// | ring.seq | rep | epoch | groups: count, each group | keys: 0 or 1, the table |
///                        programs: count, each (node, program) |
/// group   | name | options | view | last: place | floor: place |
///                      replicas: count, each (member, synced) | asleep: count, each member |
///                      awaited: count, each member | deposit: 0 or 1, it |
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Install {
    /// The configuration that becomes a component.
    pub ring: RingId,
    /// The component's number.
    pub epoch: u64,
    /// Every group, in order of name.
    pub groups: Vec<GroupEntry>,
    /// The keys that seal datagrams; `None`: datagrams are not sealed.
    pub keys: Option<KeyTable>,
    /// The programs of nodes that are away, as they said last, in order of node.
    pub programs: Vec<(NodeId, Program)>,
    /// The nodes. If they were ever changed, they stand before the other fields.
    #[serde(skip)]
    pub roster: Roster,
}

impl Install {
    /// Refuses lists that are longer than their limits.
    pub(super) fn checked(self) -> Result<Install, Malformed> {
        at_most(self.groups.len(), MAX_GROUPS, "groups")?;
        self.groups.iter().try_for_each(GroupEntry::checked)?;
        self.keys.as_ref().map_or(Ok(()), checked_table)?;
        at_most(self.programs.len(), MAX_MEMBERS, "programs")?;
        self.programs.iter().try_for_each(|(_, program)| program.check())?;
        Ok(self)
    }
}
