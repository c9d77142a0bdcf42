//! Programs: they count their calls, and make them until they are answered.

use bytes::Bytes;
use client::{CallError, CallId};
use wire::client::Access;
use wire::{Duration, GroupId};

use super::{Attempt, Passing};
use crate::check::linearizable::Begun;
use crate::check::{Verdict, liveness};
use crate::cluster::{Cluster, Extra};
use crate::customers::shortfall;
use crate::draft::{Draft, as_executed};
use crate::registers::{KEYS, READ};
use crate::service::{RELAY, identity};

/// A caller makes a call that has failed again after this long, as gRPC does.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));

/// The longest that an attempt is on its way to its gateway.
const LONGEST_WAY: Duration = Duration::from_millis(300);

/// A call ends for its caller so long after its deadline: what gateways tell at the last moment is
/// on its way.
const MARGIN: Duration = Duration::from_millis(50);

impl Cluster {
    /// A caller thinks of its next call.
    pub(in crate::cluster) fn count_call(&mut self, caller: usize) -> Verdict {
        let gateways = self.gateways.as_mut().expect("only worlds with gateways do this");
        let (load, program) = (&self.options.load, &mut gateways.programs[caller]);
        if self.course.is_calm() || program.begun >= load.calls {
            return Ok(());
        }
        let think = self.load.scale(Duration::from_micros(50), load.think);
        let drawn = (program.open.len() < load.parallel && program.room() > 0).then(|| {
            program.begun += 1;
            program.drafts.next(&self.options.groups, load, &mut self.load).0
        });
        if let Some(draft) = drawn {
            let turn = self.gateways().draw.count(0, 2);
            self.begin_counted(caller, draft, turn, false);
        }
        self.fabric.later(think, Extra::Call(caller));
        Ok(())
    }

    /// Every caller calls this group, to have something that can be lost.
    pub(in crate::cluster) fn count_asked(&mut self, group: &str, timeout: Duration) {
        for caller in 0..self.gateways().callers() {
            if self.gateways().programs[caller].room() > 0 {
                let draft = Draft::append(group, b"in the storm", timeout);
                self.begin_counted(caller, draft, caller, false);
            }
        }
    }

    /// All callers have room for the calls of [`count_demanded`](Self::count_demanded).
    pub(in crate::cluster) fn may_demand(&self) -> bool {
        let demands = self.options.groups.iter().map(|plan| 2 + usize::from(plan.callee.is_some()));
        let demands: usize = demands.sum();
        let gateways = self.gateways.as_ref();
        gateways.is_none_or(|gateways| gateways.have_room(demands * gateways.plan.each))
    }

    /// Every caller calls every group by each of its gateways: all is well, so all must succeed.
    pub(in crate::cluster) fn count_demanded(&mut self, timeout: Duration) {
        for client in 0..self.customers.len() {
            let each = self.gateways().plan.each;
            for group in self.options.groups.clone() {
                for draft in Draft::demanded(&group, client as u64 % KEYS, timeout) {
                    self.begin_counted(client / each, draft, client % each, true);
                }
            }
        }
    }

    pub(super) fn begin_counted(
        &mut self,
        caller: usize,
        mut draft: Draft,
        turn: usize,
        must: bool,
    ) {
        let now = self.fabric.now();
        if let Access::Stale { .. } = draft.access {
            draft.access = Access::Read;
        }
        let gateways = self.gateways.as_mut().expect("a caller calls");
        let program = &mut gateways.programs[caller];
        // No two calls are alike, unless they read.
        if draft.register().is_none() && draft.body.len() != 8 {
            draft.body = [&draft.body[..], &program.next.to_le_bytes()].concat().into();
        }
        let deadline = now + draft.timeout;
        let key = program.begin(draft.clone(), deadline, turn);
        let (name, first) = (program.name, program.first);
        let call = program.calls.get_mut(&key.number).expect("it has begun");
        let leaves = gateways.plan.leaves;
        (call.must, call.leaves) = (must, !must && leaves > 0 && gateways.draw.one_in(leaves));
        let until = match call.leaves {
            true => gateways.draw.scale(Duration::from_millis(1), draft.timeout),
            false => draft.timeout + MARGIN,
        };
        self.fabric.say(|| format!("{name} begins {key:?} of {}", draft.group));
        let over = Passing::GivenUp { caller, number: key.number };
        self.fabric.later(until, Extra::Passing(over));
        let Draft { group, method, body, access, .. } = draft;
        let plan = self.options.groups.iter().find(|plan| plan.name == group);
        let plan = plan.expect("only groups that exist are called");
        let (group, binding) = (GroupId::of(&group), !access.reads());
        let call = CallId(key.number);
        let begun = Begun { call, group, method, body: body.clone(), access, binding };
        let begun = as_executed(begun, plan);
        self.watch.begun(now, first, &begun);
        let reads = begun.access.reads();
        let alike = reads || method == READ;
        let what = (!alike).then(|| (method, identity(method, &body)));
        self.watch.numbers.keys.begun((group, name, key.number), key.unanswered, what, reads);
        self.present(caller, key.number);
    }

