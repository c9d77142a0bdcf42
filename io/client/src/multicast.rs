//! Calls that all replicas are asked at once (`docs/protocol/client.md`, "Multicast").
//!
//! Such a call has one number like any other, and an attempt at each target. Each target answers
//! once; who is lost, or declines, is asked again in the next round, and who joins the group in
//! this one.

use bytes::Bytes;
use wire::Time;
use wire::client::{Outcome, Refusal, Target, Targets};

use crate::CallError;
use crate::call::{Call, Phase};
use crate::output::{CallId, Link};
use crate::policy::{News, is_spread};
use crate::session::Session;
use crate::spread::{is_shed, keep_last};
use crate::trail::Attempt;

impl Call {
    /// The targets have changed: all are asked anew, except those that said when there will be
    /// room. Views may follow each other every few milliseconds; the call would go to the full
    /// nodes with each of them and be refused at once.
    fn begin_round_by_news(&mut self) {
        let full = self.spread.as_mut().map(|spread| core::mem::take(&mut spread.full));
        self.begin_round();
        if let Some(spread) = &mut self.spread {
            spread.full = full.unwrap_or_default();
            self.trail.leave_out(&spread.full);
        }
    }
}

impl Session {
    /// All replicas are asked this call at once, as far as any of them answers calls like it.
    pub(crate) fn spreads(&self, id: CallId) -> bool {
        let Some(call) = self.calls.get(&id) else { return false };
        let style = self.groups[&call.group].targets.style;
        let reads = call.access.reads();
        call.spread.as_ref().is_some_and(|spread| is_spread(style, reads, spread.replies))
    }

    /// Sends a call to each target that has not answered, and was not asked in this round; or
    /// pauses it.
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
            call.trail.go(now, link, address);
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
        let waits = call.phase == Phase::Pausing && call.trail.is_lost();
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
            let address = target.address;
            let asked = call.trail.is_at(address) || call.trail.tried().contains(&address);
            !asked && !spread.has(target.node)
        };
        targets.filter(is_missing).cloned().collect()
    }

    /// Some time has passed without all the answers that are waited for.
    pub(crate) fn spread_due(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("a call that is due is kept");
        call.begin_round();
        let group = call.group;
        for link in call.trail.links() {
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
                call.refusals += u32::from(call.trail.is_lost());
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
            // If this result does not suffice in the end, the client must not report that the call
            // was not executed.
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

    /// The refusal of a call that only overloaded nodes are left to answer: another attempt would
    /// add to their load.
    fn refused_by_all(&self, id: CallId) -> Option<Result<Bytes, CallError>> {
        let call = &self.calls[&id];
        let answers = &call.spread.as_ref().expect("it is spread").answers;
        let is_left = !call.trail.is_lost() || call.may_be_executed();
        let first = answers.first().filter(|_| !is_left)?;
        Some(first.result.clone()).filter(is_shed)
    }

    /// One node answered the call, because the group orders calls or because none of the earlier
    /// targets is known any more. The answer counts as this node's, even if the targets change.
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
            return false; // by one that is no target any more
        }
        let (number, copies) = (call.number, call.trail.is_out());
        if copies {
            self.groups.get_mut(&call.group).expect("it was there").expect_copy(number);
        }
        self.done(id, result);
        true
    }

    fn await_answers(&mut self, now: Time, id: CallId) {
        let call = self.calls.get_mut(&id).expect("a call that is spread is kept");
        (call.phase, call.full, call.asks) = (Phase::Attempting, None, false);
        if call.trail.is_lost() {
            return self.pause(now, id);
        }
        self.time_attempt(now, id);
    }
}
