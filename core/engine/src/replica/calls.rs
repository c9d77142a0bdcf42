//! The calls that this replica's handlers make of other groups (`docs/protocol/nested.md`).
//!
//! A handler's calls are named by the call that it executes and counted from 1. The end of a call
//! is an ordered message, which each replica of the group takes at its place. A replica that is
//! behind keeps it until its handler asks.

mod acting;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::client::Refusal;
use wire::limits::{
    MAX_BODY, MAX_NESTED_BYTES, MAX_NESTED_CALLS, MAX_NESTED_DEPTH, MAX_SESSION_WINDOW,
};
use wire::ordered::{
    End, Identity, KeptReply, MERGE, NestedEnd, Origin, Request, asked, nested_client,
    nested_number, nested_parts,
};
use wire::path::{Name, Path};
use wire::system::is_closed;
use wire::{ClientId, Duration, GroupId, Lane, Time};

use crate::api::{AwayCall, AwayWait, NestedCall, NestedError, ServiceOutcome, Ticket};
use crate::bug::{Bug, Planted};
use crate::session::Asked;
use crate::stopwatch::Work;

/// Whether a call of another group may be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallQuorum {
    /// The majority is not known yet, or it asks something else than this replica.
    Awaited,
    /// A majority asks the same, or the group does not vote on it.
    Given,
    /// No majority asks the same.
    Refused,
}

/// A nested call is a write. Read-only methods run on one replica and cannot make one.
const READ: &str = "a method that changes nothing (it takes &self) is executed by one replica alone, and cannot call other groups: let it take \
    &mut self, or let the client call both";

/// The replicas of a voting group differ.
const SPLIT: &str = "no majority of the replicas asks the same of the other group: the service is not deterministic, or several replicas are \
    faulty at once; see the `split` events of the nodes";

/// A nested call: client and number of the parent call, and its place among the handler's calls.
pub(crate) type Child = (ClientId, u64, u8);

/// A call that a handler waits for.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) child: Child,
    pub(crate) asked: u64,
    /// Another replica has had it ordered.
    pub(crate) ordered: bool,
    /// Whether it may be ordered.
    pub(crate) call_quorum: CallQuorum,
    /// The longest time that the handler would wait.
    pub(crate) timeout: Duration,
    /// The time at which the caller stops waiting.
    pub(crate) due: Time,
    /// The request as ordered, but for its time, seed and timeout.
    pub(crate) request: Request,
    /// The cell and the group there, if another cell's is called: nothing is ordered then but the
    /// end.
    pub(crate) away: Option<(Path, String)>,
}

impl Ask {
    /// The call of a group of another cell, as a client there makes it. The window of a session is a
    /// client's own: so each place among a handler's calls is a session, with the parent's numbers.
    pub(crate) fn away(&self, now: Time) -> Option<AwayCall> {
        let (cell, group) = self.away.clone()?;
        let Request { client, number, unanswered, method, json, priority, ref body, .. } =
            self.request;
        let (number, place) = nested_parts(number);
        let (unanswered, _) = nested_parts(unanswered);
        let caller = self.request.path().last().copied().expect("a group calls");
        Some(AwayCall {
            wait: AwayWait { caller, child: self.child, asked: self.asked },
            cell,
            group,
            client: ClientId(client.0.rotate_left(8) ^ u64::from(place)),
            number,
            unanswered: unanswered.max((number + 1).saturating_sub(MAX_SESSION_WINDOW)).max(1),
            method,
            json,
            priority,
            body: body.clone(),
            left: self.due.since(now),
        })
    }

    /// The end of this call, as reported by the caller itself.
    pub(crate) fn end(&self, end: End) -> NestedEnd {
        let (client, number, call) = self.child;
        let caller = self.request.path().last().copied().expect("a group calls");
        NestedEnd {
            callee: self.request.group,
            caller,
            client,
            number,
            call,
            asked: self.asked,
            end,
        }
    }
}

/// The deadline of a handler's calls. An eighth of the handler's own time is kept for the way back
/// of its answer.
pub(super) fn due(now: Time, request: &Request) -> Time {
    let timeout = u64::from(request.timeout_us);
    now + Duration::from_micros(timeout - timeout / 8)
}

/// A call that the service executes, as far as its nested calls are concerned.
#[derive(Clone, Debug)]
struct Handler {
    client: ClientId,
    number: u64,
    unanswered: u64,
    priority: u8,
    /// The call may change nothing.
    read: bool,
    path: Vec<GroupId>,
    due: Time,
    /// Its own arguments, as sessions compare them.
    asked: Asked,
    /// Calls that it has made.
    made: u8,
    /// The last place in the order on which the result depends, apart from the call's own.
    settled: u64,
    /// The call that the handler waits for: its place and its digest.
    open: Option<(u8, u64)>,
}

