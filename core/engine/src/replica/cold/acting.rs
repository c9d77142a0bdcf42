//! Requests, checkpoints and promotions at a cold passive replica.

use alloc::string::String;
use alloc::vec::Vec;

use wire::limits::{
    MAX_LOG, MAX_LOG_BYTES, MAX_LOG_GIVEN, MAX_LOG_KEPT, MAX_LOG_ORDERED, MAX_LOG_ORDERED_BYTES,
    MAX_WAITING,
};
use wire::ordered::{About, LoggedState, Ordered, Place, Relay, ReplicaState, StateHead};
use wire::{Time, ViewNumber};

use super::{LogSize, Progress, Running};
use crate::api::{Command, Event, ServiceOutcome, Ticket};
use crate::bug::Bug;
use crate::replica::calls::due;
use crate::replica::cold::ends::Ends;
use crate::replica::{Arrival, Effect, Replica, Task};
use crate::session::{Decision, to_keep};

impl Replica {
    /// The size of the log, if the group is cold passive.
    pub(crate) fn log_size(&self) -> Option<LogSize> {
        let cold = self.cold.as_ref().filter(|_| self.has_state())?;
        let requests = cold.logged - cold.cut;
        let bytes = cold.bytes + cold.ends.bytes();
        let crowded = cold.is_crowded();
        Some(LogSize { requests, bytes, checkpoint: cold.checkpoint.len(), crowded })
    }

    /// No more requests from clients are to be ordered: the log has no room for them, or too many
    /// wait here until it has been executed.
    pub(crate) fn is_log_full(&self) -> bool {
        self.launching().is_some_and(|waiting| waiting >= MAX_WAITING)
            || self
                .log_size()
                .is_some_and(|log| log.requests >= MAX_LOG as u64 || log.bytes >= MAX_LOG_BYTES)
    }

    /// A service runs here that executes what the group orders, or what it has ordered so far.
    pub(crate) fn runs(&self) -> bool {
        self.cold.as_ref().is_none_or(|cold| cold.running.is_some())
    }

    /// The calls of its history, with those that wait here.
    pub(crate) fn calls(&self) -> u64 {
        let waiting = self.inbox.queue.iter().filter(|waiting| waiting.arrived().is_some());
        let here = match &self.cold {
            Some(cold) => cold.logged,
            None => self.lead.last(),
        };
        here + waiting.count() as u64
    }

    /// Its service runs, and has been given all requests of the log. True where there is none.
    pub(in crate::replica) fn has_run_log(&self) -> bool {
        let Some(cold) = &self.cold else { return true };
        // Reads may be left: they change nothing.
        let given = |running: &Running| {
            let first = running.next.saturating_sub(cold.covered() + 1);
            let mut left = cold.log.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
            !running.restoring && left.all(|arrival| arrival.request.read)
        };
        cold.running.as_ref().is_some_and(given)
    }

    /// It is primary no more, and only answers earlier requests.
    pub(crate) fn is_finishing(&self) -> bool {
        let running = self.cold.as_ref().and_then(|cold| cold.running.as_ref());
        running.is_some_and(|running| running.until.is_some())
    }

    /// Its requests are executed and answered here.
    pub(crate) fn answers_all(&self) -> bool {
        self.runs() && !self.is_finishing() && !self.style_will_change()
    }

    /// A checkpoint may be taken now.
    pub(crate) fn may_checkpoint(&self) -> bool {
        let Some(cold) = &self.cold else { return false };
        let Some(running) = &cold.running else { return false };
        running.since.is_some()
            && running.until.is_none()
            && !running.restoring
            && running.replaying.is_none()
            && running.checkpoint == Progress::None
            && running.next - 1 > cold.cut
    }

    /// No checkpoint is under way.
    pub(crate) fn is_checkpointed(&self) -> bool {
        let running = self.cold.as_ref().and_then(|cold| cold.running.as_ref());
        running.is_none_or(|running| running.checkpoint == Progress::None)
    }

