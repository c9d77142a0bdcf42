//! Calls that all replicas are asked at once (`docs/protocol/client.md`, "Multicast").
//!
//! Such a call has one number like any other, and an attempt at each target. Each target answers once; who is lost, or declines, is asked again in the
//! next round, and who joins the group in this one.

use std::net::SocketAddr;

use bytes::Bytes;
use wire::client::{Outcome, Refusal, Target, Targets};
use wire::limits::MAX_REPLICAS;
use wire::{NodeId, Time};

use crate::CallError;
use crate::attempts::{Attempt, Call, Phase};
use crate::bug::{Bug, Planted};
use crate::output::{CallId, Link};
use crate::policy::{News, Replies, is_spread};
use crate::session::Session;

/// What one replica has answered to a call that all were asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its node.
    pub node: NodeId,
    /// What it said; of one that has said nothing, what became of the call.
    pub result: Result<Bytes, CallError>,
}

/// Replicas come and go while a call waits: of so many at most is kept that they were asked, and what they said. The last count.
const MAX_ASKED: usize = 2 * MAX_REPLICAS;

/// What such a call has brought so far.
#[derive(Debug)]
pub(crate) struct Spread {
    replies: Replies,
    /// Who was asked, by the last address.
    asked: Vec<Target>,
    /// One of a node at most.
    answers: Vec<Answer>,
    /// Who has had no room for it in this round.
    full: Vec<SocketAddr>,
    /// Who has answered a call that went to one target, as its group orders calls.
    alone: Option<NodeId>,
}

impl Spread {
    pub(crate) fn new(replies: Replies) -> Spread {
        Spread { replies, asked: Vec::new(), answers: Vec::new(), full: Vec::new(), alone: None }
    }

    pub(crate) fn begin_round(&mut self) {
        self.full.clear();
    }

    fn ask(&mut self, target: Target) {
        self.asked.retain(|asked| asked.address != target.address);
        self.asked.push(target);
        keep_last(&mut self.asked);
    }

    fn take(&mut self, from: SocketAddr, result: Result<Bytes, CallError>) {
        let Some(asked) = self.asked.iter().find(|asked| asked.address == from) else { return };
        let node = asked.node;
        self.answers.retain(|answer| answer.node != node);
        self.answers.push(Answer { node, result });
        keep_last(&mut self.answers);
    }

    fn has(&self, node: NodeId) -> bool {
        self.answers.iter().any(|answer| answer.node == node)
    }

    /// What the answers say together, of a group with these targets; `None` while that may change.
    fn verdict(&self, targets: &[Target], planted: Planted) -> Option<Result<Bytes, CallError>> {
        let results = || self.answers.iter().map(|answer| &answer.result);
        let have_all = !targets.is_empty() && targets.iter().all(|target| self.has(target.node));
        let first = || results().next().cloned();
        // Who shed it says nothing of the others, who may have executed it: it counts if all did.
        let shed = || first().filter(|_| results().all(is_shed));
        let split = || Err(self.split());
        match self.replies {
            Replies::First => {
                let given = results().find(|result| !is_shed(result)).cloned();
                given.or_else(|| shed().filter(|_| have_all))
            }
            Replies::Majority => {
                let enough = targets.len() / 2 + 1;
                let any = planted.is(Bug::CountUnlike) && self.answers.len() >= enough;
                let agree = |result: &&Result<Bytes, CallError>| {
                    !is_shed(result) && (any || self.alike(result, targets) >= enough)
                };
                let agreed = results().find(agree).cloned().filter(|_| !targets.is_empty());
                agreed.or_else(|| have_all.then(|| shed().unwrap_or_else(split)))
            }
            Replies::All => {
                let some = planted.is(Bug::AllButOne) && self.answers.len() + 1 >= targets.len();
                let agreed = first().filter(|first| results().all(|result| result == first));
                (have_all || some && first().is_some())
                    .then(|| agreed.or_else(shed).unwrap_or_else(split))
            }
        }
    }

    /// How many of these targets have said this.
    fn alike(&self, result: &Result<Bytes, CallError>, targets: &[Target]) -> usize {
        let said = self.answers.iter().filter(|answer| answer.result == *result);
        said.filter(|answer| targets.iter().any(|target| target.node == answer.node)).count()
    }

