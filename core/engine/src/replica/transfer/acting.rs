//! States that are sent and awaited.

use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::{MAX_LOGGED_STATE, MAX_STATE};
use wire::ordered::{
    About, Form, LoggedState, Ordered, ReplicaState, StateChunk, StateDeclined, StateHead,
    StateOffer, Synced,
};
use wire::{Member, Payload, Time, ViewNumber};

use super::store_whole;
use crate::api::{Command, Event, Ticket};
use crate::bug::Bug;
use crate::outgoing::{Outgoing, Step};
use crate::replica::saving::is_save;
use crate::replica::voting::Purpose;
use crate::replica::{Effect, Mode, Replica, Task, Waiting};
use crate::session::Sessions;

impl Replica {
    /// States of so many bytes are offered to be fetched by a stream.
    pub(crate) fn stream_from(&mut self, bytes: usize) {
        self.transfers.streamed = bytes;
    }

    /// The state that this replica gives by this transfer.
    pub(crate) fn offered(&self, transfer: ViewNumber) -> Option<&Payload> {
        let mut outgoing = self.transfers.outgoing.iter();
        outgoing.find(|outgoing| outgoing.transfer() == transfer).map(Outgoing::state)
    }

    /// This replica waits for the state that this transfer brings.
    pub(crate) fn joins_by(&self, by: ViewNumber) -> bool {
        matches!(self.mode, Mode::Joining { transfer, .. } if transfer == by)
    }

    /// The transfers that this replica is to send from here on, each to the first member that waits
    /// for it. The state for a new one is taken at this place of the order. Transfers that are not
    /// named are given up.
    pub(crate) fn give_states(
        &mut self,
        wanted: &[(ViewNumber, Member)],
        effects: &mut Vec<Effect>,
    ) {
        let is_wanted =
            |transfer| is_save(transfer) || wanted.iter().any(|(wanted, _)| *wanted == transfer);
        self.transfers.outgoing.retain(|outgoing| is_wanted(outgoing.transfer()));
        self.inbox.queue.retain(|w| !matches!(w, Waiting::Snapshot(t) if !is_wanted(*t)));
        self.transfers.given.retain(|transfer| is_wanted(*transfer));
        self.keep_promises(is_wanted);
        for (transfer, to) in wanted {
            if self.transfers.given.contains(transfer) {
                continue;
            }
            self.transfers.given.push(*transfer);
            let (group, to) = (self.group, *to);
            effects.push(Effect::Event(Event::TransferStarted { group, to }));
            self.take_for(*transfer, effects);
        }
    }

    /// Whether all members know what a log's state says of calls that may kill.
    pub(crate) fn tell_blame(&mut self, tells: bool) {
        self.transfers.tells_blame = tells;
    }

    /// The state is taken at this place of the order.
    pub(in crate::replica) fn take_for(&mut self, transfer: ViewNumber, effects: &mut Vec<Effect>) {
        match self.mode {
            Mode::Live if self.cold.is_some() => self.offer_log(transfer, effects),
            Mode::Live if self.is_ahead() => {
                self.mode = Mode::Draining;
                self.inbox.queue.push_back(Waiting::Snapshot(transfer));
            }
            Mode::Live => self.snapshot(transfer, effects),
            Mode::Draining
            | Mode::Snapshotting
            | Mode::Recalling { .. }
            | Mode::Launching { .. } => {
                self.inbox.queue.push_back(Waiting::Snapshot(transfer));
            }
            _ => panic!("a donor has the state"),
        }
    }

    /// The snapshot that is being taken is given up.
    pub(in crate::replica) fn drop_snapshot(&mut self, reason: &str, effects: &mut Vec<Effect>) {
        let of = |(_, task): &(Ticket, Task)| match task {
            Task::Snapshot { transfer } => Some(*transfer),
            _ => None,
        };
        let dropped = self.service.tasks.iter().find_map(of);
        self.service.tasks.retain(|task| of(task).is_none());
        match dropped {
            Some(transfer) => self.not_given(transfer, reason, effects),
            None => self.cannot_give(reason, effects),
        }
    }

