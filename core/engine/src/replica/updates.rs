//! What the backup of a warm passive group does with its primary's updates.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_JOIN_BACKLOG, MAX_UPDATE, MAX_UPDATE_BACKLOG};
use wire::ordered::{Place, PrimaryChunk, Update};
use wire::{ClientId, Time};

use super::{Effect, Mode, Replica, Task, Waiting, answer};
use crate::api::{Command, Event};
use crate::bug::Bug;
use crate::session::kept;

/// The updates that a replica has taken, and the one that is coming in.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// So many are in the group's history, as far as it is known here.
    pub(super) taken: u64,
    /// Ordered time by what is in them, and was ordered before: as all have it. The primary's own goes on with what it executes.
    pub(super) clock: Time,
    pub(super) pieces: Pieces,
}

/// Puts together what a primary tells in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces(Option<Incoming>);

/// What has come of it so far.
#[derive(Debug)]
struct Incoming {
    since: Place,
    number: u64,
    next: u32,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Nothing of what came is still to be completed.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// With the last piece: the whole, or nothing if not all of it came here.
    pub(super) fn put(&mut self, chunk: &PrimaryChunk) -> Option<Bytes> {
        if chunk.index == 0 && chunk.last {
            self.0 = None;
            return Some(chunk.bytes.clone());
        }
        if chunk.index == 0 {
            let (since, number, bytes) = (chunk.since, chunk.number, Vec::new());
            self.0 = Some(Incoming { since, number, next: 0, bytes });
        }
        let fits = |incoming: &mut Incoming| {
            let expected = (incoming.since, incoming.number, incoming.next);
            expected == (chunk.since, chunk.number, chunk.index)
                && incoming.bytes.len() + chunk.bytes.len() <= MAX_UPDATE
        };
        let mut incoming = self.0.take_if(fits)?;
        incoming.bytes.extend_from_slice(&chunk.bytes);
        incoming.next += 1;
        if chunk.last {
            return Some(incoming.bytes.into());
        }
        self.0 = Some(incoming);
        None
    }
}

impl Replica {
    /// A piece of an update of the group's primary is delivered. `own`: it is this replica.
    pub(crate) fn update_chunk(
        &mut self,
        chunk: &PrimaryChunk,
        own: bool,
        effects: &mut Vec<Effect>,
    ) {
        if own && self.own_chunk(chunk, effects) {
            return;
        }
        let bytes = self.updates.pieces.put(chunk);
        if !chunk.last {
            return;
        }
        match self.mode {
            Mode::Idle | Mode::Fallen => {}
            Mode::Live => self.take(chunk.number, bytes, effects),
            Mode::Draining
            | Mode::Snapshotting
            | Mode::Joining { .. }
            | Mode::Restoring { .. }
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                let number = chunk.number;
                let waiting = Waiting::Update { number, bytes };
                if let Some(Waiting::Update { number, bytes }) = self.keep_back(waiting, effects)
                    && matches!(self.mode, Mode::Live)
                {
                    self.take(number, bytes, effects); // a donor that has given its transfer up goes on
                }
            }
        }
    }

    /// What the primary told waits with the rest. Given back if that became too much: then nothing waits any more.
    pub(super) fn keep_back(
        &mut self,
        waiting: Waiting,
        effects: &mut Vec<Effect>,
    ) -> Option<Waiting> {
        let size = match &waiting {
            Waiting::Update { bytes, .. } | Waiting::Checkpoint { bytes, .. } => {
                bytes.as_ref().map_or(0, Bytes::len)
            }
            Waiting::Request(..)
            | Waiting::Read { .. }
            | Waiting::NestedEnd(..)
            | Waiting::Style { .. }
            | Waiting::Snapshot(_)
            | Waiting::Keep => 0,
        };
        let full = self.inbox.queue.len() >= MAX_JOIN_BACKLOG
            || self.inbox.bytes + size > MAX_UPDATE_BACKLOG;
        if full && !self.inbox.queue.is_empty() {
            self.overflow(effects);
            return Some(waiting);
        }
        self.inbox.bytes += size;
        self.inbox.queue.push_back(waiting);
        None
    }

    /// An update is next, unless the state that was transferred has it.
    pub(super) fn take(&mut self, number: u64, bytes: Option<Bytes>, effects: &mut Vec<Effect>) {
        if number <= self.updates.taken {
            if !self.planted.is(Bug::TakeTwice) {
                return;
            }
            self.updates.taken = number - 1;
        }
        let whole = bytes.filter(|_| number == self.updates.taken + 1);
        let whole = whole.ok_or("an update is missing here");
        let update = whole
            .map_err(String::from)
            .and_then(|bytes| Update::decode(&bytes).map_err(|malformed| malformed.to_string()));
        let Update { head, change } = match update {
            Ok(update) => update,
            Err(reason) => return self.out_of_step(reason, effects),
        };
        self.updates.taken = number;
        self.history.clock = self.history.clock.max(head.clock);
        self.updates.clock = self.history.clock;
        let mut calls = Vec::with_capacity(head.entries.len());
        for entry in head.entries {
            let (client, number) = (entry.client, entry.number);
            let outcome = kept(entry.reply);
            calls.push((client, number));
            let asked = (entry.asked > 0).then_some(entry.asked);
            let told = (entry.unanswered, asked);
            self.history.sessions.record(
                (client, number),
                told,
                self.history.clock,
                outcome.clone(),
            );
            self.lead.settle_ahead((client, number));
            effects.push(Effect::Placed { client, number });
            answer(client, number, asked, outcome, effects);
        }
        head.poisoned.into_iter().for_each(|poison| self.keep_poison(poison, effects));
        self.lead.skip(calls.len() as u64);
        self.open_gate(effects); // the primary has executed all that came before
        let ticket = self.give(Task::Apply { calls });
        self.run(Command::Apply { ticket, change }, effects);
    }

    /// The service has made an update's change its own.
    pub(super) fn applied(
        &mut self,
        calls: Vec<(ClientId, u64)>,
        result: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        match result {
            Ok(()) => {
                for (client, number) in calls {
                    self.count(client, number, effects);
                }
            }
            Err(reason) => self.out_of_step(reason, effects),
        }
    }

    /// This replica has not the group's state any more: it comes anew.
    pub(super) fn out_of_step(&mut self, reason: String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Event(Event::UpdateFailed { group: self.group, reason }));
        effects.push(Effect::Overflow);
        self.idle(effects);
    }
}