    fn split(&self) -> CallError {
        let mut different: Vec<&Result<Bytes, CallError>> = Vec::new();
        for answer in &self.answers {
            if !different.contains(&&answer.result) {
                different.push(&answer.result);
            }
        }
        let (asked, different) = (self.answers.len(), different.len());
        let reason = format!(
            "{asked} replicas have answered, and gave {different} different answers: have a list of them all with `gather`"
        );
        CallError::Refused { refusal: Refusal::Split, reason }
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.asked.len() <= MAX_ASKED && self.answers.len() <= MAX_ASKED);
        assert!(self.full.len() <= MAX_ASKED);
    }

    /// All answers, with what became of the call at those that have given none.
    pub(crate) fn into_answers(
        mut self,
        targets: &[Target],
        result: &Result<Bytes, CallError>,
    ) -> Vec<Answer> {
        let is_said = self.answers.iter().any(|answer| answer.result == *result);
        let is_split = matches!(result, Err(CallError::Refused { refusal: Refusal::Split, .. }));
        let fails = !self.asked.is_empty() && result.is_err() && !is_said && !is_split;
        let silent = targets.iter().filter(|_| fails).map(|target| target.node);
        let meant: Vec<NodeId> = self.alone.map_or_else(|| silent.collect(), |node| vec![node]);
        for node in meant {
            if !self.has(node) {
                self.answers.push(Answer { node, result: result.clone() });
            }
        }
        self.answers
    }
}

impl Call {
    /// The targets are others: all are asked anew but those who have said when there will be room. With a view each few milliseconds the
    /// call would else come with each of them, and soon be given back (simulator seed 76338).
    fn begin_round_by_news(&mut self) {
        let full = self.spread.as_mut().map(|spread| core::mem::take(&mut spread.full));
        self.begin_round();
        if let Some(spread) = &mut self.spread {
            spread.full = full.unwrap_or_default();
            self.tried.extend(&spread.full);
        }
    }
}

fn keep_last<T>(list: &mut Vec<T>) {
    if list.len() > MAX_ASKED {
        list.remove(0);
    }
}

/// It was refused by its criticality, before anything was done. Other refusals are the service's answers, which say the same at each replica.
fn is_shed(result: &Result<Bytes, CallError>) -> bool {
    matches!(result, Err(CallError::Refused { refusal: Refusal::Shed, .. }))
}

impl Session {
    /// All replicas are asked this call at once, as far as any of them answers calls like it.
    pub(crate) fn spreads(&self, id: CallId) -> bool {
        let Some(call) = self.calls.get(&id) else { return false };
        let style = self.groups[&call.group].targets.style;
        let reads = call.access.reads();
        call.spread.as_ref().is_some_and(|spread| is_spread(style, reads, spread.replies))
    }

    /// Sends a call to each target that has not answered, and was not asked in this round; or pauses it.
    pub(crate) fn spread(&mut self, now: Time, id: CallId) {
        if self.judge(id) {
            return; // there are fewer targets now
        }
        let missing = self.missing(id);
        if !missing.is_empty()
            && let Err(at) = self.pay_for_retry(now, id)
        {
            return self.wait_for_credit(id, at);
        }
        for target in missing {
            let address = target.address;
            let Some(link) = self.links.open(now, address, &mut self.effects) else { continue };
            let call = self.calls.get_mut(&id).expect("a call that is spread is kept");
            call.tried.push(address);
            call.last = Some(address);
            call.attempts.push(Attempt { link, address, sent: false, at: now });
            call.spread.as_mut().expect("it is spread").ask(target);
            if self.links.is_ready(link) {
                self.send(now, id, link);
            }
        }
        self.await_answers(now, id);
    }

    /// The group's targets are new: those that have not answered are asked.
    pub(crate) fn respread(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("it is under way");
        call.begin_round_by_news();
        let waits = call.phase == Phase::Pausing && call.attempts.is_empty();
        if waits && self.missing(id).is_empty() {
            self.judge(id);
        } else {
            self.spread(now, id);
        }
    }

    fn missing(&self, id: CallId) -> Vec<Target> {
        let call = &self.calls[&id];
        let spread = call.spread.as_ref().expect("it is spread");
        let targets = self.groups[&call.group].targets.nodes.iter();
        let is_missing = |target: &&Target| {
            let asked = call.attempts.iter().any(|attempt| attempt.address == target.address);
            !asked && !spread.has(target.node) && !call.tried.contains(&target.address)
        };
        targets.filter(is_missing).cloned().collect()
    }

    /// Some time has passed without all the answers that are waited for.
    pub(crate) fn spread_due(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("a call that is due is kept");
        call.begin_round();
        let group = call.group;
        let silent: Vec<Link> = call.attempts.iter().map(|attempt| attempt.link).collect();
        for link in silent {
            self.ask_after_life(now, group, link);
        }
        self.inquire(now, group);
        self.spread(now, id);
    }