    /// There is no state for this transfer.
    pub(in crate::replica) fn not_given(
        &mut self,
        transfer: ViewNumber,
        reason: &str,
        effects: &mut Vec<Effect>,
    ) {
        match is_save(transfer) {
            true => self.saved(transfer, Err(reason.to_string()), effects),
            false => self.cannot_give(reason, effects),
        }
    }

    pub(in crate::replica) fn snapshot(&mut self, transfer: ViewNumber, effects: &mut Vec<Effect>) {
        if self.cold.is_some() {
            return self.offer_log(transfer, effects); // the group has become cold passive before this place
        }
        self.mode = Mode::Snapshotting;
        let ticket = self.service.give(Task::Snapshot { transfer });
        self.run(Command::Snapshot { ticket }, effects);
    }

    /// A chunk is delivered: the donor sends the next, the joiner keeps it.
    pub(crate) fn state_chunk(&mut self, now: Time, chunk: StateChunk, effects: &mut Vec<Effect>) {
        for (i, outgoing) in self.transfers.outgoing.iter_mut().enumerate() {
            match outgoing.delivered(&chunk) {
                Step::Other => {}
                Step::Next(next) => return effects.push(Effect::Order(next)),
                Step::Over => return drop(self.transfers.outgoing.remove(i)),
            }
        }
        let limit = self.largest_state();
        let Mode::Joining { transfer, bytes, next } = &mut self.mode else { return };
        if *transfer != chunk.transfer || *next != chunk.index {
            return;
        }
        if bytes.len() + chunk.bytes.len() > limit {
            return self.cannot_read("the state that comes in is larger than MAX_STATE", effects);
        }
        bytes.extend_from_slice(&chunk.bytes);
        *next += 1;
        if chunk.last {
            let (transfer, bytes) = (*transfer, core::mem::take(bytes));
            self.restore(now, transfer, bytes.into(), effects);
        }
    }

    /// A state is offered by this member: a replica that waits for it fetches it.
    pub(crate) fn state_offered(
        &mut self,
        from: Member,
        offer: StateOffer,
        effects: &mut Vec<Effect>,
    ) {
        if !self.joins_by(offer.transfer) {
            return;
        }
        if offer.bytes > self.largest_state() as u64 {
            return self.cannot_read("the state that is offered is larger than MAX_STATE", effects);
        }
        let StateOffer { transfer, bytes, .. } = offer;
        effects.push(Effect::Fetch { transfer, from: from.node, bytes });
    }

    /// A replica could not fetch what is offered here.
    pub(crate) fn state_declined(&mut self, declined: StateDeclined, effects: &mut Vec<Effect>) {
        let mut outgoing = self.transfers.outgoing.iter_mut();
        let first = outgoing.find_map(|outgoing| outgoing.declined(declined.transfer));
        effects.extend(first.map(Effect::Order));
    }

    /// The state that this replica waits for was fetched.
    pub(crate) fn fetched(
        &mut self,
        now: Time,
        transfer: ViewNumber,
        state: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        if self.joins_by(transfer) {
            self.restore(now, transfer, state, effects);
        }
    }

    fn restore(
        &mut self,
        now: Time,
        transfer: ViewNumber,
        bytes: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        if self.cold.is_some() {
            return match LoggedState::decode(&bytes) {
                Ok(state) => {
                    self.take_log(now, state, false);
                    self.transferred(transfer, bytes, effects);
                }
                Err(malformed) => self.cannot_read(&malformed.to_string(), effects),
            };
        }
        match ReplicaState::decode(&bytes) {
            Ok(ReplicaState { head, service }) => {
                self.mode = Mode::Restoring { transfer, head, state: bytes };
                let ticket = self.service.give(Task::Restore);
                self.run(Command::Restore { ticket, state: service }, effects);
            }
            Err(malformed) => self.cannot_read(&malformed.to_string(), effects),
        }
    }

    pub(in crate::replica) fn restored(
        &mut self,
        result: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        let Mode::Restoring { transfer, head, state } = &mut self.mode else {
            panic!("a service answers only what it was given");
        };
        let transfer = *transfer;
        let (head, state) = (core::mem::take(head), core::mem::take(state));
        if let Err(reason) = result {
            return self.cannot_read(&reason, effects);
        }
        self.adopt(head);
        self.begin_to_vote(effects);
        self.transferred(transfer, state, effects);
    }