/// The fate of an end.
#[derive(Clone, Debug)]
enum Taken {
    /// The handler goes on. The number is the digest of what it asked for.
    Resume(Ticket, NestedEnd, u64),
    /// It waits for its handler.
    Kept,
    /// There is one already, or it is of no use.
    Spare,
    /// It is about no call that is being executed here.
    Unknown,
}

/// The calls of one replica's handlers.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// In order of execution.
    handlers: VecDeque<(Ticket, Handler)>,
    /// Ends that came before their handlers asked, with their places in the order.
    ends: BTreeMap<Child, (NestedEnd, u64)>,
    bytes: usize,
    /// Calls that other replicas had ordered before the handlers here asked.
    ordered: BTreeSet<Child>,
    /// Calls made since the replica began here. Correct code does not depend on it.
    made: u64,
    /// The last place in the order on which the results so far depend, apart from the calls' own.
    settled: u64,
}

/// The rest of a handler that has answered.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    /// The last place in the order on which the result depends; 0: only the call's own.
    pub(super) settled: u64,
    /// The same of the call.
    pub(super) asked: Asked,
}

impl Calls {
    /// No handler is at work.
    pub(super) fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// The service is given this request with this deadline.
    pub(super) fn begin(&mut self, ticket: Ticket, request: &Request, asked: Asked, due: Time) {
        let path = request.path().to_vec();
        let Request { client, number, unanswered, read, priority, .. } = *request;
        let handler = Handler {
            client,
            number,
            unanswered,
            priority,
            read,
            path,
            due,
            asked,
            made: 0,
            settled: 0,
            open: None,
        };
        self.handlers.push_back((ticket, handler));
    }

    /// The current work of this command's handler, if it has one.
    pub(super) fn work(&self, ticket: Ticket) -> Work {
        match self.position(ticket).map(|at| &self.handlers[at].1) {
            Some(Handler { open: Some(_), .. }) => Work::Waits,
            Some(Handler { due, .. }) => Work::Runs(ticket, *due),
            None => Work::Nothing,
        }
    }

    /// Its handler goes on with an end that came before it asked.
    fn take_up(&mut self, ticket: Ticket, sequence: u64) {
        let at = self.position(ticket).expect("it runs");
        let (_, handler) = &mut self.handlers[at];
        handler.open = None;
        handler.settled = handler.settled.max(sequence);
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.handlers.binary_search_by_key(&ticket, |(given, _)| *given).ok()
    }

    /// The service has answered this command.
    pub(super) fn finish(&mut self, ticket: Ticket) -> Option<Finished> {
        let (_, handler) = self.handlers.remove(self.position(ticket)?)?;
        let (client, number) = (handler.client, handler.number);
        let ends = (client, number, 0)..=(client, number, u8::MAX);
        // Another component may have delivered ends that the handler did not ask for again.
        let left: Vec<Child> = self.ends.range(ends).map(|(child, _)| *child).collect();
        left.iter().for_each(|child| drop(self.take_kept(child)));
        self.ordered.retain(|child| (child.0, child.1) != (client, number));
        // A later call may have an earlier place, and depends on these results, too.
        self.settled = self.settled.max(handler.settled);
        Some(Finished { settled: self.settled, asked: handler.asked })
    }

    /// Forgets everything. Returns the commands whose handlers wait.
    pub(super) fn forget(&mut self) -> Vec<Ticket> {
        self.ends.clear();
        self.ordered.clear();
        self.bytes = 0;
        self.settled = 0;
        let waits = |(ticket, handler): &(Ticket, Handler)| handler.open.map(|_| *ticket);
        let waiting = self.handlers.iter().filter_map(waits).collect();
        self.handlers.clear();
        waiting
    }

    /// A new component numbers anew, and all that was ordered before is held.
    fn renumber(&mut self) {
        self.handlers.iter_mut().for_each(|(_, handler)| handler.settled = 0);
        self.ends.values_mut().for_each(|(_, sequence)| *sequence = 0);
        self.ordered.clear();
        self.settled = 0;
    }

    fn take_kept(&mut self, child: &Child) -> Option<(NestedEnd, u64)> {
        let (end, sequence) = self.ends.remove(child)?;
        self.bytes -= end.end.size();
        Some((end, sequence))
    }

    /// A running handler waits for this end.
    fn awaits(&self, end: &NestedEnd) -> bool {
        self.handlers.iter().any(|(_, handler)| {
            (handler.client, handler.number) == (end.client, end.number)
                && handler.open.is_some_and(|(call, _)| call == end.call)
        })
    }

    fn end(&mut self, end: NestedEnd, sequence: u64) -> Taken {
        let (client, number) = (end.client, end.number);
        let of = |(_, handler): &&mut (Ticket, Handler)| {
            handler.client == client && handler.number == number
        };
        let Some((ticket, handler)) = self.handlers.iter_mut().find(of) else {
            return Taken::Unknown;
        };
        match handler.open {
            Some((call, asked)) if call == end.call => {
                handler.open = None;
                handler.settled = handler.settled.max(sequence);
                Taken::Resume(*ticket, end, asked)
            }
            _ if end.call <= handler.made => Taken::Spare,
            _ => {
                let child = (client, number, end.call);
                if self.ends.contains_key(&child) {
                    return Taken::Spare;
                }
                self.bytes += end.end.size();
                self.ends.insert(child, (end, sequence));
                Taken::Kept
            }
        }
    }

