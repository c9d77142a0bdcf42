//! One call: attempts, time-outs, pauses, and what its end means.

use std::time::Duration;

use bytes::Bytes;
use wire::client::{Frame, Outcome, Refusal, Reply, Request};
use wire::limits::{MAX_REPLICAS, MAX_SESSION_WINDOW};
use wire::versions::KEYS;
use wire::{GroupId, Time};

use crate::CallError;
use crate::bug::{Bug, Planted};
use crate::call::Phase;
use crate::invocation::Key;
use crate::links::backoff;
use crate::output::{CallId, Cause, Event, Link, Output, Timer};
use crate::policy::News;
use crate::session::Session;
use crate::targets::Group;
use crate::trail::Attempt;

/// The pause when nobody could serve: at first, and at most.
pub(crate) const PAUSE: (Duration, Duration) =
    (Duration::from_millis(2), Duration::from_millis(100));

/// A call that is told that there is no room asks again so often, and is then given back.
pub(crate) const BUSY_RETRIES: u32 = 32;

/// The bounds within which a node's time to ask again counts.
const BUSY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(2));

/// With each refusal of a call its wait is twice as long, up to this and to a share of what is left
/// of the deadline: who has waited long would else be outrun by those who come anew, and sleep past
/// its end. It is never less than the node says.
const BUSY_DOUBLED: Duration = Duration::from_millis(250);
const BUSY_SHARE: u32 = 4;

/// Moves of a call to the next target without a pause or time-out between them. More only come
/// about when nodes contradict one another, or lie.
const MAX_HOPS: usize = MAX_REPLICAS;

impl Session {
    /// Sends a call to the best target that this round has not tried, or pauses it.
    pub(crate) fn attempt(&mut self, now: Time, id: CallId, cause: Cause) {
        if self.spreads(id) {
            return self.spread(now, id);
        }
        if let Err(at) = self.pay_for_retry(now, id) {
            return self.wait_for_credit(id, at);
        }
        loop {
            let chosen = self.choose(now, id);
            let call = self.calls.get_mut(&id).expect("only calls under way are attempted");
            let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
            (call.phase, call.full, call.asks) = (Phase::Attempting, None, false);
            let Some(address) = chosen.filter(|_| call.hops < MAX_HOPS) else {
                group.doubt = true;
                return self.exhausted(now, id);
            };
            if self.planted.is(Bug::RetryAsNew)
                && call.trail.last().is_some()
                && call.trail.is_lost()
            {
                group.active.remove(&call.number);
                call.number = group.next_number;
                group.next_number += 1;
                group.active.insert(call.number, id);
            }
            let Some(link) = self.links.open(now, address, &mut self.effects) else {
                call.trail.leave_out(&[address]);
                continue;
            };
            call.hops += 1;
            if let Some(from) = call.trail.go(now, link, address) {
                let (group, number) = (call.group, call.number);
                self.effects.stats.fail_overs += 1;
                let to = address;
                self.effects.event(Event::FailedOver { group, number, from, to, cause });
            }
            self.time_attempt(now, id);
            if self.links.is_ready(link) {
                self.send(now, id, link);
            }
            return;
        }
    }

    /// The attempt that begins now has its time. Calls to another cell travel by ways of any length:
    /// there it is at least what the way takes.
    pub(crate) fn time_attempt(&mut self, now: Time, id: CallId) {
        let call = &self.calls[&id];
        let measured = self.groups[&call.group].pace.bound();
        let path = measured.filter(|_| self.links.is_away()).unwrap_or_default();
        self.effects.timers.set(Timer::Call(id), call.attempt_end(now, path));
    }

    /// All targets were tried: waits for where the request lies, or pauses; and asks around.
    fn exhausted(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("only calls under way are attempted");
        if call.trail.is_lost() {
            return self.pause(now, id);
        }
        call.begin_round();
        let group = call.group;
        self.time_attempt(now, id);
        self.inquire(now, group);
    }