    /// A request is delivered: it is logged, and executed if the service runs here.
    pub(in crate::replica) fn log(&mut self, arrival: Arrival, effects: &mut Vec<Effect>) {
        let cold = self.cold.as_mut().expect("its group logs");
        let request = &arrival.request;
        let (client, number) = (request.client, request.number);
        // The same at every replica: the node that ordered it does so again when there is room.
        if cold.logged - cold.cut >= MAX_LOG_ORDERED as u64
            || cold.bytes + request.body.len() > MAX_LOG_ORDERED_BYTES
        {
            return effects.push(Effect::Unplaced { client, number });
        }
        let replaying = cold
            .running
            .as_ref()
            .is_some_and(|running| running.since.is_some() && running.replaying.is_some());
        if replaying && self.planted.is(Bug::NewBeforeLog) {
            self.apply(arrival.clone(), effects);
        }
        let cold = self.cold.as_mut().expect("its group logs");
        cold.push(arrival);
        self.run_log(effects);
    }

    /// Gives the service the next requests of the log.
    pub(in crate::replica) fn run_log(&mut self, effects: &mut Vec<Effect>) {
        while let Some((number, arrival)) = self.next_logged() {
            let Arrival { request, elsewhere, .. } = &arrival;
            let (client, call, elsewhere) = (request.client, request.number, *elsewhere);
            let (asked, decision) = self.enter_session(request);
            match decision {
                Decision::Execute(place) => {
                    let task = Task::Logged { place, client, call, number, elsewhere };
                    self.execute(task, (arrival, asked), effects);
                }
                Decision::Running => {
                    effects.push(self.copy(client, call));
                    // Now there may be two who wait for its reply.
                    let mut tasks = self.service.tasks.iter_mut().rev();
                    if let Some(to) = tasks.find_map(|(_, task)| task.told_elsewhere(client, call))
                    {
                        *to |= elsewhere;
                    }
                }
                decision => {
                    let before = effects.len();
                    self.answer_at_once((client, call, asked), decision, effects);
                    self.relay_last(elsewhere, before, effects);
                }
            }
        }
        self.note_replayed(effects);
        self.stop_if_finished(effects);
        self.note_launched(effects);
    }

    /// The next request of the log, if the service may be given it.
    fn next_logged(&mut self) -> Option<(u64, Arrival)> {
        let given = self.service.tasks.len();
        let cold = self.cold.as_mut()?;
        let (covered, logged, crowded) = (cold.covered(), cold.logged, cold.is_crowded());
        let running = cold.running.as_mut()?;
        let number = running.next;
        let asked = matches!(running.checkpoint, Progress::Asked(_));
        let last = running.until.map_or(logged, |until| until.min(logged));
        if running.restoring || asked || crowded || given >= MAX_LOG_GIVEN || number > last {
            return None;
        }
        running.next += 1;
        Some((number, cold.log[(number - covered - 1) as usize].clone()))
    }

    /// The service has executed a request of the log.
    pub(in crate::replica) fn finish_logged(
        &mut self,
        ticket: Ticket,
        task: Task,
        outcome: ServiceOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let Task::Logged { place, client, call, elsewhere, .. } = task else {
            unreachable!("a request of the log")
        };
        let before = effects.len();
        let asked = self.finish_handler(ticket, (client, call), effects);
        self.finish(place, (client, call, asked), outcome, effects);
        self.relay_last(elsewhere, before, effects);
        self.run_log(effects);
    }

    /// The answer among these effects goes to the node that had the call ordered.
    fn relay_last(&self, elsewhere: bool, from: usize, effects: &mut Vec<Effect>) {
        let running = self.cold.as_ref().and_then(|cold| cold.running.as_ref());
        let Some(since) = running.and_then(|running| running.since).filter(|_| elsewhere) else {
            return;
        };
        let relay = effects[from..].iter().find_map(|effect| match effect {
            Effect::Answer { client, number, asked, outcome } => Some(Relay {
                group: self.group,
                since,
                client: *client,
                number: *number,
                reply: to_keep(outcome),
                asked: asked.digest().unwrap_or_default(),
            }),
            _ => None,
        });
        effects.extend(relay.map(|relay| Effect::Order(Ordered::Relay(relay))));
    }

