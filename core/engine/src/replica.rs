//! This node's replica of a group: the requests that it executes and the data that it keeps
//! (`docs/protocol/group.md`, "Requests").

mod answering;
mod calls;
mod cold;
mod comparing;
mod effect;
mod former;
mod gate;
mod lead;
mod merging;
mod notes;
mod primary;
mod recall;
mod restyle;
mod saving;
mod serving;
mod transfer;
mod updates;
mod views;
mod voting;
mod work;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::client;
use wire::kept::{BEGUN, LOST};
use wire::limits::{
    MAX_JOIN_BACKLOG, MAX_MEMBERS, MAX_SERVING, MAX_SERVING_BYTES, MAX_SESSION_WINDOW,
};
use wire::ordered::{About, Place, Poison, Request, Style, nested_window};
use wire::{ClientId, GroupId, Lane, Time, ViewNumber};

use crate::api::{Command, Executed, ServiceOutcome, Ticket};
use crate::bug::{Bug, Planted};
use crate::session::{Asked, Decision, Sessions, asks};
use crate::style::StyleRules;
use crate::tally::Verdict;
use answering::{answer, fitting};
pub(crate) use calls::{Ask, CallQuorum, Child};
use calls::{Calls, due};
use cold::Cold;
use comparing::Comparing;
pub(crate) use effect::Effect;
use gate::{Gated, Withheld};
use lead::Lead;
pub(crate) use lead::{Blame, CERTAIN, ENOUGH};
use primary::Primary;
pub(crate) use recall::Kept;
use transfer::Transfers;
use updates::{Pieces, Updates};
pub(crate) use voting::Slip;
use voting::Voting;
#[cfg(test)]
pub(crate) use voting::digest;
use work::{Arrival, Mode, ServiceLink, Task, Waiting};

/// The number of recovered requests that the service has at once.
const RECALLED_AT_ONCE: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Replica {
    group: GroupId,
    /// Delivered messages are kept, on a disk or for another program.
    keeps: bool,
    planted: Planted,
    /// The group's style once all waiting messages are processed.
    style: Style,
    mode: Mode,
    service: ServiceLink,
    history: History,
    /// The leader, and the calls that may be executed.
    lead: Lead,
    gate: Gate,
    inbox: Inbox,
    /// Calls executed as a passive group's primary.
    primary: Primary,
    updates: Updates,
    /// The checkpoint and log, if the group is cold passive.
    cold: Option<Cold>,
    /// Pieces of a checkpoint that is being ordered.
    checkpoint_pieces: Pieces<(Place, u64)>,
    /// Pieces of the state of another history.
    merge_pieces: Pieces<(ViewNumber, ClientId)>,
    calls: Calls,
    transfers: Transfers,
    ballots: Ballots,
    /// The comparison for which the service is asked for a digest.
    comparing: Option<Comparing>,
}

/// The executed calls.
#[derive(Clone, Debug, Default)]
struct History {
    sessions: Sessions,
    clock: Time,
    executed: u64,
    /// Nested calls of handlers since the group votes: each has a position, as an outcome has.
    asks: u64,
    /// Positions up to this one are not voted on.
    votes_from: u64,
    /// No call behind this position may have changed the state.
    changed_at: u64,
    /// Calls that killed the services that executed them, the oldest first.
    poisons: Vec<Poison>,
}

/// Commands that the service may not have yet, and answers that may not leave yet.
#[derive(Clone, Debug, Default)]
struct Gate {
    queue: VecDeque<Gated>,
    /// The last call of the history that the service has.
    released: u64,
    /// The answer to a call that was tried here.
    withheld: Option<Withheld>,
}

/// Messages that wait for a state or a place.
#[derive(Clone, Debug, Default)]
struct Inbox {
    queue: VecDeque<Waiting>,
    /// Bytes of the updates among them.
    bytes: usize,
    /// The number of waiting messages that came from the disk.
    recalled: usize,
}

/// The votes of a replica of a voting group.
#[derive(Clone, Debug, Default)]
struct Ballots {
    /// Its outcomes are put to the vote.
    cast: bool,
    /// The vote, while the replica executes.
    voting: Option<Voting>,
    /// Verdicts on later positions at the moment when the replica ceased to vote.
    verdicts: BTreeMap<u64, Verdict>,
}

