//! Calls that are not ordered: those of stateless groups, and reads.

use alloc::vec::Vec;

use wire::client::Refusal;
use wire::limits::{MAX_SERVING, MAX_SERVING_BYTES};
use wire::ordered::Request;
use wire::{Lane, Time};

use super::calls::due;
use super::{Effect, Mode, Replica, Task, Waiting, answer};
use crate::api::{Command, ServiceOutcome};

impl Replica {
    /// A call that is not ordered comes: it is executed now.
    pub(crate) fn serve(&mut self, now: Time, request: Request, effects: &mut Vec<Effect>) {
        let asked = self.asked_of(&request);
        let (client, number, bytes) = (request.client, request.number, request.body.len());
        let lane = Lane::of(request.priority);
        if self.service.tasks.len() >= lane.room(MAX_SERVING)
            || self.service.serving + bytes > lane.room(MAX_SERVING_BYTES)
        {
            return answer(client, number, asked, too_many(), effects);
        }
        self.service.serving += bytes;
        self.history.clock = self.history.clock.max(request.time);
        let ticket = self.service.give(Task::Serve { client, number, bytes });
        self.calls.begin(ticket, &request, asked, due(now, &request));
        let Request { method, json, read, body, seed, .. } = request;
        let now = self.history.clock;
        let command =
            Command::Execute { ticket, method, json, read, body, now, seed, client, number, lane };
        self.run(command, effects);
    }

    /// Nothing is ordered any more, and a read would see all that was, at once: the service has been
    /// given it. Of a voting group a majority has agreed on all that this replica has executed.
    pub(crate) fn shows_all(&self) -> bool {
        let executes = matches!(self.mode, Mode::Live | Mode::Snapshotting);
        let changed_at = self.history.changed_at;
        let agreed = self.ballots.voting.as_ref().is_none_or(|voting| voting.agreed(changed_at));
        executes && self.has_only_reads_gated() && agreed && self.has_run_log()
    }

    /// A read arrives. It sees the effects of all earlier requests, and changes nothing. With an
    /// execution number, its place in the order is to be reported.
    pub(crate) fn read(
        &mut self,
        request: Request,
        execution: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let bytes = request.body.len();
        if self.refuses_read(&request, effects) {
            return;
        }
        match self.mode {
            Mode::Live => {
                self.begin_to_read(bytes);
                self.give_read(request, execution, effects);
            }
            Mode::Snapshotting
            | Mode::Draining
            | Mode::Fallen
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                self.begin_to_read(bytes);
                self.inbox.queue.push_back(Waiting::Read { request, execution });
            }
            // A replica without the state gets no reads.
            Mode::Idle | Mode::Joining { .. } | Mode::Restoring { .. } => {}
        }
    }

    /// There is no room for this read: its client is told.
    fn refuses_read(&self, request: &Request, effects: &mut Vec<Effect>) -> bool {
        let bytes = self.service.serving + request.body.len();
        let is_full = self.service.reading >= MAX_SERVING || bytes > MAX_SERVING_BYTES;
        if is_full {
            let (client, number, asked) = (request.client, request.number, self.asked_of(request));
            effects.push(Effect::Answer { client, number, asked, outcome: too_many() });
        }
        is_full
    }

    fn begin_to_read(&mut self, bytes: usize) {
        self.service.serving += bytes;
        self.service.reading += 1;
    }

    pub(super) fn give_read(
        &mut self,
        request: Request,
        execution: Option<u64>,
        effects: &mut Vec<Effect>,
    ) {
        let command = self.reading(request, execution, false, effects);
        self.run(command, effects);
    }

    /// A read that this replica [shows all](Self::shows_all) for. It passes reads at the gate: their
    /// word may never come.
    pub(crate) fn read_alone(&mut self, request: Request, effects: &mut Vec<Effect>) {
        let bytes = request.body.len();
        if self.refuses_read(&request, effects) {
            return;
        }
        self.begin_to_read(bytes);
        let command = self.reading(request, None, true, effects);
        effects.push(Effect::Run(command));
    }

    /// The command for a read, whose task begins.
    fn reading(
        &mut self,
        request: Request,
        execution: Option<u64>,
        alone: bool,
        effects: &mut Vec<Effect>,
    ) -> Command {
        let (lane, asked) = (Lane::of(request.priority), self.asked_of(&request));
        let Request { client, number, method, json, read, body, seed, time, .. } = request;
        let ticket =
            self.service.give(Task::Read { client, number, asked, bytes: body.len(), alone });
        if let Some(execution) = execution {
            self.place_read(Effect::ReadPlaced { client, number, execution }, effects);
        }
        // It is in no history: ordered time does not go on by it.
        let now = self.history.clock.max(time);
        Command::Execute { ticket, method, json, read, body, now, seed, client, number, lane }
    }
}

/// There is no room for a call that is not ordered.
fn too_many() -> ServiceOutcome {
    let reason = "this replica has as many calls to execute as it may have: try again later";
    ServiceOutcome::Refused(Refusal::Busy, reason.into())
}