    pub(crate) fn send(&mut self, now: Time, id: CallId, link: Link) {
        let call = self.calls.get_mut(&id).expect("only calls under way are sent");
        let group = &self.groups[&call.group];
        call.trail.send(now, link);
        let attempts = call.trail.attempts();
        let alone = attempts.len() == 1 && call.spread.is_none();
        let others = |attempt: &Attempt| attempt.sent && attempt.link != link;
        let beside = call.spread.is_some() || attempts.iter().any(others);
        let hedge = group.hedge_after(&self.hedging).filter(|_| alone);
        if let Some(at) = hedge.map(|delay| now + delay).filter(|at| *at < call.deadline) {
            self.effects.timers.set(Timer::Hedge(id), at);
        }
        let timeout = call.deadline.since(now).as_micros();
        let request = Request {
            group: call.group,
            client: self.client,
            number: call.number,
            unanswered: unanswered(self.planted, group, call.key),
            view: group.view(),
            method: call.content.method,
            timeout_us: u32::try_from(timeout).unwrap_or(u32::MAX),
            json: call.content.json,
            beside,
            has_key: call.key.is_some() && self.links.speaks(link, KEYS),
            access: call.access,
            priority: call.priority.unwrap_or(group.policy.priority),
            body: call.content.body.clone(),
        };
        self.effects.stats.attempts += 1;
        self.effects.send(link, Frame::Request(request));
        self.links.used(now, link);
    }

    /// A connection is ready: what waited for it is sent.
    pub(crate) fn send_waiting(&mut self, now: Time, link: Link) {
        let waits = |attempt: &Attempt| attempt.link == link && !attempt.sent;
        let of = self.calls.iter().filter(|(_, call)| call.trail.attempts().iter().any(waits));
        let waiting: Vec<CallId> = of.map(|(id, _)| *id).collect();
        for id in waiting {
            let call = &self.calls[&id];
            // The dial has used up time that the node needs; a later attempt keeps its own end.
            if call.trail.attempts().last().is_some_and(|last| last.link == link)
                && call.phase == Phase::Attempting
            {
                self.time_attempt(now, id);
            }
            self.send(now, id, link);
        }
    }

    /// A connection is gone: what had gone there last goes to the next target at once.
    pub(crate) fn lose_attempts(&mut self, now: Time, link: Link) {
        let mut moved = Vec::new();
        for (id, call) in &mut self.calls {
            let Some((attempt, was_last)) = call.trail.end(link) else { continue };
            call.unsure |= attempt.sent;
            call.owes |= attempt.sent;
            if call.phase == Phase::Attempting && (was_last || call.spread.is_some()) {
                moved.push(*id);
            }
        }
        for id in moved {
            self.try_again(now, id, Cause::Lost);
        }
    }

    /// A target has lost the call, and lives: it goes to the next one at once, unless it has gone
    /// there already.
    fn lose_attempt(&mut self, now: Time, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        (call.unsure, call.owes) = (true, true);
        if call.phase == Phase::Attempting && call.trail.is_lost() {
            self.try_again(now, id, Cause::Lost);
        }
    }

    /// The timer of a call fired.
    pub(crate) fn call_due(&mut self, now: Time, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.deadline <= now {
            return self.expire(now, id);
        }
        call.hops = 0;
        if call.phase == Phase::Attempting && self.spreads(id) {
            return self.spread_due(now, id);
        }
        let call = self.calls.get_mut(&id).expect("it is under way");
        match call.phase {
            Phase::Queued => self.effects.timers.set(Timer::Call(id), call.deadline),
            Phase::Attempting => {
                call.owes |= call.trail.is_out();
                let group = call.group;
                for link in call.trail.links() {
                    self.ask_after_life(now, group, link);
                }
                self.try_again(now, id, Cause::Silent);
            }
            Phase::Pausing => {
                call.begin_round();
                if self.groups[&call.group].targets.nodes.is_empty() {
                    return self.pause(now, id);
                }
                self.attempt(now, id, Cause::Redirected);
            }
        }
    }

