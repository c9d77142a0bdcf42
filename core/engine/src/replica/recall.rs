//! A replica's state on the way to the node's disk, and back (`docs/protocol/store.md`, "How groups
//! use it").

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::ordered::{
    LoggedState, Ordered, Poisoned, Progress, ReplicaState, Restyle, StateHead, Style, Told,
};

use super::calls::due;
use super::updates::Pieces;
use super::{Arrival, Effect, Mode, Replica, Task, Waiting};
use crate::api::Command;
use crate::bug::Bug;
use crate::style::StyleRules;

/// A replica's data that a node has kept for the next program.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The state; `None`: the service's initial one.
    pub(crate) state: Option<Bytes>,
    /// The group's style at that state, if the log records where it changed.
    pub(crate) style: Option<Style>,
    /// The messages delivered since, and the changes of style, each with the length of the log
    /// before it.
    pub(crate) log: Vec<Bytes>,
    pub(crate) changes: Vec<(usize, Style)>,
}

impl Replica {
    /// Reports the replica's state to the disk or journal, if there is one.
    pub(super) fn mark(&self, kind: u8, effects: &mut Vec<Effect>) {
        if self.keeps {
            effects.push(Effect::Mark(kind));
        }
    }

    /// A snapshot could be taken now. It ends with a whole update: the pieces of an incomplete one
    /// have to stay in the log.
    pub(crate) fn may_snapshot(&self) -> bool {
        let whole = self.updates.pieces.is_whole()
            && self.checkpoint_pieces.is_whole()
            && self.merge_pieces.is_whole();
        matches!(self.mode, Mode::Live) && whole && !self.begins_log() && !self.waits_to_keep()
    }

    /// Keeps the present state. A passive group's primary waits until its executed calls are
    /// ordered. Requests wait until the state is taken. A cold passive group's checkpoint and log
    /// are here in any case.
    pub(crate) fn keep(&mut self, effects: &mut Vec<Effect>) {
        assert!(self.may_snapshot(), "it is asked first");
        if let Some(state) = self.logged_state() {
            effects.push(Effect::Keeping);
            let (style, state) = (self.service.told, state.encode());
            return effects.push(Effect::Store { style, state, transfer: None });
        }
        if self.is_ahead() {
            self.mode = Mode::Draining;
            return self.inbox.queue.push_back(Waiting::Keep);
        }
        self.take_to_keep(effects);
    }

    pub(super) fn take_to_keep(&mut self, effects: &mut Vec<Effect>) {
        self.mode = Mode::Snapshotting;
        effects.push(Effect::Keeping);
        let ticket = self.service.give(Task::Keep);
        self.run(Command::Snapshot { ticket }, effects);
    }

    /// Restores a replica from the disk: a state, or the service's initial one, of a group in this
    /// style, and the messages taken since.
    pub(crate) fn recall_from_disk(
        &mut self,
        now: Time,
        (style, state): (Style, Option<Bytes>),
        log: Vec<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        self.style = style;
        self.forget(effects);
        self.recollect(now, &log, &[], true);
        // The service that had these calls is gone, and may have died of them.
        self.lead.suspect_all();
        self.begin_again(now, state, Vec::new(), effects);
    }

    /// The service begins with this state, or its initial one. Then it gets the messages taken
    /// since, and those that wait `behind` them.
    fn begin_again(
        &mut self,
        now: Time,
        state: Option<Bytes>,
        behind: Vec<Waiting>,
        effects: &mut Vec<Effect>,
    ) {
        self.mode = Mode::Recalling { head: None };
        self.inbox.queue.extend(behind);
        let Some(state) = state else {
            self.begin_to_vote(effects);
            return self.go_on(effects);
        };
        if self.cold.is_some() {
            return match LoggedState::decode(&state) {
                Ok(state) => {
                    self.take_log(now, state, true);
                    self.go_on(effects);
                }
                Err(malformed) => self.unreadable(&malformed.to_string(), effects),
            };
        }
        match ReplicaState::decode(&state) {
            Ok(ReplicaState { head, service }) => {
                self.mode = Mode::Recalling { head: Some(head) };
                let ticket = self.service.give(Task::Restore);
                self.run(Command::Restore { ticket, state: service }, effects);
            }
            Err(malformed) => self.unreadable(&malformed.to_string(), effects),
        }
    }

    /// The service has read the recovered state.
    pub(super) fn reread(&mut self, result: Result<(), String>, effects: &mut Vec<Effect>) {
        let Mode::Recalling { head } = &mut self.mode else {
            panic!("a service answers only what it was given");
        };
        let head = head.take().expect("a snapshot comes with its head");
        match result {
            Ok(())
                if self.planted.is(Bug::ForgetLoggedSessions)
                    || self.planted.is(Bug::ReviveWithoutSessions) =>
            {
                self.adopt(StateHead { sessions: Vec::new(), ..head });
                self.go_on(effects);
            }
            Ok(()) => {
                self.adopt(head);
                self.begin_to_vote(effects);
                self.go_on(effects);
            }
            Err(reason) => self.unreadable(&reason, effects),
        }
    }

    /// The service cannot use the data of the disk: the replica goes on like one without a state.
    fn unreadable(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        self.cannot_read(reason, effects);
        effects.push(Effect::Overflow);
        // The disk keeps the data for a program that can read them, until there is another state.
        self.forget(effects);
        self.mode = Mode::Idle;
    }

    /// The group is cold passive: requests and checkpoint are here, even if the service dies.
    pub(crate) fn has_log(&self) -> bool {
        self.cold.is_some() && !self.begins_log() && matches!(self.mode, Mode::Live)
    }