impl Replica {
    pub(crate) fn new(group: GroupId, style: Style, keeps: bool, planted: Planted) -> Replica {
        Replica {
            group,
            keeps,
            planted,
            style,
            mode: Mode::Idle,
            service: ServiceLink::new(style),
            history: History::default(),
            lead: Lead::default(),
            gate: Gate::default(),
            inbox: Inbox::default(),
            primary: Primary::default(),
            updates: Updates::default(),
            cold: style.logs().then(Cold::default),
            checkpoint_pieces: Pieces::default(),
            merge_pieces: Pieces::default(),
            calls: Calls::default(),
            transfers: Transfers::default(),
            ballots: Ballots { cast: style.votes(), ..Ballots::default() },
            comparing: None,
        }
    }

    /// The number of sessions. `None`: the service does not run.
    pub(crate) fn sessions(&self) -> Option<usize> {
        self.runs().then(|| self.history.sessions.len())
    }

    /// The number of calls in the history. `None`: the service does not run.
    pub(crate) fn executed(&self) -> Option<u64> {
        self.runs().then_some(self.history.executed)
    }

    /// The service has answered everything.
    pub(crate) fn is_drained(&self) -> bool {
        self.service.tasks.is_empty() && self.inbox.queue.is_empty()
    }

    /// The group's state is here, or this replica begins it.
    pub(crate) fn has_state(&self) -> bool {
        matches!(
            self.mode,
            Mode::Live
                | Mode::Draining
                | Mode::Snapshotting
                | Mode::Recalling { .. }
                | Mode::Fallen
                | Mode::Launching { .. }
        )
    }

    /// The transfer that brings this replica its state, or has brought it.
    pub(crate) fn transfer(&self) -> Option<ViewNumber> {
        self.transfers.incoming
    }

    /// This replica's knowledge of a client's call: nothing, that it is being executed, or its reply.
    /// If its number has asked something else here, nothing: its place in the order decides.
    pub(crate) fn known(&self, request: &client::Request) -> Option<Option<ServiceOutcome>> {
        let (client, number) = (request.client, request.number);
        let known = self.history.sessions.known(client, number)?;
        let asked = self.history.sessions.asked(client, number);
        let open = self.is_unsettled(client, number) || self.is_withheld(client, number);
        asks(request, asked.digest()).then(|| known.filter(|_| !open))
    }

    /// The first replica of a group begins with the service's initial state.
    pub(crate) fn begin(&mut self, effects: &mut Vec<Effect>) {
        self.service.holds_former = false;
        self.forget(effects);
        self.mode = Mode::Live;
        self.mark(BEGUN, effects);
        self.is_well(About::Read, effects);
        self.is_well(About::Give, effects);
        self.is_well(About::Apart, effects);
        self.begin_to_vote(effects);
    }

    /// The replica is out of the group, or no other can send it the state.
    pub(crate) fn idle(&mut self, effects: &mut Vec<Effect>) {
        let had_any = !matches!(self.mode, Mode::Idle);
        self.forget(effects);
        self.mode = Mode::Idle;
        if had_any {
            self.mark(LOST, effects);
        }
    }

    /// From this place of the order on, requests wait for the state that `transfer` brings, of a
    /// group in this style.
    pub(crate) fn await_state(
        &mut self,
        transfer: ViewNumber,
        style: Style,
        effects: &mut Vec<Effect>,
    ) {
        // A replica that was ahead has not changed to this style before.
        self.style = style;
        self.forget(effects);
        self.transfers.incoming = Some(transfer);
        self.mode = Mode::Joining { transfer, bytes: Vec::new(), next: 0 };
        self.mark(LOST, effects);
    }

