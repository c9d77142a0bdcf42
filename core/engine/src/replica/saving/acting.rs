//! States that are saved.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::ViewNumber;
use wire::ordered::Form;

use super::name_of;
use crate::replica::{Effect, Replica, Waiting};

impl Replica {
    /// The state is wanted as it is at this place of the order: [`Effect::Saved`] brings it.
    /// Requests wait while it is taken.
    pub(crate) fn save(&mut self, number: u64, effects: &mut Vec<Effect>) {
        assert!(self.has_state(), "it is asked first");
        let name = name_of(number);
        self.transfers.given.push(name);
        self.take_for(name, effects);
    }

    /// Whether this save is still under way here.
    pub(crate) fn is_saving(&self, number: u64) -> bool {
        self.transfers.given.contains(&name_of(number))
    }

    /// Nobody waits for this save any more.
    pub(crate) fn give_save_up(&mut self, number: u64) {
        let name = name_of(number);
        self.transfers.given.retain(|given| *given != name);
        self.inbox.queue.retain(|waiting| !matches!(waiting, Waiting::Snapshot(of) if *of == name));
        self.keep_promises(|promised| promised != name);
    }

    /// It is there, or cannot be had.
    pub(in crate::replica) fn saved(
        &mut self,
        save: ViewNumber,
        taken: Result<(Form, Bytes), String>,
        effects: &mut Vec<Effect>,
    ) {
        let wanted = self.transfers.given.len();
        self.transfers.given.retain(|given| *given != save);
        if self.transfers.given.len() < wanted {
            effects.push(Effect::Saved(taken));
        }
    }
}

#[cfg(test)]
mod tests;
