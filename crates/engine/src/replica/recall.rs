//! A replica's state on the way to the node's disk, and back (`docs/protocol/store.md`, "How groups use it").

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::Time;
use wire::ordered::{Ordered, Poisoned, Progress, ReplicaState, StateHead};

use super::calls::due;
use super::{Arrival, Effect, Mode, Replica, Task, Waiting};
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
        self.run(Command::Snapshot { ticket }, effects);
    }

    /// The disk has given this back: a state, or the service's initial one, and what was taken since.
    pub(crate) fn recall(
        &mut self,
        now: Time,
        state: Option<Bytes>,
        log: Vec<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        self.recollect(now, &log);
        let Some(state) = state else {
            return self.go_on(effects);
        };
        match ReplicaState::decode(&state) {
            Ok(ReplicaState { head, service }) => {
                self.mode = Mode::Recalling { head: Some(head) };
                let ticket = self.give(Task::Restore);
                self.run(Command::Restore { ticket, state: service }, effects);
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

    /// What the replica took, as it was delivered, is to be executed again as far as it is known that it can be. What the log tells of that
    /// counts before all else: the last call of the log may be known by nobody to have been executed.
    fn recollect(&mut self, now: Time, log: &[Bytes]) {
        let arrived = self.lead.arrived();
        for payload in log {
            match Ordered::decode(payload) {
                // When it was ordered nobody here knows: if the calls of its handler have not ended, they have all of their time again.
                Ok(Ordered::Request(request)) => {
                    self.lead.prove(request.proven, None);
                    let due = due(now, &request);
                    let arrival = Arrival { request, due, elsewhere: false, arrived };
                    self.waiting.push_back(Waiting::Request(arrival));
                }
                Ok(Ordered::NestedEnd(end)) => self.waiting.push_back(Waiting::NestedEnd(end, 0)),
                Ok(Ordered::Progress(Progress { executed, trial, .. })) => {
                    self.lead.progress(executed, trial, false, 0);
                }
                Ok(Ordered::Poisoned(Poisoned { number, nodes, .. })) => {
                    self.lead.condemn(number, nodes, false, 0);
                }
                // What it did not take is not in its log.
                _ => {}
            }
        }
        self.lead.suspect_all();
        self.recalled = self.waiting.len();
    }
}
