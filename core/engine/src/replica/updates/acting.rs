//! Updates that a backup takes.

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::ClientId;
use wire::limits::{MAX_JOIN_BACKLOG, MAX_UPDATE_BACKLOG};
use wire::ordered::{PrimaryChunk, Update};

use crate::api::{Command, Event};
use crate::bug::Bug;
use crate::replica::{Effect, Mode, Replica, Task, Waiting, answer};
use crate::session::{Asked, kept};

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
        let bytes = self.updates.pieces.put_primary(chunk);
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

    /// The primary's message waits with the rest. It is returned if too much waited: then no
    /// message waits any more.
    pub(in crate::replica) fn keep_back(
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
            | Waiting::View(_)
            | Waiting::Gap(_)
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
    pub(in crate::replica) fn take(
        &mut self,
        number: u64,
        bytes: Option<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
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
        for (index, entry) in head.entries.into_iter().enumerate() {
            let (client, number) = (entry.client, entry.number);
            let outcome = kept(entry.reply);
            calls.push((client, number));
            let key = head.keys.get(index).copied().unwrap_or_default();
            let asked = Asked::from_entry(entry.asked, key);
            let told = (entry.unanswered, asked);
            self.history.sessions.record(
                (client, number),
                told,
                self.history.clock,
                outcome.clone(),
            );
            self.lead.settle_ahead((client, number));
            effects.push(Effect::Placed { client, number, asked });
            answer(client, number, asked, outcome, effects);
        }
        head.poisoned.into_iter().for_each(|poison| self.keep_poison(poison, effects));
        self.lead.skip(calls.len() as u64);
        self.open_gate(effects); // the primary has executed all that came before
        let ticket = self.service.give(Task::Apply { calls });
        self.run(Command::Apply { ticket, change }, effects);
    }

    /// The service has applied an update's change.
    pub(in crate::replica) fn applied(
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

    /// This replica has lost the group's state: it joins anew.
    pub(in crate::replica) fn out_of_step(&mut self, reason: String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Event(Event::UpdateFailed { group: self.group, reason }));
        effects.push(Effect::Overflow);
        self.idle(effects);
    }
}
