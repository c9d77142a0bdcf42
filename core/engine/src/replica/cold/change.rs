//! The change of style to cold passive and from it (`docs/protocol/group.md`, "Change of style").
//!
//! Towards it each replica's service has all that was ordered before. It says what its state is at
//! that place, which is the first checkpoint, and ends where this replica is not primary; requests
//! from there on go to the log meanwhile. From it each replica's service begins with the checkpoint
//! and executes the log to its end, and requests from there on wait.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::ViewNumber;
use wire::ordered::{About, LoggedState, Style};

use super::{Cold, Progress, Running};
use crate::api::{Command, Event};
use crate::bug::Bug;
use crate::replica::{Effect, Mode, Replica, Task};

impl Replica {
    /// It keeps a log, and nothing that was ordered before that has to be done first.
    pub(in crate::replica) fn logs_now(&self) -> bool {
        self.cold.is_some() && matches!(self.mode, Mode::Live)
    }

    /// Its log has begun, and its first checkpoint is not there yet: only its service has the
    /// state.
    pub(in crate::replica) fn begins_log(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.begins)
    }

    /// From this place of the order on requests are logged. The service has all earlier requests,
    /// and takes the first checkpoint behind them.
    pub(in crate::replica) fn begin_log(&mut self, effects: &mut Vec<Effect>) {
        if self.planted.is(Bug::EndBeforeCheckpoint) {
            self.cold = Some(Cold::default());
            return self.stop(effects);
        }
        let since = self.primary.reigning;
        let running = Running {
            since,
            next: 1,
            until: since.is_none().then_some(0),
            restoring: false,
            replaying: None,
            checkpoint: Progress::Asked(0),
        };
        self.cold = Some(Cold { begins: true, running: Some(running), ..Cold::default() });
        let ticket = self.service.give(Task::Checkpoint);
        self.run(Command::Snapshot { ticket }, effects);
    }

    /// The service has taken the first checkpoint, or cannot.
    pub(super) fn log_begun(&mut self, state: Result<Bytes, String>, effects: &mut Vec<Effect>) {
        let early = self.planted.is(Bug::BeginWithoutPlace);
        let cold = self.cold.as_mut().expect("its group logs");
        if early && cold.running_mut().until.is_some() {
            cold.log.clear();
            (cold.cut, cold.bytes) = (cold.logged, 0);
            cold.running_mut().next = cold.logged + 1;
        }
        let promised = core::mem::take(&mut cold.promised);
        match state {
            Ok(checkpoint) => {
                (cold.checkpoint, cold.begins) = (checkpoint.clone(), false);
                effects.push(Effect::Checkpointed);
                for (transfer, state) in promised {
                    let state = LoggedState { checkpoint: checkpoint.clone(), ..state };
                    self.offer_state(transfer, state.encode(), effects);
                }
            }
            // The primary goes on with its service, and tries again when there is something to cut.
            // A backup joins anew.
            Err(reason) => {
                promised.iter().for_each(|(to, _)| self.not_given(*to, &reason, effects));
                effects.push(Effect::CheckpointFailed);
                let group = self.group;
                effects.push(Effect::Noted(About::Give, Some(reason.clone())));
                effects.push(Effect::Event(Event::CheckpointFailed { group, reason }));
            }
        }
    }

    /// A replica joins while the first checkpoint is awaited: it will get that, and the log as of
    /// this place.
    pub(super) fn promise_log(
        &mut self,
        transfer: ViewNumber,
        state: LoggedState,
        effects: &mut Vec<Effect>,
    ) {
        let cold = self.cold.as_mut().expect("its group logs");
        let asked = |running: &Running| matches!(running.checkpoint, Progress::Asked(_));
        if cold.running.as_ref().is_some_and(asked) {
            cold.promised.push((transfer, state));
        } else {
            self.not_given(transfer, "the service could not say what its state is", effects);
        }
    }

    /// Transfers that are of no use any more are not promised any more.
    pub(in crate::replica) fn keep_promises(&mut self, is_wanted: impl Fn(ViewNumber) -> bool) {
        if let Some(cold) = &mut self.cold {
            cold.promised.retain(|(transfer, _)| is_wanted(*transfer));
        }
    }

    /// From this place of the order on the group has this style, in which every replica's service
    /// has the state: this one's executes what the log has.
    pub(in crate::replica) fn launch(
        &mut self,
        style: Style,
        alone: bool,
        effects: &mut Vec<Effect>,
    ) {
        self.mode = Mode::Launching { style, alone };
        let cold = self.cold.as_mut().expect("its group logs");
        let Some(running) = &mut cold.running else {
            return self.begin_service(None, effects);
        };
        (running.since, running.until) = (None, None);
        // All receivers have changed their style, too.
        if matches!(running.checkpoint, Progress::Sent { .. }) {
            running.checkpoint = Progress::None;
        }
        self.run_log(effects);
    }

    /// The number of requests that wait until the log has been executed. All replicas wait alike,
    /// and one without room joins anew. So nodes stop ordering requests long before that.
    pub(crate) fn launching(&self) -> Option<usize> {
        matches!(self.mode, Mode::Launching { .. }).then_some(self.inbox.queue.len())
    }

    /// A service that could not take up its checkpoint is tried once more.
    pub(in crate::replica) fn launch_again(&mut self, effects: &mut Vec<Effect>) {
        let ended = self.cold.as_ref().is_some_and(|cold| cold.running.is_none());
        if ended && matches!(self.mode, Mode::Launching { .. }) {
            self.begin_service(None, effects);
        }
    }

    /// The log has been executed: the replica goes on in the new style.
    pub(super) fn note_launched(&mut self, effects: &mut Vec<Effect>) {
        let Mode::Launching { style, alone } = self.mode else { return };
        let Some(cold) = &self.cold else { return };
        let logged = cold.logged;
        let Some(running) = &cold.running else { return };
        if running.next <= logged || !self.service.tasks.is_empty() {
            return;
        }
        self.cold = None;
        self.mode = Mode::Live;
        self.take_style(style, alone, effects);
        if matches!(self.mode, Mode::Live) {
            self.go_on(effects);
        }
    }
}