    /// The state is here.
    fn transferred(&mut self, transfer: ViewNumber, state: Bytes, effects: &mut Vec<Effect>) {
        let group = self.group;
        self.service.holds_former = false;
        // It has another state, of which nobody has said anything yet.
        self.is_well(About::Read, effects);
        self.is_well(About::Give, effects);
        self.is_well(About::Apart, effects);
        effects.push(Effect::Event(Event::Transferred { group, bytes: state.len() }));
        effects.push(match self.keeps {
            true => {
                let (style, state) = (self.service.told, state.into());
                Effect::Store { style, state, transfer: Some(transfer) }
            }
            false => Effect::Order(Ordered::Synced(Synced { group, transfer })),
        });
        self.go_on(effects);
    }

    /// The snapshot is there.
    pub(in crate::replica) fn offer(
        &mut self,
        transfer: ViewNumber,
        service: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let mut head = self.head();
        if !self.keep_until_settled(Purpose::Give(transfer), &mut head, &service) {
            self.send_state(transfer, head, service, effects);
        }
    }

    /// It is offered, or its first chunk leaves and the others follow one by one.
    pub(in crate::replica) fn send_state(
        &mut self,
        transfer: ViewNumber,
        head: StateHead,
        service: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let state = ReplicaState { head, service }.encode();
        match is_save(transfer) {
            true => self.saved(transfer, Ok((Form::State, state.whole())), effects),
            false => self.offer_state(transfer, state, effects),
        }
    }

    /// The service's state is there: it is kept with its head.
    pub(in crate::replica) fn keep_taken(&mut self, service: Bytes, effects: &mut Vec<Effect>) {
        let mut head = self.head();
        self.is_well(About::Give, effects);
        if !self.keep_until_settled(Purpose::Keep, &mut head, &service) {
            store_whole(self.service.told, head, service, effects);
        }
    }

    fn head(&self) -> StateHead {
        let forgetful = self.planted.is(Bug::ForgetSessions);
        let (sessions, keys) = match forgetful {
            true => (Vec::new(), None),
            false => self.history.sessions.export(),
        };
        StateHead {
            executed: self.history.executed,
            asks: if self.planted.is(Bug::ForgetAsksOfState) { 0 } else { self.history.asks },
            updates: self.updates.taken,
            clock: self.common_clock(),
            sessions,
            poisoned: self.history.poisons.clone(),
            keys: keys.filter(|_| !self.planted.is(Bug::TransferWithoutKeys)),
        }
    }

    /// Goes on from the head of a state.
    pub(in crate::replica) fn adopt(&mut self, head: StateHead) {
        self.history.executed = head.executed;
        self.history.asks = head.asks;
        self.updates.taken = head.updates;
        self.history.clock = head.clock;
        self.updates.clock = head.clock;
        self.history.sessions = Sessions::import(head.sessions, head.keys);
        self.history.poisons = head.poisoned;
        self.lead.go_on_from(self.history.executed);
        self.lead.prove_by_state(self.history.executed);
        self.gate.released = self.history.executed;
    }

    /// The largest state in bytes that may be transferred.
    fn largest_state(&self) -> usize {
        if self.cold.is_some() { MAX_LOGGED_STATE } else { MAX_STATE }
    }

    pub(in crate::replica) fn offer_state(
        &mut self,
        transfer: ViewNumber,
        state: Payload,
        effects: &mut Vec<Effect>,
    ) {
        if is_save(transfer) {
            return self.saved(transfer, Ok((Form::Log, state.whole())), effects);
        }
        if state.len() > self.largest_state() {
            let reason = "the state is larger than MAX_STATE: keep less in a replica";
            return self.cannot_give(reason, effects);
        }
        self.is_well(About::Give, effects);
        let (outgoing, first) =
            Outgoing::begin(self.group, transfer, state, self.transfers.streamed);
        effects.push(Effect::Order(first));
        self.transfers.outgoing.push(outgoing);
    }
}