    /// An attempt leaves for a gateway.
    pub(super) fn present(&mut self, caller: usize, number: u64) {
        if self.celling.is_some() {
            return self.present_at_door(caller, number);
        }
        let way = self.fabric.network.passage();
        let gateways = self.gateways();
        let (plan, serial) = (gateways.plan, gateways.attempts.len());
        let patience = gateways.patience(gateways.programs[caller].calls[&number].tries);
        let program = &mut gateways.programs[caller];
        let call = program.calls.get_mut(&number).expect("an open call is kept");
        let gateway = program.first + call.turn % plan.each;
        (call.newest, call.pending) = (serial, call.pending + 1);
        call.tries += 1;
        let again = call.tries > 1;
        gateways.attempts.push(Attempt { caller, number, gateway, call: None });
        let way = match plan.delays > 0 && gateways.draw.one_in(plan.delays) {
            true => gateways.draw.scale(way, LONGEST_WAY),
            false => way,
        };
        self.summary.repeated += u64::from(again);
        self.fabric.later(way, Extra::Passing(Passing::Presented(serial)));
        self.fabric.later(patience, Extra::Passing(Passing::Impatient(serial)));
    }

    /// A call that is over, and that all its gateways have called not executed, never is.
    pub(super) fn settle_failed(&mut self, caller: usize, number: u64) {
        let now = self.fabric.now();
        let program = &self.gateways().programs[caller];
        let call = &program.calls[&number];
        let is_open = program.open.contains(&number);
        if !is_open && call.pending == 0 && !call.unsure && !call.answered {
            let first = program.first;
            let never = Err(CallError::NoReplica);
            self.watch.linearizable.ended(now, first, CallId(number), &never);
        }
    }

    /// The caller learns how an attempt has ended.
    pub(in crate::cluster) fn caller_told(
        &mut self,
        serial: usize,
        end: Option<Result<Bytes, CallError>>,
    ) -> Verdict {
        // Within a cell a caller hears what its own cell's node has told it.
        let reaches = self.celling.is_some() || self.reaches(serial);
        let now = self.fabric.now();
        let gateways = self.gateways.as_mut().expect("a caller hears");
        let Attempt { caller, number, .. } = gateways.attempts[serial];
        let program = &mut gateways.programs[caller];
        if !reaches || !program.open.contains(&number) {
            return Ok(());
        }
        let call = program.calls.get_mut(&number).expect("an open call is kept");
        let relays = call.must && call.draft.method == RELAY;
        let error = match &end {
            None => Some(String::from("the connection is gone")),
            Some(result) => shortfall(result, relays),
        };
        let Some(error) = error else {
            program.open.remove(&number);
            if let Some(result) = &end {
                program.drafts.saw(call.draft.register(), result);
            }
            self.summary.answered += 1;
            self.fabric.say(|| format!("call {number} of caller {caller} is answered"));
            return Ok(());
        };
        if matches!(&end, Some(Err(CallError::Service(_)))) {
            return liveness::answered(&format!("call {number} of caller {caller}"), Some(error));
        }
        if call.newest == serial {
            call.turn += 1;
            let wait = gateways.draw.scale(BACKOFF.0, BACKOFF.1);
            if now + wait < call.deadline {
                self.fabric.later(wait, Extra::Passing(Passing::Again { caller, number }));
            }
        }
        Ok(())
    }

    /// The caller does not wait for an attempt any longer, and makes another.
    pub(super) fn impatient(&mut self, serial: usize) {
        let gateways = self.gateways();
        let Attempt { caller, number, .. } = gateways.attempts[serial];
        let program = &mut gateways.programs[caller];
        let call = program.calls.get_mut(&number).expect("a call is kept");
        if !program.open.contains(&number) || call.newest != serial {
            return;
        }
        let cancels = gateways.plan.cancels;
        // Now and then it comes to the same gateway by another connection.
        call.turn += usize::from(!gateways.draw.one_in(4));
        if cancels > 0 && gateways.draw.one_in(cancels) {
            let way = self.fabric.network.passage();
            self.fabric.later(way, Extra::Passing(Passing::Cancelled(serial)));
        }
        self.present(caller, number);
    }

    /// The caller gives a call up.
    pub(super) fn given_up(&mut self, caller: usize, number: u64) -> Verdict {
        let program = &mut self.gateways().programs[caller];
        if !program.open.remove(&number) {
            return Ok(());
        }
        let call = &program.calls[&number];
        if call.must {
            let words = format!("call {number} of {} to {}", program.name, call.draft.group);
            return liveness::answered(&words, Some("no gateway has an answer".into()));
        }
        self.summary.failed += 1;
        self.fabric.say(|| format!("caller {caller} gives call {number} up"));
        self.settle_failed(caller, number);
        Ok(())
    }
}
