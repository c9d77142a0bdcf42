//! A replica's state on the way to the node's disk, and back (`docs/protocol/store.md`, "How groups use it").

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::ordered::{Ordered, ReplicaState, StateHead};

use super::calls::due;
use super::{Effect, Mode, Replica, Task, Waiting};
use crate::api::Command;
use crate::bug::Bug;

impl Replica {
    /// Of a group on disk the log is told what the replica's state is.
    pub(super) fn mark(&self, kind: u8, effects: &mut Vec<Effect>) {
        if self.on_disk {
            effects.push(Effect::Mark(kind));
        }
    }

    /// A snapshot could be taken now.
    pub(crate) fn may_snapshot(&self) -> bool {
        matches!(self.mode, Mode::Live)
    }

    /// The state as it is now is to be kept on disk. Requests wait until it is taken.
    pub(crate) fn keep(&mut self, effects: &mut Vec<Effect>) {
        assert!(self.may_snapshot(), "it is asked first");
        self.mode = Mode::Snapshotting;
        let ticket = self.give(Task::Keep);
        effects.push(Effect::Run(Command::Snapshot { ticket }));
    }

    /// The disk has given this back: a state, or the service's initial one, and what was taken since.
    pub(crate) fn recall(
        &mut self,
        now: Time,
        state: Option<Bytes>,
        log: Vec<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        self.waiting = log.iter().filter_map(|payload| taken(now, payload)).collect();
        self.recalled = self.waiting.len();
        let Some(state) = state else {
            return self.go_on(effects);
        };
        match ReplicaState::decode(&state) {
            Ok(ReplicaState { head, service }) => {
                self.mode = Mode::Recalling { head: Some(head) };
                let ticket = self.give(Task::Restore);
                effects.push(Effect::Run(Command::Restore { ticket, state: service }));
            }
            Err(malformed) => self.unreadable(&malformed.to_string(), effects),
        }
    }

    /// The service has read the state that the disk gave back.
    pub(super) fn reread(&mut self, result: Result<(), String>, effects: &mut Vec<Effect>) {
        let Mode::Recalling { head } = &mut self.mode else {
            panic!("a service answers only what it was given");
        };
        let head = head.take().expect("a snapshot comes with its head");
        match result {
            Ok(()) if self.planted.is(Bug::ForgetLoggedSessions) => {
                self.adopt(StateHead { sessions: Vec::new(), ..head });
                self.go_on(effects);
            }
            Ok(()) => {
                self.adopt(head);
                self.go_on(effects);
            }
            Err(reason) => self.unreadable(&reason, effects),
        }
    }

    /// What is on the disk is of no use to the service: it goes on like one that has no state.
    fn unreadable(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        effects.push(self.failed(reason));
        effects.push(Effect::Overflow);
        // The disk keeps it for a program that can read it, until there is another state.
        self.forget(effects);
        self.mode = Mode::Idle;
    }
}

/// What a replica took, as it was delivered. What it did not take is not in its log.
fn taken(now: Time, payload: &Bytes) -> Option<Waiting> {
    match Ordered::decode(payload) {
        // When it was ordered nobody here knows: if the calls of its handler have not ended, they have all of their time again.
        Ok(Ordered::Request(request)) => {
            let due = due(now, &request);
            Some(Waiting::Request(request, due, false))
        }
        Ok(Ordered::NestedEnd(end)) => Some(Waiting::NestedEnd(end, 0)),
        _ => None,
    }
}
