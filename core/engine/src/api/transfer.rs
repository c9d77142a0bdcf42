//! The transfer of a group's state.

use wire::{GroupId, RingId, ViewNumber};

/// The name of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transfer {
    /// The ring of the component in which it began: without a quorum, two histories can have views
    /// of one number.
    pub ring: RingId,
    /// The group.
    pub group: GroupId,
    /// The view at whose installation the state was taken.
    pub view: ViewNumber,
}
