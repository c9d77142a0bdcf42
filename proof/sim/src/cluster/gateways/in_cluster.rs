//! What callers and gateways do.

use bytes::Bytes;
use client::{CallError, CallId};
use wire::client::Access;
use wire::{Duration, GroupId};

use super::{Attempt, Desk, Gateways, Passing};
use crate::check::keys::End;
use crate::check::linearizable::Begun;
use crate::check::{Verdict, liveness};
use crate::cluster::{Cluster, Extra};
use crate::customers::{Customer, Terms, shortfall};
use crate::draft::{Draft, as_executed};
use crate::registers::{KEYS, READ};
use crate::service::{RELAY, identity};
use crate::streams::{Piece, Way};

/// A stopped gateway is looked at again after this long.
const STOPPED: Duration = Duration::from_millis(10);

/// A caller makes a call that has failed again after this long, as gRPC does.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));

/// A caller waits no longer for an attempt before it makes another.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);

/// The longest that an attempt is on its way to its gateway.
const LONGEST_WAY: Duration = Duration::from_millis(300);

/// A call ends for its caller so long after its deadline: what gateways tell at the last moment is
/// on its way.
const MARGIN: Duration = Duration::from_millis(50);

impl Cluster {
    fn gateways(&mut self) -> &mut Gateways {
        self.gateways.as_mut().expect("only worlds with gateways do this")
    }

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

    fn begin_counted(&mut self, caller: usize, mut draft: Draft, turn: usize, must: bool) {
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
        self.watch.keys.begun((group, name, key.number), key.unanswered, what, reads);
        self.present(caller, key.number);
    }