    /// A target has answered a call that all are asked.
    pub(crate) fn take_answer(
        &mut self,
        now: Time,
        id: CallId,
        answered: &Attempt,
        outcome: Outcome,
        targets: Option<Targets>,
    ) {
        let call = self.calls.get_mut(&id).expect("an active call is kept");
        let group = call.group;
        let news = if outcome.is_result() { News::Beside } else { News::Declined };
        let mut room_after = None;
        let refused = |refusal, reason| Err(CallError::Refused { refusal, reason });
        let result = match outcome {
            Outcome::Ok(bytes) => Some(Ok(bytes)),
            Outcome::Service(bytes) => Some(Err(CallError::Service(bytes))),
            Outcome::Refused(refusal, reason) => Some(refused(refusal, reason)),
            Outcome::Shed { reason, .. } => {
                self.effects.stats.shed += 1;
                Some(refused(Refusal::Shed, reason))
            }
            Outcome::Busy { retry_after_us, reason } => {
                room_after = Some(core::time::Duration::from_micros(retry_after_us.into()));
                // A round is one refusal, of however many nodes.
                call.refusals += u32::from(call.attempts.is_empty());
                call.obstacle = refused(Refusal::Busy, reason).err();
                let full = &mut call.spread.as_mut().expect("it is spread").full;
                full.push(answered.address);
                keep_last(full);
                None
            }
            Outcome::Gone => {
                (call.unsure, call.owes) = (true, true);
                None
            }
            Outcome::NotPrimary | Outcome::NoReplica => {
                call.obstacle = Some(CallError::NoReplica);
                None
            }
            Outcome::NoSuchGroup => return self.handle_denial(now, id, group),
        };
        if let Some(result) = result {
            // If that does not suffice in the end, nobody is to be told that it was not executed (simulator seed 7002344).
            call.unsure |= !is_shed(&result);
            let record = self.groups.get_mut(&group).expect("a call's group is kept");
            record.took(now, answered.address, now.since(answered.at));
            call.spread.as_mut().expect("it is spread").take(answered.address, result);
        }
        if let Some(targets) = targets {
            self.learn(now, group, targets, news);
        }
        if self.calls.contains_key(&id) && !self.judge(id) {
            match self.refused_by_all(id) {
                Some(refusal) => self.done(id, refusal),
                None => self.go_on(now, id, group, room_after),
            }
        }
    }

    /// The refusal of a call which nobody has left to answer but who has too much to do: who asked again would add to that (simulator seed 573482).
    fn refused_by_all(&self, id: CallId) -> Option<Result<Bytes, CallError>> {
        let call = &self.calls[&id];
        let answers = &call.spread.as_ref().expect("it is spread").answers;
        let is_left = !call.attempts.is_empty() || call.may_be_executed();
        let first = answers.first().filter(|_| !is_left)?;
        Some(first.result.clone()).filter(is_shed)
    }

    /// A call is answered that went to one target, as its group orders calls; or to all that were known, of which none is now: whose
    /// answer it is does not depend on what is known of the group (simulator seed 920298).
    pub(crate) fn answered_alone(&mut self, id: CallId, link: Link) {
        let node = self.links.get(link).and_then(|connection| connection.node);
        if let Some(spread) = self.calls.get_mut(&id).and_then(|call| call.spread.as_mut()) {
            spread.alone = node;
        }
    }

    /// Ends a call whose answers suffice. True if they do.
    fn judge(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get(&id) else { return true };
        let group = &self.groups[&call.group];
        let spread = call.spread.as_ref().expect("only calls that are spread are judged");
        let Some(result) = spread.verdict(&group.targets.nodes, self.planted) else { return false };
        if is_shed(&result) && call.may_be_executed() {
            return false; // by one that is no target any more (simulator seed 995478)
        }
        let (number, copies) = (call.number, call.attempts.iter().any(|attempt| attempt.sent));
        if copies {
            self.groups.get_mut(&call.group).expect("it was there").expect_copy(number);
        }
        self.done(id, result);
        true
    }

    fn await_answers(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("a call that is spread is kept");
        (call.phase, call.full, call.asks) = (Phase::Attempting, None, false);
        if call.attempts.is_empty() {
            return self.pause(now, id);
        }
        let end = call.attempt_end(now);
        self.effects.timers.set(crate::output::Timer::Call(id), end);
    }
}
