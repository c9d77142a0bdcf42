//! A replica's state on the way in or out (`docs/protocol/group.md`, "State transfer").

mod acting;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ViewNumber;
use wire::limits::STREAMED_STATE;
use wire::ordered::{ReplicaState, StateHead, Style};

use super::Effect;
use crate::outgoing::Outgoing;

/// States on their way.
#[derive(Clone, Debug)]
pub(super) struct Transfers {
    pub(super) outgoing: Vec<Outgoing>,
    /// Transfers that were begun here and are still wanted.
    pub(super) given: Vec<ViewNumber>,
    /// The transfer that brings this replica its state, or has brought it.
    pub(super) incoming: Option<ViewNumber>,
    /// The last transfer that brought a state which could not be read.
    pub(super) failed: Option<ViewNumber>,
    /// Bytes from which on a state is offered to be fetched.
    pub(super) streamed: usize,
    /// A log's state says which calls may kill: from level `WHOLE` on.
    pub(super) tells_blame: bool,
}

impl Default for Transfers {
    fn default() -> Transfers {
        let (outgoing, given) = (Vec::new(), Vec::new());
        let (incoming, failed) = (None, None);
        let (streamed, tells_blame) = (STREAMED_STATE, false);
        Transfers { outgoing, given, incoming, failed, streamed, tells_blame }
    }
}

/// A state that was taken in this style is to be kept.
pub(super) fn store_whole(
    style: Style,
    head: StateHead,
    service: Bytes,
    effects: &mut Vec<Effect>,
) {
    let state = ReplicaState { head, service }.encode();
    effects.push(Effect::Store { style, state, transfer: None });
}