    /// The replica's program has died. If the next program goes on from here, it gets the same
    /// calls.
    pub(crate) fn fall(&mut self, effects: &mut Vec<Effect>) {
        let has_log = self.has_log();
        self.service.runs = false;
        self.service.used = false;
        self.service.holds_former = false;
        self.service.viewed = None;
        if has_log {
            return self.stop(effects);
        }
        // The log has not begun, or the service was just starting from it: the node's kept data
        // count.
        self.cold = None;
        self.forget_handlers(effects);
        self.service.tasks.clear();
        self.close_gate(effects);
        self.primary.forget();
        self.mode = Mode::Fallen;
    }

    /// Another program goes on from this state and the messages since; in a cold passive group,
    /// from the log.
    pub(crate) fn rise(&mut self, now: Time, kept: Option<Kept>, effects: &mut Vec<Effect>) {
        let (Mode::Fallen, Some(Kept { state, style: begun, log, changes })) = (&self.mode, kept)
        else {
            return;
        };
        let (state, log) = match self.planted.is(Bug::ReviveEmpty) {
            true => (None, Vec::new()),
            false => (state, log),
        };
        let is_read = |waiting: &Waiting| matches!(waiting, Waiting::Read { .. });
        let mut behind: Vec<Waiting> =
            core::mem::take(&mut self.inbox.queue).into_iter().filter(is_read).collect();
        // All else that was given is lost with its program.
        let bytes = |waiting: &Waiting| match waiting {
            Waiting::Read { request, .. } => request.body.len(),
            _ => 0,
        };
        let served = (behind.iter().map(bytes).sum(), behind.len());
        let lead = core::mem::take(&mut self.lead);
        // Requests of a log are executed as they were ordered.
        let told = if self.service.told.logs() { Style::SemiActive } else { self.service.told };
        self.service.told = begun.unwrap_or(told);
        let style = core::mem::replace(&mut self.style, self.service.told);
        if begun.is_some() || style != self.service.told {
            behind.push(Waiting::Style { style, alone: true });
        }
        self.forget(effects);
        (self.service.serving, self.service.reading) = served;
        self.lead = lead;
        self.lead.go_on_from(0);
        // The deaths of this life are known.
        self.recollect(now, &log, &changes, false);
        self.begin_again(now, state, behind, effects);
        self.style = style;
    }

    /// The delivered messages of a log are to be executed again, as far as they are known to be
    /// safe. The log's own knowledge counts first: nobody else may know that its last call was
    /// executed. `trials`: services that tried a call have died of it.
    fn recollect(&mut self, now: Time, log: &[Bytes], changes: &[(usize, Style)], trials: bool) {
        let (arrived, mut proven) = (self.lead.arrived(), 0);
        let mut changes = changes.iter().peekable();
        for (place, payload) in log.iter().enumerate() {
            while let Some((_, style)) = changes.next_if(|(behind, _)| *behind <= place) {
                self.inbox.queue.push_back(Waiting::Style { style: *style, alone: true });
            }
            match Ordered::decode(payload) {
                // The time of ordering is unknown here. If the handler's nested calls have not
                // ended, they have all of their time again.
                Ok(Ordered::Request(request)) => {
                    proven = request.proven.max(proven);
                    self.lead.prove(proven, None);
                    let due = due(now, &request);
                    let arrival = Arrival { request, due, elsewhere: false, arrived };
                    self.inbox.queue.push_back(Waiting::Request(arrival));
                }
                Ok(Ordered::MergeChunk(chunk)) => {
                    let whole = self.put_merge_chunk(&chunk);
                    if chunk.last {
                        let waiting = self.waiting_merge(now, &chunk, whole, arrived);
                        self.inbox.queue.push_back(waiting);
                    }
                }
                Ok(Ordered::PrimaryChunk(chunk)) if chunk.what == Told::Update => {
                    let (number, bytes) = (chunk.number, self.updates.pieces.put_primary(&chunk));
                    if chunk.last {
                        self.inbox.bytes += bytes.as_ref().map_or(0, Bytes::len);
                        self.inbox.queue.push_back(Waiting::Update { number, bytes });
                    }
                }
                Ok(Ordered::PrimaryChunk(chunk)) => {
                    let (number, bytes) =
                        (chunk.number, self.checkpoint_pieces.put_primary(&chunk));
                    if chunk.last {
                        self.inbox.bytes += bytes.as_ref().map_or(0, Bytes::len);
                        self.inbox.queue.push_back(Waiting::Checkpoint { number, bytes });
                    }
                }
                Ok(Ordered::Restyle(Restyle { style, .. })) => {
                    self.style = style;
                    self.inbox.queue.push_back(Waiting::Style { style, alone: true });
                }
                Ok(Ordered::NestedEnd(end)) => {
                    self.inbox.queue.push_back(Waiting::NestedEnd(end, 0))
                }
                Ok(Ordered::Progress(Progress { executed, trial, .. })) => {
                    proven = executed.max(proven);
                    self.lead.progress(executed, trial.filter(|_| trials), None, 0);
                }
                Ok(Ordered::Poisoned(Poisoned { number, nodes, .. }))
                    if !self.planted.is(Bug::ForgetVerdictsOfLog) =>
                {
                    self.lead.condemn_again(number, nodes, proven);
                }
                // Messages that the replica did not take are not in its log.
                _ => {}
            }
        }
        for (_, style) in changes {
            self.inbox.queue.push_back(Waiting::Style { style: *style, alone: true });
        }
        if trials {
            self.merge_pieces = Pieces::default(); // it comes back in another view
        }
        self.inbox.recalled = self.inbox.queue.len();
    }
}