    /// The answer takes longer than others did: a second replica is asked as well, if one is
    /// connected.
    pub(crate) fn hedge_due(&mut self, now: Time, id: CallId) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let alone = call.phase == Phase::Attempting
            && matches!(call.trail.attempts(), [Attempt { sent: true, .. }]);
        let group = self.groups.get_mut(&call.group).expect("a call's group is kept");
        let best = group.best(now, &self.links, call.trail.tried());
        let best = best.filter(|_| alone);
        let Some(address) = best.filter(|best| !self.links.is_suspect(*best)) else { return };
        let Some(link) = self.links.ready_at(address) else { return };
        if group.pace.spend() {
            call.trail.go_beside(now, link, address);
            self.effects.stats.hedges += 1;
            let number = call.number;
            if self.planted.is(Bug::HedgeAnew) {
                call.number = group.next_number;
                group.next_number += 1;
            }
            self.send(now, id, link);
            self.calls.get_mut(&id).expect("it is under way").number = number;
        }
    }

    /// A node that lives answers this at once, however long the call takes there.
    pub(crate) fn ask_after_life(&mut self, now: Time, id: GroupId, link: Link) {
        if self.links.suspect(now, link, &mut self.effects) {
            let name = self.groups[&id].name.clone();
            self.effects.ask(link, name);
        }
        self.keep_warm(now, id);
    }

    pub(crate) fn pause(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("only calls under way pause");
        (call.phase, call.asks) = (Phase::Pausing, false);
        let end = now + backoff(call.pauses, PAUSE, &mut self.effects);
        call.pauses += 1;
        self.effects.stats.pauses += 1;
        self.effects.timers.set(Timer::Call(id), end.min(call.deadline));
        let group = call.group;
        self.inquire(now, group);
    }

    /// A node that serves the group has no room: waits as long as it says, and a random part of
    /// half of that, so that those who are told the same do not come at the same time.
    fn wait_for_room(&mut self, now: Time, id: CallId, retry_after: Duration) {
        let call = self.calls.get_mut(&id).expect("only calls under way wait");
        if call.refusals > BUSY_RETRIES && !call.may_be_executed() {
            let obstacle = call.obstacle.clone().expect("the refusal that was told");
            return self.done(id, Err(obstacle));
        }
        call.phase = Phase::Pausing;
        let told = retry_after.clamp(BUSY.0, BUSY.1);
        let doubled = told.saturating_mul(1 << call.refusals.saturating_sub(1).min(16));
        let share = call.deadline.since(now) / BUSY_SHARE;
        let span = doubled.min(BUSY_DOUBLED).min(share).max(told);
        let half = u64::try_from(span.as_nanos() / 2).expect("waits are short");
        let end = now + span + Duration::from_nanos(self.effects.random.below(half + 1));
        self.effects.stats.pauses += 1;
        self.effects.timers.set(Timer::Call(id), end.min(call.deadline));
    }

    /// The group has new targets: a call that should be elsewhere goes there. It does not go to a
    /// node that has just said when there will be room. Views may follow each other every few
    /// milliseconds; all calls would move with each of them and be refused at once.
    pub(crate) fn reroute(&mut self, now: Time, id: CallId) {
        if self.spreads(id) {
            return self.respread(now, id);
        }
        let better = self.better_place(now, id);
        let call = self.calls.get_mut(&id).expect("only calls under way are moved");
        if better.is_some() && call.full != better {
            call.begin_round();
            self.attempt(now, id, Cause::Redirected);
        }
    }

    pub(crate) fn handle_reply(&mut self, now: Time, link: Link, reply: Reply) {
        let Some(group) = self.groups.get_mut(&reply.group) else { return };
        if reply.outcome.is_result() && reply.targets.is_none() {
            group.confirmed(reply.view);
        }
        let mut call = group.active.get(&reply.number).copied();
        if self.planted.is(Bug::AnswerAnyCall) {
            let waits = |id: &&CallId| self.calls[id].trail.answers(link);
            call = group.active.values().find(waits).copied();
        }
        if let Some(id) = call.filter(|id| self.calls[id].trail.answers(link)) {
            if reply.outcome.is_result() && !self.spreads(id) {
                self.answered_alone(id, link);
            }
            self.links.served(link);
            let call = self.calls.get_mut(&id).expect("an active call is kept");
            let (answered, _) = call.trail.end(link).expect("it went there");
            if self.spreads(id) {
                self.take_answer(now, id, &answered, reply.outcome, reply.targets);
                return self.admit(now, reply.group);
            }
            let call = self.calls.get_mut(&id).expect("an active call is kept");
            let full = matches!(reply.outcome, Outcome::Busy { .. });
            call.full = full.then_some(answered.address);
            if reply.outcome.is_result() {
                let group = self.groups.get_mut(&reply.group).expect("it was there");
                group.answered(now, &answered, call);
            }
            self.take_outcome(now, id, reply.group, reply.outcome, reply.targets);
        } else {
            self.effects.stats.late_replies += 1;
            let outrun = self.groups[&reply.group].was_outrun(reply.number);
            let copy = reply.outcome.is_result() && outrun;
            self.effects.stats.copies += u64::from(copy);
            if let Some(targets) = reply.targets {
                self.learn(now, reply.group, targets, News::Beside);
            }
        }
        self.admit(now, reply.group);
    }

    fn take_outcome(
        &mut self,
        now: Time,
        id: CallId,
        group: GroupId,
        outcome: Outcome,
        targets: Option<wire::client::Targets>,
    ) {
        let news = if outcome.is_result() { News::Beside } else { News::Declined };
        let mut room_after = None;
        let obstacle = match outcome {
            Outcome::Ok(bytes) => Ok(Ok(bytes)),
            Outcome::Service(bytes) => Ok(Err(CallError::Service(bytes))),
            Outcome::Busy { retry_after_us, reason } => {
                room_after = Some(Duration::from_micros(retry_after_us.into()));
                Err(CallError::Refused { refusal: Refusal::Busy, reason })
            }
            Outcome::Shed { instead, reason } => {
                let refused = CallError::Refused { refusal: Refusal::Shed, reason };
                return self.handle_shed(now, id, (instead, refused), targets);
            }
            Outcome::Refused(refusal, reason) => {
                let error = CallError::Refused { refusal, reason };
                // Nodes may differ about rights for a while: another may have executed it.
                let is_unsure = self.calls[&id].may_be_executed();
                if refusal == Refusal::Denied && is_unsure { Err(error) } else { Ok(Err(error)) }
            }
            Outcome::NotPrimary | Outcome::NoReplica => Err(CallError::NoReplica),
            Outcome::Gone => {
                if let Some(targets) = targets {
                    self.learn(now, group, targets, news);
                }
                return self.lose_attempt(now, id);
            }
            Outcome::NoSuchGroup => {
                return self.handle_denial(now, id, group);
            }
        };
        match obstacle {
            Ok(result) => self.done(id, result),
            Err(obstacle) => {
                let call = self.calls.get_mut(&id).expect("an active call is kept");
                call.obstacle = Some(obstacle);
                call.refusals += u32::from(room_after.is_some());
            }
        }
        if let Some(targets) = targets {
            self.learn(now, group, targets, news);
        }
        self.go_on(now, id, group, room_after);
    }

    /// A node declined: unless the news that came with it moved the call, somebody is asked.
    pub(crate) fn go_on(
        &mut self,
        now: Time,
        id: CallId,
        group: GroupId,
        room_after: Option<Duration>,
    ) {
        let Some(call) = self.calls.get(&id) else { return };
        let idle = call.phase == Phase::Attempting && call.trail.is_lost();
        match room_after {
            Some(span) if idle => self.wait_for_room(now, id, span),
            None if idle => self.pause(now, id),
            None if self.groups[&group].doubt => self.inquire(now, group),
            _ => {}
        }
    }

    pub(crate) fn handle_denial(&mut self, now: Time, id: CallId, group: GroupId) {
        let name = self.groups[&group].name.clone();
        let call = self.calls.get_mut(&id).expect("an active call is kept");
        call.obstacle = Some(CallError::NoSuchGroup(name));
        if self.groups.get_mut(&group).expect("a call's group is kept").deny() {
            self.give_up(now, group);
        }
        self.go_on(now, id, group, None);
    }

    fn expire(&mut self, now: Time, id: CallId) {
        let call = &self.calls[&id];
        let group_id = call.group;
        let group = &self.groups[&group_id];
        let sure = self.planted.is(Bug::ForgetSilence) && call.obstacle.is_some();
        let error = if call.may_be_executed() && !sure {
            let spent = call.owes && call.phase == Phase::Pausing && !call.asks;
            if spent { CallError::RetriesSpent } else { CallError::DeadlineExceeded }
        } else if let Some(obstacle) = &call.obstacle {
            obstacle.clone()
        } else if !self.links.any_ready() {
            self.links.unreachable()
        } else if group.was_denied() {
            CallError::NoSuchGroup(group.name.clone())
        } else if group.bound && group.targets.nodes.is_empty() {
            CallError::NoReplica
        } else {
            CallError::DeadlineExceeded
        };
        self.effects.stats.expired += 1;
        self.done(id, Err(error));
        self.admit(now, group_id);
    }

    /// Ends a call. Its number is free: it counts as answered, and is never used again.
    pub(crate) fn done(&mut self, id: CallId, result: Result<Bytes, CallError>) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (spread, group) = (call.spread.take(), call.group);
        let answers = spread.map_or_else(Vec::new, |spread| {
            spread.into_answers(&self.groups[&group].targets.nodes, &result)
        });
        self.remove(id);
        self.effects.outputs.push_back(Output::Done { call: id, result, answers });
    }
}

/// The number below which nobody wants a reply: the caller says so, if it counts calls.
fn unanswered(planted: Planted, group: &Group, key: Option<Key>) -> u64 {
    match key {
        Some(key) if planted.is(Bug::GatewayKeepsGivenUp) => {
            key.number.saturating_sub(MAX_SESSION_WINDOW - 1).max(1)
        }
        Some(key) if !planted.is(Bug::GatewayForgetsUnanswered) => key.unanswered,
        _ => group.unanswered(),
    }
}
