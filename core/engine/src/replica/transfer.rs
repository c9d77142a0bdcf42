//! A replica's state on the way in or out (`docs/protocol/group.md`, "State transfer").

mod acting;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::STREAMED_STATE;
use wire::ordered::{ReplicaState, StateHead, Style};
use wire::{Payload, ViewNumber};

use super::{Effect, Mode, Replica};
use crate::outgoing::Outgoing;

/// States on their way.
#[derive(Debug)]
pub(super) struct Transfers {
    pub(super) outgoing: Vec<Outgoing>,
    /// Transfers that were begun here and are still wanted.
    pub(super) given: Vec<ViewNumber>,
    /// The transfer that brings this replica its state, or has brought it.
    pub(super) incoming: Option<ViewNumber>,
    /// Bytes from which on a state is offered to be fetched.
    streamed: usize,
}

impl Default for Transfers {
    fn default() -> Transfers {
        let (outgoing, given) = (Vec::new(), Vec::new());
        Transfers { outgoing, given, incoming: None, streamed: STREAMED_STATE }
    }
}

impl Replica {
    /// States of so many bytes are offered to be fetched by a stream.
    pub(crate) fn stream_from(&mut self, bytes: usize) {
        self.transfers.streamed = bytes;
    }

    /// The state that this replica gives by this transfer.
    pub(crate) fn offered(&self, transfer: ViewNumber) -> Option<&Payload> {
        let mut outgoing = self.transfers.outgoing.iter();
        outgoing.find(|outgoing| outgoing.transfer() == transfer).map(Outgoing::state)
    }

    /// This replica waits for the state that this transfer brings.
    pub(crate) fn joins_by(&self, by: ViewNumber) -> bool {
        matches!(self.mode, Mode::Joining { transfer, .. } if transfer == by)
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
