//! Calls that callers make at nodes of their cells, and calls that are executed here for them.

use bytes::Bytes;
use cells::{Call, End, Reading};
use client::{CallError, Key};
use wire::client::{Access, Refusal};
use wire::limits::MAX_DEADLINE;
use wire::{Duration, GroupId};

use super::{Asked, Letter, Parcel};
use crate::check::{Verdict, demand, keys};
use crate::cluster::gateways::{Attempt, Passing};
use crate::cluster::{Cluster, Extra};
use crate::customers::Terms;
use crate::draft::Draft;

impl Cluster {
    /// An attempt of a caller leaves for a node of the caller's cell.
    pub(in crate::cluster) fn present_at_door(&mut self, caller: usize, number: u64) {
        let (way, now) = (self.fabric.network.passage(), self.fabric.now());
        let celling = self.celling.as_mut().expect("it is a cell");
        let gateways = self.gateways.as_mut().expect("there are callers");
        let (cell, nodes) = celling.plan.homes[caller];
        let serial = gateways.attempts.len();
        let again = gateways.programs[caller].calls[&number].tries;
        let patience = gateways.patience(again);
        let program = &mut gateways.programs[caller];
        let (client, first) = (program.name, program.first);
        let call = program.calls.get_mut(&number).expect("an open call is kept");
        let node = call.turn % nodes;
        (call.newest, call.pending, call.tries) = (serial, call.pending + 1, call.tries + 1);
        let left = call.deadline.since(now);
        let request = Call {
            client,
            number,
            unanswered: call.key.unanswered,
            group: call.draft.group.clone(),
            method: call.draft.method,
            json: false,
            reading: Reading::from(call.draft.access),
            priority: (number.wrapping_mul(97) % 256) as u8,
            body: call.draft.body.clone(),
        };
        gateways.attempts.push(Attempt { caller, number, gateway: first, call: None });
        self.summary.repeated += u64::from(again > 0);
        let asked = Asked {
            cell: celling.plan.index,
            serial,
            to: celling.plan.path.clone(),
            call: request,
            left,
        };
        let letter = Letter::Ask { cell, node, asked };
        celling.post(now + way, self.fabric.member(0), letter);
        self.fabric.later(patience, Extra::Passing(Passing::Impatient(serial)));
    }

    /// A caller hears how an attempt has ended.
    pub(super) fn told_by_door(&mut self, serial: usize, end: Option<End>) -> Verdict {
        self.fabric.say(|| format!("attempt {serial} ends with {end:?}"));
        let gateways = self.gateways.as_mut().expect("there are callers");
        let Attempt { caller, number, .. } = gateways.attempts[serial];
        let program = &mut gateways.programs[caller];
        let (name, wanted) = (program.name, program.open.contains(&number));
        let call = program.calls.get_mut(&number).expect("a call is kept");
        let result = end.map(result_of);
        let unsure = match &result {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(error)) => error.was_executed() != Some(false),
        };
        let group = call.group;
        if let Some(result) = &result {
            // The answer at the caller is the one that its group gave.
            let end = keys::End { result, wanted, over: true };
            self.watch.key_ended((group, name, number), end)?;
        }
        self.resolve(caller, number, unsure);
        self.caller_told(serial, result)
    }

    /// A call that was carried to this cell is made by its session at this node.
    pub(super) fn execute_carried(
        &mut self,
        node: usize,
        call: u64,
        request: Call,
        left: Duration,
    ) -> Verdict {
        let now = self.fabric.now();
        let gateways = self.gateways.as_mut().expect("there are callers");
        let known = gateways.programs.iter().position(|program| {
            program.name == request.client && program.calls.contains_key(&request.number)
        });
        demand(known.is_some(), "calls are carried as they were made", || {
            format!("nobody has made {request:?}")
        })?;
        let (caller, number) = (known.expect("it is known"), request.number);
        let program = &mut gateways.programs[caller];
        let gateway = program.first + node;
        let serial = gateways.attempts.len();
        program.calls.get_mut(&number).expect("it is known").pending += 1;
        let key = Key { number, unanswered: request.unanswered };
        let group = GroupId::of(&request.group);
        gateways.desks[gateway].take(serial, group, key);
        let access = match request.reading {
            Reading::No => Access::Change,
            Reading::Linearizable => Access::Read,
            Reading::Stale(max_age_ms) => Access::Stale { max_age_ms },
        };
        let (method, body, timeout) = (request.method, request.body, left.min(MAX_DEADLINE));
        let draft = Draft { group: request.group, method, body, access, timeout };
        let terms = Terms { must: false, key: Some(key) };
        let begun = self.customers[gateway].begin(now, &draft, terms);
        gateways.attempts.push(Attempt { caller, number, gateway, call: Some(begun.call) });
        gateways.served.insert((gateway, begun.call), serial);
        let celling = self.celling.as_mut().expect("it is a cell");
        celling.desks[node].executing.insert(serial, call);
        self.fabric.say(|| format!("gateway {gateway} has {number} of {caller} as {serial}"));
        self.customer_ran(gateway)
    }

    /// A call that was carried to this cell has ended. True if it was one.
    pub(in crate::cluster) fn carried_ended(
        &mut self,
        gateway: usize,
        serial: usize,
        result: &Result<Bytes, CallError>,
    ) -> bool {
        let now = self.fabric.now();
        let Some(celling) = &mut self.celling else { return false };
        let node = gateway % self.options.nodes;
        if let Some(call) = celling.desks[node].executing.remove(&serial) {
            let (life, end) = (self.fabric.hosts[node].incarnation, end_of(result));
            self.send_parcel(now, node, life, Parcel::Executed(call, end));
        }
        true
    }
}

/// The end of a call, as its caller's cell is told: as in `io/celld`.
fn end_of(result: &Result<Bytes, CallError>) -> End {
    match result {
        Ok(result) => End::Answer(result.clone()),
        Err(CallError::Service(error)) => End::Error(error.clone()),
        Err(CallError::NoSuchGroup(_)) => End::NoSuchGroup,
        Err(CallError::Refused { refusal, reason }) => End::Refused(*refusal, reason.clone()),
        // Another way may do, and it is no second execution.
        Err(error) if error.was_executed() == Some(false) => End::NoWay,
        Err(_) => End::Lost,
    }
}

/// The end of a call, as its caller takes it.
fn result_of(end: End) -> Result<Bytes, CallError> {
    match end {
        End::Answer(result) => Ok(result),
        End::Error(error) => Err(CallError::Service(error)),
        End::Refused(Refusal::Busy | Refusal::Shed, _) | End::NoWay | End::TooFar => {
            Err(CallError::NoReplica)
        }
        End::Refused(refusal, reason) => Err(CallError::Refused { refusal, reason }),
        End::NoSuchGroup => Err(CallError::NoSuchGroup(String::new())),
        End::Lost => Err(CallError::DeadlineExceeded),
    }
}