    /// Whether this replica is its group's primary, by the last view.
    pub(in crate::replica) fn reign_cold(
        &mut self,
        since: Option<Place>,
        effects: &mut Vec<Effect>,
    ) {
        let cold = self.cold.as_mut().expect("its group logs");
        match (&mut cold.running, since) {
            (None, None) => {}
            (None, Some(_)) => self.begin_service(since, effects),
            (Some(running), Some(_)) => {
                if running.since == since {
                    return;
                }
                running.since = since;
                running.until = None;
                // No replica takes messages of an earlier time as primary.
                if matches!(running.checkpoint, Progress::Sent { .. }) {
                    running.checkpoint = Progress::None;
                }
                self.run_log(effects);
            }
            (Some(running), None) => {
                running.since = None;
                if matches!(running.checkpoint, Progress::Sent { .. }) {
                    running.checkpoint = Progress::None;
                }
                let logged = cold.logged;
                running.until.get_or_insert(logged);
                self.run_log(effects);
            }
        }
    }

    /// Groups do not act until the next component is installed. Another may be primary then.
    pub(in crate::replica) fn suspend_cold(&mut self, effects: &mut Vec<Effect>) {
        let cold = self.cold.as_mut().expect("its group logs");
        let Some(running) = &mut cold.running else { return };
        running.since = None;
        if matches!(running.checkpoint, Progress::Sent { .. }) {
            running.checkpoint = Progress::None;
        }
        if running.until.is_some() && !cold.begins {
            self.stop(effects);
        }
    }

    /// Its service begins with the checkpoint, and goes on with the log: this replica becomes
    /// primary, or its group is to be cold passive no more.
    pub(in crate::replica) fn begin_service(
        &mut self,
        since: Option<Place>,
        effects: &mut Vec<Effect>,
    ) {
        let wrong_place = u64::from(self.planted.is(Bug::ReplayFromWrongPlace));
        let cold = self.cold.as_mut().expect("its group logs");
        let (mut first, last) = (cold.covered() + 1, cold.logged);
        if since.is_none() && self.planted.is(Bug::LaunchWithoutLog) {
            first = last + 1;
        }
        cold.running = Some(Running {
            since,
            next: (first + wrong_place).min(last + 1),
            until: None,
            restoring: false,
            replaying: since.map(|_| (first, last)),
            checkpoint: Progress::None,
        });
        let checkpoint = cold.checkpoint.clone();
        if since.is_some() {
            effects.push(Effect::Promoting);
        }
        self.renew_service(true, effects);
        if checkpoint.is_empty() {
            self.is_well(About::Read, effects);
            effects.push(Effect::CheckpointRestored);
            return self.run_log(effects);
        }
        let ReplicaState { mut head, service } =
            ReplicaState::decode(&checkpoint).expect("it was looked at when it came");
        if self.planted.is(Bug::ForgetSessionsOfCheckpoint) {
            head.sessions.clear();
        }
        self.adopt(head);
        self.cold.as_mut().expect("its group logs").running_mut().restoring = true;
        let ticket = self.service.give(Task::RestoreCheckpoint);
        self.run(Command::Restore { ticket, state: service }, effects);
    }

    /// The service has its checkpoint, or cannot read it.
    pub(in crate::replica) fn checkpoint_restored(
        &mut self,
        result: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        if let Err(reason) = result {
            let group = self.group;
            effects.push(Effect::Noted(About::Read, Some(reason.clone())));
            effects.push(Effect::Event(Event::PromotionFailed { group, reason }));
            effects.push(Effect::Unfit);
            return self.stop(effects);
        }
        self.cold.as_mut().expect("its group logs").running_mut().restoring = false;
        effects.push(Effect::CheckpointRestored);
        self.run_log(effects);
    }

    /// The first request of the log that the service has been given and not answered.
    pub(in crate::replica) fn first_under_way(&self) -> Option<u64> {
        self.service.tasks.iter().find_map(|(_, task)| match task {
            Task::Logged { number, .. } => Some(*number),
            _ => None,
        })
    }

    /// All requests that the log had when this replica became primary have been executed.
    fn note_replayed(&mut self, effects: &mut Vec<Effect>) {
        let under_way = self.first_under_way();
        let Some(running) = self.cold.as_mut().and_then(|cold| cold.running.as_mut()) else {
            return;
        };
        let done = under_way.map_or(running.next, |number| number.min(running.next));
        if let Some((first, last)) = running.replaying
            && done > last
            && !running.restoring
        {
            running.replaying = None;
            effects.push(Effect::Replayed { requests: last + 1 - first });
        }
    }

