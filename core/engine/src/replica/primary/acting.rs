//! The calls and updates of a warm passive primary.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::client::Refusal;
use wire::limits::{MAX_ARRIVALS, MAX_POISON_BYTES, MAX_UPDATE_CALLS, UPDATE_CHUNK};
use wire::ordered::{
    About, EntryKey, Ordered, Place, Poison, PrimaryChunk, Request, Told, Update, UpdateEntry,
    UpdateHead,
};
use wire::{ClientId, Time};

use super::{Begun, Primary, Sent};
use crate::api::{Command, Event, ServiceOutcome};
use crate::bug::Bug;
use crate::replica::calls::due;
use crate::replica::gate::reason;
use crate::replica::{Arrival, Effect, Mode, Replica, Task, answer, fitting};
use crate::session::{ANOTHER_RUNS, Asked, Decision, to_keep};
use crate::style::StyleRules;

impl Replica {
    /// It has executed calls that are in no delivered update: it can go on as primary only.
    pub(crate) fn is_ahead(&self) -> bool {
        !self.primary.begun.is_empty()
    }

    /// Calls wait here to be executed, or to be ordered.
    pub(crate) fn has_calls(&self) -> bool {
        self.is_ahead() || !self.primary.arrivals.is_empty()
    }

    /// This replica is its passive group's primary since then, or is not. An update under way is
    /// ordered again: nobody takes an update of an earlier time.
    pub(crate) fn reign(&mut self, since: Option<Place>, effects: &mut Vec<Effect>) {
        self.primary.reigning = since;
        self.launch_again(effects);
        if self.style.logs() {
            (self.primary.since, self.primary.arrivals) = (None, VecDeque::new());
            // A replica whose style has still to change begins with the style that it was told
            // last.
            if self.logs_now() {
                self.reign_cold(since, effects);
            }
            return;
        }
        if self.primary.since == since {
            return;
        }
        self.primary.since = since;
        // The nodes that wait for these calls send them again.
        self.primary.arrivals.clear();
        if since.is_none() {
            return;
        }
        if let Some(sent) = &mut self.primary.sent {
            sent.next = 0;
            self.order_chunk(effects);
        }
        self.admit(effects);
    }

    /// The component is over: nothing more is executed or announced until the next is installed.
    pub(crate) fn suspend(&mut self, effects: &mut Vec<Effect>) {
        if self.logs_now() {
            self.primary.reigning = None;
            self.suspend_cold(effects);
        } else {
            self.reign(None, effects);
        }
    }

    /// A call arrives, from a client here or through a backup.
    pub(crate) fn arrive(&mut self, now: Time, request: Request, effects: &mut Vec<Effect>) {
        if self.primary.since.is_none() {
            return; // the next view decides
        }
        if self.primary.arrivals.len() >= MAX_ARRIVALS {
            let reason = "too many calls wait for the group's primary: try again later";
            let outcome = ServiceOutcome::Refused(Refusal::Busy, reason.into());
            let Request { client, number, .. } = request;
            let asked = self.asked_of(&request);
            effects.push(Effect::Placed { client, number, asked });
            answer(client, number, asked, outcome, effects);
            return;
        }
        let due = due(now, &request);
        self.primary.arrivals.push_back((request, due));
        self.admit(effects);
    }

    /// Executes calls that have arrived, as many as fit in one update.
    pub(in crate::replica) fn admit(&mut self, effects: &mut Vec<Effect>) {
        while matches!(self.mode, Mode::Live)
            && self.primary.begun.len() < MAX_UPDATE_CALLS
            && self.primary.arrivals.front().is_some_and(|(request, _)| self.may_begin(request))
            && let Some((request, due)) = self.primary.arrivals.pop_front()
        {
            self.begin_call(request, due, effects);
        }
        self.ask_for_change(effects);
    }

