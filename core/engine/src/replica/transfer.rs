//! A replica's state on the way in or out (`docs/protocol/group.md`, "State transfer").

mod acting;

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ViewNumber;
use wire::ordered::{ReplicaState, StateHead, Style};

use super::Effect;

/// State on its way to others.
#[derive(Debug)]
pub(super) struct Outgoing {
    transfer: ViewNumber,
    state: Bytes,
    next: u32,
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
