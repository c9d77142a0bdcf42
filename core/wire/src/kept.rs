//! The data that a node keeps on its disk: the content of its store's records and snapshots
//! (`docs/protocol/store.md`, "How groups use it").
//!
//! | strand | kind | record |
//! | --- | --- | --- |
//! | the node's | 1 | [`NodeRecord`], postcard |
//! | a group's | 2 | an [ordered](crate::ordered) message that the replica took, as it was delivered |
//! | a group's | 3 | the replica begins with the service's initial state; the group's style, postcard |
//! | a group's | 4 | the replica's state is of no use any more; no content |
//! | a group's | 5 | as 2, and another of the same place follows: without the last of them, none of them counts |
//!
//! The snapshot of a group is a [`GroupState`], that of the node a [`Recollection`].

use alloc::vec::Vec;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec::{append, read};
use crate::ordered::{Component, GroupEntry, Place, Style};
use crate::{Incarnation, Malformed, Payload};

/// The kind of a [`NodeRecord`].
pub const NODE: u8 = 1;
/// The kind of an ordered message that a replica took.
pub const TAKEN: u8 = 2;
/// The kind of a replica's beginning.
pub const BEGUN: u8 = 3;
/// The kind of the end of a replica's state.
pub const LOST: u8 = 4;
/// The kind of an ordered message that the replica took, of which the place has another.
pub const FOLLOWED: u8 = 5;

/// Something that happened to the node. Postcard: the variant's number, then the fields in this
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeRecord {
    /// The store was made in this life of the node: what was before is forgotten.
    Since(Incarnation),
    /// A component was installed.
    Installed {
        /// It.
        component: Component,
        /// Its groups on disk, as they are from here on.
        groups: Vec<GroupEntry>,
        /// It has groups in memory.
        volatile: bool,
        /// The level of its rules.
        level: u8,
    },
    /// Every member of the last component has its installation on its disk.
    Effective,
    /// A group on disk has changed to this. Without any replica, asleep or not, it is gone.
    Changed(GroupEntry),
    /// There are groups in memory from here on, or none any more.
    Volatile(bool),
    /// Rules of this level are in force from here on.
    Level(u8),
}

impl NodeRecord {
    /// The bytes to keep.
    pub fn encode(&self) -> Bytes {
        append(Vec::new(), self).into()
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<NodeRecord, Malformed> {
        let record = read(bytes)?;
        match &record {
            NodeRecord::Installed { groups, .. } => {
                groups.iter().try_for_each(GroupEntry::checked)?
            }
            NodeRecord::Changed(group) => group.checked()?,
            NodeRecord::Since(_)
            | NodeRecord::Effective
            | NodeRecord::Volatile(_)
            | NodeRecord::Level(_) => {}
        }
        Ok(record)
    }
}

/// A replica's state, and the group's style where that was taken.
/// ```text
/// style 1 | state
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupState {
    /// The style, which says what the state is.
    pub style: Style,
    /// A [`ReplicaState`](crate::ordered::ReplicaState); of a cold passive group a
    /// [`LoggedState`](crate::ordered::LoggedState).
    pub state: Bytes,
}

impl GroupState {
    /// The bytes to keep of this state, whose body is shared.
    pub fn encode(style: Style, state: &Payload) -> Payload {
        let mut head = Vec::with_capacity(1 + state.head.len());
        head.extend_from_slice(&encode_style(style));
        // A state in one piece can be large: it follows as the body.
        if state.body.is_empty() {
            return Payload { head: head.into(), body: state.head.clone() };
        }
        head.extend_from_slice(&state.head);
        Payload { head: head.into(), body: state.body.clone() }
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &Bytes) -> Result<GroupState, Malformed> {
        let style = decode_style(bytes.get(..1).ok_or(Malformed::Length)?)?;
        Ok(GroupState { style, state: bytes.slice(1..) })
    }
}

/// The content of a [beginning](BEGUN).
pub fn encode_style(style: Style) -> Bytes {
    append(Vec::new(), &style).into()
}

/// Reads the content of a [beginning](BEGUN).
///
/// # Errors
/// [`Malformed`]: no style has this number.
pub fn decode_style(bytes: &[u8]) -> Result<Style, Malformed> {
    read(bytes)
}

/// All that a node's own records amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recollection {
    /// The life in which the store was made.
    pub since: Incarnation,
    /// The last component that is known to be on the disks of all its members.
    pub last: Component,
    /// Later ones, oldest first.
    pub attempts: Vec<Component>,
    /// Groups on disk, each with the place of its last change; those that are gone since the last
    /// installation among them.
    pub groups: Vec<(GroupEntry, Place)>,
    /// There are groups in memory.
    pub volatile: bool,
    /// The level of the rules in force; 0: none is known.
    pub level: u8,
}

impl Recollection {
    /// The bytes to keep.
    pub fn encode(&self) -> Bytes {
        append(Vec::new(), self).into()
    }

    /// Reads them.
    ///
    /// # Errors
    /// [`Malformed`] says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Recollection, Malformed> {
        let recollection: Recollection = read(bytes)?;
        recollection.groups.iter().try_for_each(|(group, _)| group.checked())?;
        Ok(recollection)
    }
}