    /// Invariants.
    pub(super) fn check_invariants(&self) {
        let bytes: usize = self.ends.values().map(|(end, _)| end.end.size()).sum();
        assert_eq!(bytes, self.bytes, "the bytes of ends are counted");
        assert!(bytes <= MAX_NESTED_BYTES, "ends that wait are bounded");
        let open = self.handlers.iter().filter(|(_, handler)| handler.open.is_some()).count();
        assert!(open <= Lane::ALL.len(), "one handler runs at a time in each lane");
    }
}

/// The outcome of an end for the handler that asked for this.
fn outcome(end: NestedEnd, asked: u64) -> Result<Bytes, NestedError> {
    if end.end == End::Split {
        return Err(NestedError::Refused(Refusal::Split, SPLIT.into()));
    }
    if end.asked != asked {
        return Err(NestedError::Diverged);
    }
    match end.end {
        End::Reply(KeptReply::Ok(bytes)) => Ok(bytes.into()),
        End::Reply(KeptReply::Service(bytes)) => Err(NestedError::Service(bytes.into())),
        End::Reply(KeptReply::Refused(refusal, reason)) => {
            Err(NestedError::Refused(refusal, reason))
        }
        End::Diverged => Err(NestedError::Diverged),
        End::Deadline => Err(NestedError::Deadline),
        End::NoReplica => Err(NestedError::NoReplica),
        End::NoSuchGroup => Err(NestedError::NoSuchGroup),
        End::Split => unreachable!("whatever was asked"),
    }
}

/// An outcome as it travels to the caller.
pub(super) fn end_of(outcome: &ServiceOutcome) -> End {
    End::Reply(match outcome {
        ServiceOutcome::Ok(bytes) => KeptReply::Ok(bytes.to_vec()),
        ServiceOutcome::Error(bytes) => KeptReply::Service(bytes.to_vec()),
        ServiceOutcome::Refused(refusal, reason) => KeptReply::Refused(*refusal, reason.clone()),
    })
}

/// The handler's next call, or why it cannot be made: the same at every replica.
fn open(
    group: GroupId,
    planted: Planted,
    made: &mut u64,
    handler: &mut Handler,
    now: Time,
    call: NestedCall,
) -> Result<Ask, NestedError> {
    if handler.read {
        return Err(NestedError::Unable(READ));
    }
    let NestedCall { callee, method, json, body, timeout, .. } = call;
    if method == MERGE {
        return Err(NestedError::Unable("steadfast.merge is a call of the cluster's own"));
    }
    let timeout = timeout.min(Duration::from_secs(3_600));
    let away = away(&callee)?;
    let callee = GroupId::of(&callee);
    // It does not exist for clients, and a handler may have the name from one of them.
    if is_closed(callee) {
        return Err(NestedError::NoSuchGroup);
    }
    if callee == group || handler.path.contains(&callee) {
        return Err(NestedError::Cycle);
    }
    if handler.path.len() >= MAX_NESTED_DEPTH {
        return Err(NestedError::TooDeep);
    }
    if body.len() > MAX_BODY {
        return Err(NestedError::TooLarge(body.len()));
    }
    if handler.made == MAX_NESTED_CALLS {
        return Err(NestedError::TooMany);
    }
    handler.made += 1;
    *made += 1;
    let place = if planted.is(Bug::OwnNestedNumber) { *made as u8 | 1 } else { handler.made };
    let number = nested_number(handler.number, place).ok_or(NestedError::TooMany)?;
    let asked = asked(callee, method, json, &body);
    handler.open = Some((place, asked));
    let mut path = handler.path.clone();
    path.push(group);
    let request = Request {
        group: callee,
        method,
        json,
        // It is part of the parent's execution at every replica. So it has a place, even if it
        // changes nothing.
        read: false,
        client: nested_client(group, handler.client),
        number,
        unanswered: nested_number(handler.unanswered, 0).unwrap_or_default(),
        time: Time::ZERO,
        seed: 0,
        proven: 0,
        timeout_us: 0,
        priority: handler.priority,
        identity: Identity::Number,
        origin: Some(Box::new(Origin { client: handler.client, path })),
        body,
    };
    let child = (handler.client, handler.number, place);
    let due = handler.due.min(now + timeout);
    let (ordered, call_quorum) = (false, CallQuorum::Given);
    Ok(Ask { child, asked, ordered, call_quorum, timeout, due, request, away })
}

/// The cell and the group of a full name; `None`: the name is of this cell.
fn away(callee: &str) -> Result<Option<(Path, String)>, NestedError> {
    if !callee.contains(':') {
        return Ok(None);
    }
    Name::full(callee).map(Some).ok_or(NestedError::NoSuchGroup)
}
