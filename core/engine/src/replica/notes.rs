//! Things that a replica's service cannot do with the group's state (`docs/protocol/group.md`, "A state that
//! cannot be had").

use alloc::string::ToString;
use alloc::vec::Vec;

use wire::ViewNumber;
use wire::ordered::About;

use super::{Effect, Replica};
use crate::api::Event;

impl Replica {
    /// The state that others, or the disk, are to have cannot be given.
    pub(super) fn cannot_give(&self, reason: &str, effects: &mut Vec<Effect>) {
        self.failed(About::Give, reason, effects);
    }

    /// The state that has come cannot be read.
    pub(super) fn cannot_read(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        self.transfers.failed = self.transfers.incoming;
        self.failed(About::Read, reason, effects);
    }

    /// This transfer has brought a state that could not be read.
    pub(crate) fn has_failed(&self, transfer: ViewNumber) -> bool {
        self.transfers.failed == Some(transfer)
    }

    /// The fact that was noted about this is so no more.
    pub(super) fn is_well(&self, about: About, effects: &mut Vec<Effect>) {
        effects.push(Effect::Noted(about, None));
    }

    fn failed(&self, about: About, reason: &str, effects: &mut Vec<Effect>) {
        let (group, reason) = (self.group, reason.to_string());
        effects.push(Effect::Event(Event::TransferFailed { group, reason: reason.clone() }));
        effects.push(Effect::Noted(about, Some(reason)));
    }
}