    fn forget(&mut self, effects: &mut Vec<Effect>) {
        // Results of earlier commands find no task and are ignored.
        self.forget_handlers(effects);
        self.service.tasks.clear();
        self.inbox.queue.clear();
        self.inbox.bytes = 0;
        self.primary.forget();
        (self.updates.taken, self.updates.clock) = (0, Time::ZERO);
        self.cold = self.style.logs().then(Cold::default);
        self.checkpoint_pieces = Pieces::default();
        self.merge_pieces = Pieces::default();
        self.transfers.outgoing.clear();
        self.inbox.recalled = 0;
        self.service.serving = 0;
        self.service.reading = 0;
        self.transfers.given.clear();
        self.transfers.incoming = None;
        self.ballots.voting = None;
        self.ballots.verdicts.clear();
        self.ballots.cast = self.style.votes();
        self.history.sessions = Sessions::default();
        self.history.clock = Time::ZERO;
        self.history.executed = 0;
        self.history.poisons.clear();
        self.lead.forget();
        self.close_gate(effects);
        self.history.asks = 0;
        self.history.votes_from = 0;
        self.history.changed_at = 0;
        self.comparing = None;
        self.service.viewed = None;
        self.renew_service(!self.style.logs(), effects);
        self.tell_style(self.style, effects);
    }