    /// An attempt leaves for a gateway.
    fn present(&mut self, caller: usize, number: u64) {
        let way = self.fabric.network.passage();
        let gateways = self.gateways();
        let (plan, serial) = (gateways.plan, gateways.attempts.len());
        let program = &mut gateways.programs[caller];
        let call = program.calls.get_mut(&number).expect("an open call is kept");
        let gateway = program.first + call.turn % plan.each;
        let patience = (plan.patience * (1 << call.tries.min(16))).min(LONGEST_PATIENCE);
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

    /// Something passes between callers and gateways.
    pub(in crate::cluster) fn pass(&mut self, passing: Passing) -> Verdict {
        match passing {
            Passing::Presented(serial) => return self.presented(serial),
            Passing::Told(serial, end) => return self.caller_told(serial, end),
            Passing::Impatient(serial) => self.impatient(serial),
            Passing::Cancelled(serial) => return self.cancelled(serial),
            Passing::Again { caller, number } => {
                if self.gateways().programs[caller].open.contains(&number) {
                    self.present(caller, number);
                }
            }
            Passing::GivenUp { caller, number } => return self.given_up(caller, number),
        }
        Ok(())
    }

    /// This client is a gateway whose process is stopped.
    pub(in crate::cluster) fn is_stopped(&self, client: usize) -> bool {
        let home = self.gateways.as_ref().and_then(|gateways| gateways.home(client).ok());
        home.is_some_and(|node| self.fabric.hosts[node].paused)
    }

    /// A caller and its gateway reach each other.
    fn reaches(&self, serial: usize) -> bool {
        let gateways = self.gateways.as_ref().expect("an attempt has a gateway");
        let Attempt { caller, gateway, .. } = gateways.attempts[serial];
        let first = gateways.programs[caller].first;
        let (from, to) = (self.options.nodes + first, self.place(gateway));
        let powered = gateways.home(gateway).map_or(true, |node| self.fabric.hosts[node].powered);
        powered && self.fabric.network.joined(from, to)
    }

    fn presented(&mut self, serial: usize) -> Verdict {
        let now = self.fabric.now();
        let Attempt { caller, number, gateway, .. } = self.gateways().attempts[serial];
        if self.is_stopped(gateway) {
            self.fabric.later(STOPPED, Extra::Passing(Passing::Presented(serial)));
            return Ok(());
        }
        let reaches = self.reaches(serial);
        let gateways = self.gateways.as_mut().expect("an attempt has a gateway");
        let call = &gateways.programs[caller].calls[&number];
        if !reaches || !gateways.desks[gateway].runs || call.deadline <= now {
            if reaches {
                self.answer_caller(serial, None);
            }
            self.resolve(caller, number, false);
            return Ok(());
        }
        let draft = Draft { timeout: call.deadline.since(now), ..call.draft.clone() };
        gateways.desks[gateway].take(serial, call.group, call.key);
        let terms = Terms { must: false, key: Some(call.key) };
        let begun = self.customers[gateway].begin(now, &draft, terms);
        let gateways = self.gateways();
        gateways.attempts[serial].call = Some(begun.call);
        gateways.served.insert((gateway, begun.call), serial);
        self.fabric
            .say(|| format!("gateway {gateway} has {number} of {caller} as attempt {serial}"));
        self.customer_ran(gateway)
    }

    /// A gateway has ended a call.
    pub(in crate::cluster) fn gateway_ended(
        &mut self,
        gateway: usize,
        call: CallId,
        result: Result<Bytes, CallError>,
    ) -> Verdict {
        let now = self.fabric.now();
        self.customers[gateway].done(now, call, &result)?;
        let gateways = self.gateways.as_mut().expect("a gateway has ended a call");
        let serial = gateways.served.remove(&(gateway, call)).expect("a caller has made it");
        gateways.attempts[serial].call = None;
        let Attempt { caller, number, .. } = gateways.attempts[serial];
        let program = &mut gateways.programs[caller];
        let (name, first) = (program.name, program.first);
        let wanted = program.open.contains(&number);
        let call = program.calls.get_mut(&number).expect("a call is kept");
        let over = gateways.desks[gateway].is_over(serial, call.group, number);
        let end = End { result: &result, wanted, over };
        self.watch.key_ended((call.group, name, number), end)?;
        let failed = shortfall(&result, false).is_some();
        if !failed && !call.answered {
            call.answered = true;
            self.watch.linearizable.ended(now, first, CallId(number), &result);
        }
        let unsure = failed && result.as_ref().is_err_and(|e| e.was_executed() != Some(false));
        self.answer_caller(serial, Some(result));
        self.resolve(caller, number, unsure);
        Ok(())
    }

    fn answer_caller(&mut self, serial: usize, end: Option<Result<Bytes, CallError>>) {
        let way = self.fabric.network.passage();
        self.fabric.later(way, Extra::Passing(Passing::Told(serial, end)));
    }

    /// It is known how an attempt has ended: where `unsure`, it may have been executed.
    fn resolve(&mut self, caller: usize, number: u64, unsure: bool) {
        let program = &mut self.gateways().programs[caller];
        let call = program.calls.get_mut(&number).expect("a call is kept");
        (call.pending, call.unsure) = (call.pending - 1, call.unsure || unsure);
        self.settle_failed(caller, number);
    }

    /// A call that is over, and that all its gateways have called not executed, never is.
    fn settle_failed(&mut self, caller: usize, number: u64) {
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
    fn caller_told(&mut self, serial: usize, end: Option<Result<Bytes, CallError>>) -> Verdict {
        let reaches = self.reaches(serial);
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
    fn impatient(&mut self, serial: usize) {
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

    /// The gateway learns that nobody waits for an attempt.
    fn cancelled(&mut self, serial: usize) -> Verdict {
        let Attempt { caller, number, gateway, call } = self.gateways().attempts[serial];
        let Some(call) = call else { return Ok(()) };
        if self.is_stopped(gateway) || !self.reaches(serial) {
            self.fabric.later(STOPPED, Extra::Passing(Passing::Cancelled(serial)));
            return Ok(());
        }
        let now = self.fabric.now();
        self.forget(serial);
        self.customers[gateway].cancel(now, call);
        self.resolve(caller, number, true);
        self.customer_ran(gateway)
    }

    /// A gateway makes this attempt no longer.
    fn forget(&mut self, serial: usize) {
        let gateways = self.gateways();
        let attempt = &mut gateways.attempts[serial];
        if let Some(call) = attempt.call.take() {
            gateways.served.remove(&(attempt.gateway, call));
        }
    }

    /// The caller gives a call up.
    fn given_up(&mut self, caller: usize, number: u64) -> Verdict {
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

    /// The calls that this gateway makes are gone with their callers' connections; `tells` if these
    /// learn of it.
    fn lose_attempts(&mut self, gateway: usize, tells: bool) {
        let of_gateway = (gateway, CallId(0))..=(gateway, CallId(u64::MAX));
        let lost: Vec<usize> =
            self.gateways().served.range(of_gateway).map(|(_, it)| *it).collect();
        for serial in lost {
            let Attempt { caller, number, call, .. } = self.gateways().attempts[serial];
            let now = self.fabric.now();
            self.forget(serial);
            call.into_iter().for_each(|call| self.customers[gateway].cancel(now, call));
            self.resolve(caller, number, true);
            if tells {
                self.answer_caller(serial, None);
            }
        }
    }

    /// The network resets the connections of callers to this client, if it is a gateway.
    pub(in crate::cluster) fn reset_gateway(&mut self, client: usize) -> Verdict {
        if self.gateways.is_none() || self.is_stopped(client) {
            return Ok(());
        }
        self.lose_attempts(client, true);
        self.customer_ran(client)
    }

    fn gateways_at(&self, node: usize) -> Vec<usize> {
        let Some(gateways) = &self.gateways else { return Vec::new() };
        (0..self.customers.len()).filter(|client| gateways.home(*client) == Ok(node)).collect()
    }

    /// A node's life has ended, and its gateways with it.
    pub(in crate::cluster) fn end_gateways(&mut self, node: usize, power: bool) {
        for client in self.gateways_at(node) {
            self.lose_attempts(client, !power);
            if !power {
                self.close_from_client(client);
            }
            let open = self.streams.values_mut().filter(|stream| stream.client == client);
            open.for_each(|stream| stream.client_open = false);
            self.renew_gateway(client);
        }
    }

    /// A node has begun a new life: its gateways know nothing, and its host knows no connection of
    /// theirs.
    pub(in crate::cluster) fn begin_gateways(&mut self, node: usize) {
        for client in self.gateways_at(node) {
            self.close_from_client(client);
            self.gateways().desks[client].runs = true;
        }
    }

    /// A gateway with an empty machine.
    pub(in crate::cluster) fn renew_gateway(&mut self, client: usize) {
        let (now, nodes, life) =
            (self.fabric.now(), self.options.nodes, self.customers[client].life);
        let clock = self.customers[client].clock;
        let planted = self.plant.client;
        let gateways = self.gateways();
        let home = gateways.home(client).ok();
        gateways.desks[client] = Desk::new(home);
        let name = gateways.programs[client / gateways.plan.each].name;
        // Its own node first.
        let mut order = gateways.draw.distinct(nodes, nodes);
        order.sort_by_key(|node| Some(*node) != home);
        let mut customer = Customer::gateway(clock, now, name, &order, &mut gateways.draw);
        customer.session.plant(planted);
        customer.life = life + 1;
        self.customers[client] = customer;
    }

    /// All connections of a gateway's life end, as its host's kernel closes them.
    fn close_from_client(&mut self, client: usize) {
        let open = self.streams.iter().filter(|(_, stream)| stream.client == client);
        let open = open.filter(|(_, stream)| stream.node_open || stream.client_open);
        let ids: Vec<_> = open.map(|(id, _)| *id).collect();
        for id in ids {
            self.put(id, Way::Up, Piece::End);
        }
    }
}