    fn begin_call(&mut self, request: Request, due: Time, effects: &mut Vec<Effect>) {
        let (client, number) = (request.client, request.number);
        // No other replica sees a retry: it changes nothing in the sessions.
        let hears = self.planted.is(Bug::KeepOwnTime);
        let known = self.known_in_session(&request).filter(|_| !hears);
        let (asked, decision) = known.unwrap_or_else(|| self.enter_session(&request));
        let is_begun = |begun: &Begun| (begun.client, begun.number) == (client, number);
        match decision {
            Decision::Execute(_) => {
                // Larger than in the request, if a request that overtook it said more.
                let unanswered = self.history.sessions.unanswered(client);
                let poison = self.poison_ahead(&request).map(Box::new);
                let outcome = poison.as_ref().map(|poison| {
                    ServiceOutcome::Refused(Refusal::Poisoned, reason(&poison.nodes))
                });
                let (time, reads, refused) = (self.history.clock, Vec::new(), poison.is_some());
                let begun =
                    Begun { client, number, unanswered, time, asked, outcome, poison, reads };
                self.primary.begun.push_back(begun);
                if refused {
                    return self.primary.pass_refused();
                }
                let arrival = Arrival { request, due, elsewhere: false, arrived: 0 };
                self.execute(Task::Call, (arrival, asked), effects);
            }
            // Its update will be delivered; or it was ordered itself, before the group got this
            // style: then its place is before this one.
            Decision::Running => {
                if !self.primary.begun.iter().any(is_begun) {
                    effects.push(Effect::Placed { client, number, asked });
                }
            }
            // Which of the two it will be is not certain before the other's update has its place.
            Decision::Diverged
                if self.primary.begun.iter().any(is_begun) && asked.of_group().is_none() =>
            {
                let outcome = ServiceOutcome::Refused(Refusal::Busy, ANOTHER_RUNS.into());
                effects.push(Effect::Placed { client, number, asked });
                answer(client, number, asked, outcome, effects);
            }
            // It was executed already; or the client's own numbers make it refused.
            decision => {
                effects.push(Effect::Placed { client, number, asked });
                self.answer_at_once((client, number, asked), decision, effects);
            }
        }
    }

    /// A client asks this backup for a call that the history here has: the answer is known.
    pub(crate) fn answer_known(&self, request: &Request, effects: &mut Vec<Effect>) {
        let (client, number) = (request.client, request.number);
        if self.has_state()
            && let Some((asked, decision)) = self.known_in_session(request)
            && !matches!(decision, Decision::Execute(_) | Decision::Running)
        {
            effects.push(Effect::Placed { client, number, asked });
            self.answer_at_once((client, number, asked), decision, effects);
        }
    }

    /// The record of a call that services died of, if so many did that it is executed no more.
    fn poison_ahead(&self, request: &Request) -> Option<Poison> {
        let (client, call) = (request.client, request.number);
        let nodes = self.lead.condemned_ahead((client, call))?.to_vec();
        if self.planted.is(Bug::RetryPoison) {
            return None;
        }
        let (method, json, time) = (request.method, request.json, self.history.clock);
        let size = request.body.len() as u64;
        let body = request.body[..request.body.len().min(MAX_POISON_BYTES)].to_vec();
        Some(Poison { number: 0, client, call, method, json, time, nodes, size, body })
    }

    /// Calls without a place that the service has and has not answered.
    pub(in crate::replica) fn unanswered_ahead(&self) -> Vec<(ClientId, u64)> {
        let given = self.primary.begun.iter().skip(self.primary.executed);
        let unanswered = given.filter(|begun| begun.outcome.is_none());
        unanswered.map(|begun| (begun.client, begun.number)).collect()
    }

    /// A call that a service may have died of runs alone: a service that dies then has died of it.
    fn may_begin(&self, request: &Request) -> bool {
        if !self.lead.suspects_ahead() {
            return true;
        }
        let given = self.unanswered_ahead();
        let blamed = |call: &(ClientId, u64)| self.lead.is_blamed_ahead(*call);
        given.is_empty() || !given.iter().any(blamed) && !blamed(&(request.client, request.number))
    }

    /// The decision on a request that its session knows already, and the request's digest.
    fn known_in_session(&self, request: &Request) -> Option<(Asked, Decision)> {
        let asked = self.asked_of(request);
        let call = (request.client, request.number);
        let decision = self.history.sessions.decided(call, request.unanswered, asked)?;
        Some((asked, decision))
    }

    /// The service gets a read. It sees all calls so far, and has its place with the last of them.
    pub(in crate::replica) fn place_read(&mut self, told: Effect, effects: &mut Vec<Effect>) {
        match self.primary.begun.back_mut() {
            Some(last) => last.reads.push(told),
            None => effects.push(told),
        }
    }

    /// The service has executed the next call.
    pub(in crate::replica) fn called(
        &mut self,
        outcome: ServiceOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = fitting(outcome);
        let begun = &mut self.primary.begun[self.primary.executed];
        begun.outcome = Some(outcome.clone());
        let (client, number, asked) = (begun.client, begun.number, begun.asked);
        self.primary.executed += 1;
        self.primary.pass_refused();
        if self.planted.is(Bug::ReplyBeforeUpdate) {
            effects.push(Effect::Placed { client, number, asked });
            effects.push(Effect::Answer { client, number, asked, outcome });
        }
    }

    /// Asks the service for the changes of the calls so far. While an update is under way, they
    /// wait for the next.
    fn ask_for_change(&mut self, effects: &mut Vec<Effect>) {
        let Primary { begun, asked, sent, since, .. } = &mut self.primary;
        if since.is_none() || begun.is_empty() || asked.is_some() || sent.is_some() {
            return;
        }
        *asked = Some(begun.len());
        let ticket = self.service.give(Task::Change);
        self.run(Command::Change { ticket }, effects);
    }

