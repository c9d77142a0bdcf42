//! Gateways: they make calls for programs, and live and die with their nodes.

use bytes::Bytes;
use client::{CallError, CallId};
use wire::Duration;

use super::{Attempt, Desk, Gateways, Passing};
use crate::check::Verdict;
use crate::check::keys::End;
use crate::cluster::{Cluster, Extra};
use crate::customers::{Customer, Terms, shortfall};
use crate::draft::Draft;
use crate::streams::{Piece, Way};

/// A stopped gateway is looked at again after this long.
const STOPPED: Duration = Duration::from_millis(10);

impl Cluster {
    pub(super) fn gateways(&mut self) -> &mut Gateways {
        self.gateways.as_mut().expect("only worlds with gateways do this")
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
            Passing::Stray(caller) => return self.stray(caller),
            Passing::Strayed(serial) => return self.strayed(serial),
            Passing::Leap => self.leap(),
        }
        Ok(())
    }

    /// This client is a gateway whose process is stopped.
    pub(in crate::cluster) fn is_stopped(&self, client: usize) -> bool {
        let home = self.gateways.as_ref().and_then(|gateways| gateways.home(client).ok());
        home.is_some_and(|node| self.fabric.hosts[node].paused)
    }

    /// A caller and its gateway reach each other.
    pub(super) fn reaches(&self, serial: usize) -> bool {
        let gateways = self.gateways.as_ref().expect("an attempt has a gateway");
        let Attempt { caller, gateway, .. } = gateways.attempts[serial];
        let first = gateways.programs[caller].first;
        let (from, to) = (self.options.nodes + first, self.place(gateway));
        let powered = gateways.home(gateway).map_or(true, |node| self.fabric.hosts[node].powered);
        powered && self.fabric.network.joined(from, to)
    }

    pub(super) fn presented(&mut self, serial: usize) -> Verdict {
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
        if self.stray_ended(gateway, call, &result)? {
            return Ok(());
        }
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
        if !self.carried_ended(gateway, serial, &result) {
            self.answer_caller(serial, Some(result));
        }
        self.resolve(caller, number, unsure);
        Ok(())
    }

    pub(super) fn answer_caller(&mut self, serial: usize, end: Option<Result<Bytes, CallError>>) {
        if self.celling.is_some() {
            return; // its router tells, or nobody
        }
        let way = self.fabric.network.passage();
        self.fabric.later(way, Extra::Passing(Passing::Told(serial, end)));
    }

    /// It is known how an attempt has ended: where `unsure`, it may have been executed.
    pub(in crate::cluster) fn resolve(&mut self, caller: usize, number: u64, unsure: bool) {
        let program = &mut self.gateways().programs[caller];
        let call = program.calls.get_mut(&number).expect("a call is kept");
        (call.pending, call.unsure) = (call.pending - 1, call.unsure || unsure);
        self.settle_failed(caller, number);
    }

    /// The gateway learns that nobody waits for an attempt.
    pub(super) fn cancelled(&mut self, serial: usize) -> Verdict {
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
    pub(super) fn forget(&mut self, serial: usize) {
        let gateways = self.gateways();
        let attempt = &mut gateways.attempts[serial];
        if let Some(call) = attempt.call.take() {
            gateways.served.remove(&(attempt.gateway, call));
        }
    }

    /// The calls that this gateway makes are gone with their callers' connections; `tells` if these
    /// learn of it.
    pub(super) fn lose_attempts(&mut self, gateway: usize, tells: bool) {
        let of_gateway = (gateway, CallId(0))..=(gateway, CallId(u64::MAX));
        let now = self.fabric.now();
        for call in self.gateways().forget_strays(gateway) {
            self.customers[gateway].cancel(now, call);
        }
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

    pub(super) fn gateways_at(&self, node: usize) -> Vec<usize> {
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
    pub(super) fn close_from_client(&mut self, client: usize) {
        let open = self.streams.iter().filter(|(_, stream)| stream.client == client);
        let open = open.filter(|(_, stream)| stream.node_open || stream.client_open);
        let ids: Vec<_> = open.map(|(id, _)| *id).collect();
        for id in ids {
            self.put(id, Way::Up, Piece::End);
        }
    }
}
