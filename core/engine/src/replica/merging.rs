//! A replica whose history was given up gives its state, and those of the history that goes on merge
//! it with theirs (`docs/protocol/group.md`, "Merges").

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{MergeChunk, Request};
use wire::{ClientId, Time};

use super::calls::due;
use super::updates::Pieces;
use super::{Arrival, Effect, Mode, Replica, Waiting};
use crate::api::{Command, ServiceOutcome, Ticket};
use crate::session::Asked;

/// The state of a history that is given up, as its service was asked for it.
pub(crate) struct PartedState {
    /// The command that asks.
    pub(crate) ticket: Ticket,
    /// All of the history is in it, so that it is the same at every replica that has all.
    pub(crate) whole: bool,
    /// Calls of the history that are not in it: they were ordered, and not executed here.
    pub(crate) missing: u64,
}

const MISSING: &str = "a state that the group merges is missing here";

impl Replica {
    /// Asks the service for the state of the history that is given up: after all that it was given,
    /// and before it is given another. Nothing here waits for the answer. `None`: the service does not
    /// have the state.
    pub(crate) fn ask_for_parted(&mut self, effects: &mut Vec<Effect>) -> Option<PartedState> {
        let has = matches!(self.mode, Mode::Live | Mode::Draining | Mode::Snapshotting);
        if !has || !self.runs() || self.service.starts {
            return None;
        }
        let whole = self.is_at_rest() && self.has_run_log();
        let missing = self.calls().saturating_sub(self.begun_calls());
        let ticket = self.service.next();
        effects.push(Effect::Run(Command::Snapshot { ticket }));
        Some(PartedState { ticket, whole, missing })
    }

    /// The calls of the history that the service was given.
    fn begun_calls(&self) -> u64 {
        match (&self.cold, self.gate.queue.is_empty()) {
            (Some(cold), _) => cold.run(),
            (None, true) => self.lead.last(),
            (None, false) => self.gate.released,
        }
    }

    /// This replica's knowledge of the merge of a history: nothing, that it is being executed, or its
    /// outcome. The primary of a cold passive group tells the others the outcome of what they logged.
    pub(crate) fn merged(&self, parted: ClientId) -> Option<Option<ServiceOutcome>> {
        let (sessions, asked) = (&self.history.sessions, Asked::Key(parted.0.max(1)));
        let open = self.is_unsettled(parted, 1) || self.is_withheld(parted, 1);
        let known = sessions.known(parted, 1).map(|outcome| outcome.filter(|_| !open));
        let waits = self.has_logged(parted) || self.inbox.queue.iter().any(|it| it.is_of(parted));
        known.or_else(|| match sessions.has_forgotten((parted, 1), 1, asked) {
            true => Some(Some(ServiceOutcome::Ok(Bytes::new()))),
            false => waits.then_some(None),
        })
    }

    /// The group's log has the merge of this history.
    pub(crate) fn has_logged(&self, parted: ClientId) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.has_logged(parted))
    }

    /// A piece of another history's state. With the last piece: the whole.
    pub(crate) fn put_merge_chunk(&mut self, chunk: &MergeChunk) -> Option<Bytes> {
        let (key, place) = ((chunk.view, chunk.parted), (chunk.index, chunk.last));
        self.merge_pieces.put(key, place, &chunk.bytes)
    }

    /// No more pieces of that state will come.
    pub(crate) fn forget_merge_pieces(&mut self) {
        self.merge_pieces = Pieces::default();
    }

    /// This replica should have had a piece, and has not.
    pub(crate) fn misses_merge(&mut self, effects: &mut Vec<Effect>) {
        match self.mode {
            Mode::Joining { .. } | Mode::Restoring { .. } => {
                self.inbox.queue.push_back(Waiting::Gap(MISSING));
            }
            _ if self.has_state() => self.out_of_step(MISSING.into(), effects),
            _ => {}
        }
    }

    /// The merge as it waits among recovered messages.
    pub(super) fn waiting_merge(
        &self,
        now: Time,
        chunk: &MergeChunk,
        whole: Option<Bytes>,
        arrived: u64,
    ) -> Waiting {
        let Some(state) = whole else { return Waiting::Gap(MISSING) };
        let request: Request = chunk.call(state);
        let due = due(now, &request);
        Waiting::Request(Arrival { request, due, elsewhere: false, arrived })
    }
}