    /// The service reports its changes: these and the replies are ordered.
    pub(in crate::replica) fn changed(
        &mut self,
        result: Result<Bytes, String>,
        effects: &mut Vec<Effect>,
    ) {
        let calls = self.primary.asked.take().expect("the service was asked");
        let change = match result {
            Ok(change) => change,
            Err(reason) => {
                effects.push(Effect::Noted(About::Give, Some(reason.clone())));
                effects.push(Effect::Event(Event::UpdateFailed { group: self.group, reason }));
                effects.push(Effect::Unfit);
                return;
            }
        };
        let begun = self.primary.begun.iter().take(calls);
        let clock = begun.clone().next_back().map_or(self.history.clock, |begun| begun.time);
        let entry = |begun: &Begun| UpdateEntry {
            client: begun.client,
            number: begun.number,
            unanswered: begun.unanswered,
            asked: begun.asked.to_entry().0,
            reply: to_keep(begun.outcome.as_ref().expect("answers come in order")),
        };
        let forgetful = self.planted.is(Bug::ForgetCallsOfUpdates);
        let keys = self.keys_of_update(begun.clone().filter(|_| !forgetful));
        let entries = if forgetful { Vec::new() } else { begun.map(entry).collect() };
        let poisoned = self.numbered_poisons(calls);
        let bytes = Update { head: UpdateHead { clock, entries, poisoned, keys }, change }.encode();
        let number = self.updates.taken + 1;
        self.primary.sent = Some(Sent { number, clock, calls, bytes, next: 0 });
        if self.primary.since.is_some() {
            self.order_chunk(effects);
        }
    }

    /// How the calls of an update are known again; nothing if all are by their numbers alone.
    fn keys_of_update<'a>(&self, begun: impl Iterator<Item = &'a Begun>) -> Vec<EntryKey> {
        let keys: Vec<EntryKey> = begun.map(|begun| begun.asked.to_entry().1).collect();
        let plain = keys.iter().all(|key| *key == EntryKey::default());
        if plain || self.planted.is(Bug::UpdateWithoutKeys) { Vec::new() } else { keys }
    }

    /// The records of those of the first calls that nobody executes, with their numbers in the
    /// history.
    fn numbered_poisons(&self, calls: usize) -> Vec<Poison> {
        let begun = (self.history.executed + 1..).zip(self.primary.begun.iter().take(calls));
        let poisoned = begun.filter_map(|(number, begun)| {
            Some(Poison { number, ..begun.poison.as_deref()?.clone() })
        });
        poisoned.collect()
    }

    fn order_chunk(&self, effects: &mut Vec<Effect>) {
        let (Some(since), Some(sent)) = (self.primary.since, &self.primary.sent) else { return };
        let start = sent.next as usize * UPDATE_CHUNK;
        let end = (start + UPDATE_CHUNK).min(sent.bytes.len());
        effects.push(Effect::Order(Ordered::PrimaryChunk(PrimaryChunk {
            group: self.group,
            what: Told::Update,
            since,
            number: sent.number,
            index: sent.next,
            last: end == sent.bytes.len(),
            bytes: sent.bytes.slice(start..end),
        })));
    }

    /// A chunk of this replica's own update is delivered. False if this replica has no such chunk.
    pub(in crate::replica) fn own_chunk(
        &mut self,
        chunk: &PrimaryChunk,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(sent) = &mut self.primary.sent else { return false };
        if (chunk.number, chunk.index) != (sent.number, sent.next) {
            return false;
        }
        if !chunk.last {
            sent.next += 1;
            self.order_chunk(effects);
            return true;
        }
        let sent = self.primary.sent.take().expect("it was looked at");
        self.updates.taken = sent.number;
        self.updates.clock = self.updates.clock.max(sent.clock);
        let poisoned = self.numbered_poisons(sent.calls);
        poisoned.into_iter().for_each(|poison| self.keep_poison(poison, effects));
        self.primary.executed -= sent.calls;
        for _ in 0..sent.calls {
            let begun = self.primary.begun.pop_front().expect("an update tells of what was begun");
            let Begun { client, number, unanswered, asked, outcome, reads, .. } = begun;
            let outcome = outcome.expect("it was executed");
            // As the others do, so that all have the same sessions when no update is under way.
            let told = (unanswered, asked);
            self.history.sessions.record(
                (client, number),
                told,
                self.updates.clock,
                outcome.clone(),
            );
            self.lead.settle_ahead((client, number));
            self.count(client, number, effects);
            effects.push(Effect::Placed { client, number, asked });
            answer(client, number, asked, outcome, effects);
            effects.extend(reads);
        }
        if matches!(self.mode, Mode::Draining) && !self.is_ahead() {
            self.go_on(effects);
        } else {
            self.admit(effects);
        }
        true
    }
}

#[cfg(test)]
mod tests;