    /// Stops the service as soon as it has answered the earlier requests.
    fn stop_if_finished(&mut self, effects: &mut Vec<Effect>) {
        let running = self.cold.as_ref().and_then(|cold| cold.running.as_ref());
        let over = running.and_then(|running| Some(running.next > running.until?));
        if over != Some(true) || !self.service.tasks.is_empty() {
            return;
        }
        if self.begins_log() {
            effects.push(Effect::Unfit); // its service could not say what the checkpoint is
        } else {
            self.stop(effects);
        }
    }

    /// The service runs here no more; checkpoint and log stay.
    pub(in crate::replica) fn stop(&mut self, effects: &mut Vec<Effect>) {
        self.cold.as_mut().expect("its group logs").running = None;
        self.tell_all(effects);
        self.forget_handlers(effects);
        self.service.tasks.clear();
        // Ordered time too: a second execution of the log repeats the first.
        self.adopt(StateHead::default());
        self.close_gate(effects);
        self.renew_service(false, effects);
    }

    /// Checkpoint and log as they are at this place, if its group is a cold passive one.
    pub(in crate::replica) fn logged_state(&self) -> Option<LoggedState> {
        let cold = self.cold.as_ref()?;
        let requests = cold.log.iter().map(|logged| logged.request.clone());
        Some(LoggedState {
            logged: cold.logged,
            cut: cold.cut,
            proven: self.lead.proven(),
            poisoned: self.lead.poisoned.clone().into_iter().collect(),
            checkpoint: cold.checkpoint.clone(),
            log: requests.collect(),
            ends: cold.ends.export(),
            blamed: if self.transfers.tells_blame { self.lead.blamed() } else { Vec::new() },
        })
    }

    /// A replica that joins gets checkpoint and log.
    pub(in crate::replica) fn offer_log(
        &mut self,
        transfer: ViewNumber,
        effects: &mut Vec<Effect>,
    ) {
        let mut state = self.logged_state().expect("its group logs");
        if self.planted.is(Bug::TransferWithoutLog) {
            let covered = state.logged - state.log.len() as u64;
            (state.logged, state.cut) = (covered, covered);
            state.log.clear();
            state.ends.clear();
        }
        if self.begins_log() {
            return self.promise_log(transfer, state, effects);
        }
        self.offer_state(transfer, state.encode(), effects);
    }

    /// Checkpoint and log have come.
    pub(in crate::replica) fn take_log(&mut self, now: Time, state: LoggedState, from_disk: bool) {
        let LoggedState { logged, cut, proven, poisoned, checkpoint, log, ends, blamed } = state;
        self.lead.prove_by_state(proven);
        self.lead.poisoned.extend(poisoned);
        self.lead.blame_again(blamed, from_disk);
        let cold = self.cold.as_mut().expect("its group logs");
        cold.checkpoint = checkpoint;
        cold.logged = logged - log.len() as u64;
        cold.log.clear();
        cold.ends = Ends::default();
        for request in log {
            let due = due(now, &request);
            cold.push(Arrival { request, due, elsewhere: false, arrived: 0 });
        }
        // A member that holds later messages holds all before this place.
        ends.into_iter().for_each(|(after, end)| cold.ends.put(end, after, 0));
        cold.cut(cut);
    }

    pub(in crate::replica) fn check_cold(&self) {
        let Some(cold) = &self.cold else { return };
        assert!(cold.logged - cold.cut <= MAX_LOG_ORDERED as u64, "the log is bounded");
        assert!(cold.bytes <= MAX_LOG_ORDERED_BYTES, "the bytes of the log are bounded");
        assert!(cold.log.len() <= MAX_LOG_KEPT, "what is kept is bounded");
        assert!(cold.covered() <= cold.cut, "what is not in the checkpoint is in the log");
        cold.ends.check_invariants();
        if let Some(running) = &cold.running {
            assert!(running.next > cold.covered(), "what is to be executed is in the log");
            assert!(running.next <= cold.logged + 1, "what is executed was ordered");
        } else {
            assert!(self.service.tasks.is_empty(), "a service that does not run is given nothing");
        }
    }
}