    /// A request is delivered. `elsewhere`: another node ordered it for its own client.
    pub(crate) fn deliver(
        &mut self,
        now: Time,
        request: Request,
        elsewhere: bool,
        effects: &mut Vec<Effect>,
    ) {
        let due = due(now, &request);
        let arrived = self.lead.arrive();
        let arrival = Arrival { request, due, elsewhere, arrived };
        match self.mode {
            Mode::Live if self.cold.is_some() => self.log(arrival, effects),
            Mode::Live => self.apply(arrival, effects),
            Mode::Idle | Mode::Draining | Mode::Fallen => {}
            Mode::Joining { .. } | Mode::Restoring { .. } if self.planted.is(Bug::DropBacklog) => {}
            Mode::Launching { .. } if self.planted.is(Bug::LaunchTooEarly) => {
                self.apply(arrival, effects);
            }
            Mode::Snapshotting if self.planted.is(Bug::SnapshotTooLate) => {
                self.apply(arrival, effects);
            }
            Mode::Snapshotting
            | Mode::Joining { .. }
            | Mode::Restoring { .. }
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                self.wait_for(Waiting::Request(arrival), effects);
            }
        }
    }

    /// The message is processed when the replica executes again.
    fn wait_for(&mut self, waiting: Waiting, effects: &mut Vec<Effect>) {
        if self.inbox.queue.len() >= self.inbox.recalled + MAX_JOIN_BACKLOG {
            self.overflow(effects);
            match (&self.mode, waiting) {
                (Mode::Live, waiting) => self.go_on_with(waiting, effects),
                // There was another snapshot to be taken.
                (Mode::Snapshotting, waiting) => self.inbox.queue.push_back(waiting),
                _ => {}
            }
        } else {
            self.inbox.queue.push_back(waiting);
        }
    }

    /// Too much waits for a state. A joiner gives up; a donor gives the transfer up.
    fn overflow(&mut self, effects: &mut Vec<Effect>) {
        if matches!(self.mode, Mode::Snapshotting) {
            self.drop_snapshot("too many requests were ordered during the snapshot", effects);
            self.go_on(effects);
        } else {
            effects.push(Effect::Overflow);
            self.idle(effects);
        }
    }

    fn apply(&mut self, arrival: Arrival, effects: &mut Vec<Effect>) {
        let request = &arrival.request;
        let (client, number) = (request.client, request.number);
        let (asked, decision) = self.enter_session(request);
        let decision = match decision {
            Decision::Done(_) if self.planted.is(Bug::ExecuteRetries) => Decision::Execute(0),
            decision => decision,
        };
        match decision {
            Decision::Execute(place) => {
                self.execute(Task::Execute { place, client, number }, (arrival, asked), effects);
            }
            decision => self.answer_at_once((client, number, asked), decision, effects),
        }
    }

    /// A request's arguments, as its session compares them.
    fn asked_of(&self, request: &Request) -> Asked {
        match Asked::of(request) {
            Asked::Client(_) | Asked::Key(_) if self.planted.is(Bug::IgnoreWhatIsAsked) => {
                Asked::Unsaid
            }
            asked => asked,
        }
    }

    /// The session's decision on a request, and what that asks.
    fn enter_session(&mut self, request: &Request) -> (Asked, Decision) {
        self.history.clock = self.history.clock.max(request.time);
        let Request { client, number, unanswered, .. } = *request;
        let window = nested_window(MAX_SESSION_WINDOW, request.path().len());
        if self.planted.is(Bug::ForgetTheForgotten) {
            self.history.sessions.forget_the_forgotten();
        }
        let asked = self.asked_of(request);
        let told = (window, asked);
        (asked, self.history.sessions.begin((client, number), unanswered, self.history.clock, told))
    }

    /// Gives the service a request, as soon as it may have it.
    fn execute(
        &mut self,
        task: Task,
        (arrival, asked): (Arrival, Asked),
        effects: &mut Vec<Effect>,
    ) {
        let Arrival { request, due, arrived, .. } = arrival;
        let in_history = !matches!(task, Task::Call);
        let (ticket, changes) = (self.service.give(task), in_history && !request.read);
        self.calls.begin(ticket, &request, asked, due);
        let own = self.planted.is(Bug::OwnRandom);
        let command = Command::Execute {
            ticket,
            method: request.method,
            json: request.json,
            read: request.read,
            body: request.body,
            now: self.history.clock,
            seed: if own { self.service.next_ticket } else { request.seed },
            client: request.client,
            number: request.number,
            lane: Lane::of(request.priority),
        };
        match in_history {
            true => self.run_call(arrived, command, effects),
            false => self.run(command, effects),
        }
        if changes {
            // The position of this call where the group votes, without a look at all that waits.
            self.history.changed_at = self.lead.last() + self.history.asks;
        }
    }

    /// The service answers a command. Answers come in the order of the commands, but for calls that
    /// are not ordered.
    pub(crate) fn answered(
        &mut self,
        ticket: Ticket,
        executed: Executed,
        effects: &mut Vec<Effect>,
    ) {
        self.take_answer(ticket, executed, effects);
        self.open_gate(effects);
    }

    fn take_answer(&mut self, ticket: Ticket, executed: Executed, effects: &mut Vec<Effect>) {
        let Some(task) = self.service.take(ticket) else {
            return; // given before the replica was told to forget
        };
        self.service.starts = false;
        match (task, executed) {
            (Task::Execute { place, client, number }, Executed::Reply(outcome)) => {
                let asked = self.finish_handler(ticket, (client, number), effects);
                self.finish(place, (client, number, asked), outcome, effects);
                self.go_on_recalling(effects);
            }
            (Task::Serve { client, number, bytes }, Executed::Reply(outcome)) => {
                self.service.serving -= bytes;
                let finished = self.calls.finish(ticket);
                let asked = finished.map_or(Asked::Unsaid, |finished| finished.asked);
                let outcome = fitting(outcome);
                self.count(client, number, effects);
                let (client, number) = match self.service.tasks.back() {
                    Some((_, Task::Serve { client, number, .. }))
                        if self.planted.is(Bug::MixAnswers) =>
                    {
                        (*client, *number)
                    }
                    _ => (client, number),
                };
                answer(client, number, asked, outcome, effects);
            }
            (Task::Read { client, number, asked, bytes, .. }, Executed::Reply(outcome)) => {
                self.service.serving -= bytes;
                self.service.reading -= 1;
                let outcome = fitting(outcome);
                self.settle_read(client, number, effects);
                effects.push(Effect::Answer { client, number, asked, outcome });
            }
            (Task::Snapshot { transfer }, Executed::Snapshot(result)) => {
                match result {
                    // The receivers may be gone.
                    Ok(_) if !self.transfers.given.contains(&transfer) => {}
                    Ok(service) => self.offer(transfer, service, effects),
                    Err(reason) => self.not_given(transfer, &reason, effects),
                }
                self.go_on(effects);
            }
            (Task::Restore, Executed::Restored(result)) => match self.mode {
                Mode::Recalling { .. } => self.reread(result, effects),
                _ => self.restored(result, effects),
            },
            (task @ Task::Logged { .. }, Executed::Reply(outcome)) => {
                self.finish_logged(ticket, task, outcome, effects);
            }
            (Task::Checkpoint, Executed::Snapshot(result)) => {
                self.checkpoint_taken(result, effects)
            }
            (Task::RestoreCheckpoint, Executed::Restored(result)) => {
                self.checkpoint_restored(result, effects);
            }
            (Task::Call, Executed::Reply(outcome)) => {
                self.calls.finish(ticket);
                self.called(outcome, effects);
                if self.lead.suspects_ahead() {
                    self.admit(effects);
                }
            }
            (Task::Change, Executed::Change(result)) => self.changed(result, effects),
            (Task::Apply { calls }, Executed::Applied(result)) => {
                self.applied(calls, result, effects);
                self.go_on_recalling(effects);
            }
            (Task::Keep, Executed::Snapshot(result)) => {
                match result {
                    Ok(service) => self.keep_taken(service, effects),
                    Err(reason) => self.cannot_give(&reason, effects),
                }
                self.go_on(effects);
            }
            (task, executed) => panic!("{executed:?} is no answer to {task:?}"),
        }
    }

    /// Processes waiting messages, up to the next snapshot.
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        self.mode = Mode::Live;
        while !self.inbox.queue.is_empty() {
            if !self.may_be_given_more() {
                self.mode = Mode::Recalling { head: None };
                return;
            }
            let Some(waiting) = self.inbox.queue.pop_front() else { break };
            self.inbox.recalled = self.inbox.recalled.saturating_sub(1);
            self.go_on_with(waiting, effects);
            if !matches!(self.mode, Mode::Live) {
                return; // a snapshot is being taken, or it is out of step
            }
        }
        self.admit(effects);
    }

    /// The service gets recovered messages piece by piece.
    fn may_be_given_more(&self) -> bool {
        let much = self.has_many_ends() && !self.service.tasks.is_empty();
        self.inbox.recalled == 0 || self.service.tasks.len() < RECALLED_AT_ONCE && !much
    }

    fn go_on_recalling(&mut self, effects: &mut Vec<Effect>) {
        if matches!(self.mode, Mode::Recalling { .. }) {
            self.go_on(effects);
        }
    }

    fn go_on_with(&mut self, waiting: Waiting, effects: &mut Vec<Effect>) {
        match waiting {
            Waiting::Request(arrival) if self.cold.is_some() => self.log(arrival, effects),
            Waiting::Request(arrival) => self.apply(arrival, effects),
            Waiting::Checkpoint { number, bytes } => {
                self.inbox.bytes -= bytes.as_ref().map_or(0, Bytes::len);
                self.store(number, bytes, effects);
            }
            Waiting::Read { request, execution } => self.give_read(request, execution, effects),
            Waiting::NestedEnd(end, sequence) => self.nested_end(end, sequence, effects),
            Waiting::Update { number, bytes } => {
                self.inbox.bytes -= bytes.as_ref().map_or(0, Bytes::len);
                self.take(number, bytes, effects);
            }
            Waiting::Snapshot(transfer) => self.snapshot(transfer, effects),
            Waiting::View(view) => self.run(Command::View(view), effects),
            // Messages since then are on the disk and not in the state: the next record asks again.
            Waiting::Keep if self.inbox.queue.iter().any(Waiting::is_logged) => {}
            Waiting::Keep => self.take_to_keep(effects),
            Waiting::Style { style, alone } => self.take_style(style, alone, effects),
            Waiting::Gap(reason) => self.out_of_step(reason.into(), effects),
        }
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        self.history.sessions.check_invariants();
        self.calls.check_invariants();
        let most = self.inbox.recalled + MAX_JOIN_BACKLOG + MAX_MEMBERS + MAX_SERVING;
        assert!(self.inbox.queue.len() <= most, "what waits is bounded");
        assert!(self.service.reading <= MAX_SERVING, "reads are bounded");
        assert!(self.service.serving <= MAX_SERVING_BYTES, "what is served is bounded");
        if matches!(self.mode, Mode::Live | Mode::Idle) {
            assert!(self.inbox.queue.is_empty(), "a replica that executes keeps nothing waiting");
        }
        self.primary.check_invariants();
        self.lead.check_invariants();
        let given = self.history.executed + self.calls_given();
        assert_eq!(self.lead.last(), given, "calls that were given have numbers");
        self.check_style();
        self.check_cold();
    }
}

#[cfg(test)]
mod tests;
