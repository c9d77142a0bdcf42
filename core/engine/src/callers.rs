//! The clients that are connected to this node, and their open calls.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use wire::client::Request;
use wire::limits::{MAX_CALLERS, MAX_WAITING};
use wire::versions::CLIENT;
use wire::{Caller, ClientId, GroupId, Time};

use crate::api::ServiceOutcome;

/// The node itself, which calls without a connection.
pub(crate) const OWN: Caller = Caller(u64::MAX);

/// One call of one client.
pub(crate) type Call = (GroupId, ClientId, u64);

/// The progress of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for a view in which it can be processed.
    Parked,
    /// It is on its way through the ring.
    Ordered,
    /// This node's replica has it, without a place in the order. Its reply waits for no other
    /// member.
    Serving,
    /// A read that waits for the confirmation that this node is in the component: the round, and
    /// the time of the request.
    Asking { round: u64, at: Time },
    /// A read that waits until everything up to this number is delivered here, and the time when it
    /// was asked for.
    Placed { upto: u64, at: Time },
    /// A read at a passive group's primary: its result has no place yet. The number of the
    /// execution.
    Reading { execution: u64 },
    /// It has its place in the order. The reply leaves when this is held by enough members.
    Delivered { sequence: u64 },
}

/// A call that a client here waits for.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) caller: Caller,
    pub(crate) deadline: Time,
    pub(crate) request: Request,
    /// The digest of the request's method and arguments.
    pub(crate) asked: u64,
    /// The node's wall clock when the call came.
    pub(crate) wall: Time,
    pub(crate) stage: Stage,
    /// It was given to the ring, here and maybe in an earlier component: it may have been executed.
    pub(crate) given: bool,
    /// It was in the group's history when its client last asked here. The client had no answer
    /// then, and waited for none elsewhere.
    pub(crate) returned: bool,
    /// The time at which this node, a backup, orders the call itself, unless it has been ordered.
    pub(crate) order_at: Option<Time>,
    pub(crate) outcome: Option<ServiceOutcome>,
}

impl Waiting {
    /// It waits for the call that asked this. None: for whichever has its number.
    pub(crate) fn asks(&self, asked: Option<u64>) -> bool {
        asked.is_none_or(|asked| asked == self.asked)
    }
}

/// All open calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    /// The client behind each connection, and the version that it speaks.
    callers: BTreeMap<Caller, (ClientId, u8)>,
    calls: BTreeMap<Call, Waiting>,
    by_deadline: BTreeSet<(Time, Call)>,
    by_caller: BTreeSet<(Caller, Call)>,
    by_order: BTreeSet<(Time, Call)>,
    /// Calls that have their outcome, by their place in the order, until that is held.
    unheld: BTreeSet<(u64, Call)>,
    /// Reads by the round, and by the number, that they wait for.
    asking: BTreeSet<(u64, Call)>,
    placed: BTreeSet<(u64, Call)>,
    /// Clients that asked for a group before groups were known.
    binds: Vec<(Caller, String)>,
}

impl Callers {
    /// A client introduced itself.
    pub(crate) fn welcome(&mut self, caller: Caller, client: ClientId, version: u8) {
        self.callers.insert(caller, (client, version));
    }

    /// The version of the protocol on this connection.
    pub(crate) fn version(&self, caller: Caller) -> u8 {
        self.callers.get(&caller).map_or(CLIENT.greatest, |(_, version)| *version)
    }

    /// The client behind this connection, if it introduced itself.
    pub(crate) fn client(&self, caller: Caller) -> Option<ClientId> {
        self.callers.get(&caller).map(|(client, _)| *client)
    }

    /// The number of open calls.
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn get(&self, call: &Call) -> Option<&Waiting> {
        self.calls.get(call)
    }

    /// A call arrives, for the first time or again. True if it is new here.
    pub(crate) fn insert(&mut self, call: Call, mut waiting: Waiting) -> bool {
        let old = self.remove(&call);
        let is_new = old.is_none();
        if let Some(old) = old {
            // The client asks again, maybe over another connection: the call's progress stays.
            waiting.stage = old.stage;
            waiting.given = old.given;
            waiting.order_at = old.order_at;
            waiting.outcome = old.outcome;
        }
        self.by_deadline.insert((waiting.deadline, call));
        self.by_caller.insert((waiting.caller, call));
        self.by_order.extend(waiting.order_at.map(|at| (at, call)));
        if let Some((index, at)) = self.index(&waiting.stage, waiting.outcome.is_some()) {
            index.insert((at, call));
        }
        self.calls.insert(call, waiting);
        is_new
    }

    pub(crate) fn remove(&mut self, call: &Call) -> Option<Waiting> {
        let waiting = self.calls.remove(call)?;
        self.by_deadline.remove(&(waiting.deadline, *call));
        self.by_caller.remove(&(waiting.caller, *call));
        if let Some(at) = waiting.order_at {
            self.by_order.remove(&(at, *call));
        }
        if let Some((index, at)) = self.index(&waiting.stage, waiting.outcome.is_some()) {
            index.remove(&(at, *call));
        }
        Some(waiting)
    }

    /// The index of calls of this stage, and the call's number in it. A delivered call waits for its
    /// place to be held once it `is_done`: a standby's may wait for its client's next one instead.
    fn index(&mut self, stage: &Stage, is_done: bool) -> Option<(&mut BTreeSet<(u64, Call)>, u64)> {
        match *stage {
            Stage::Asking { round, .. } => Some((&mut self.asking, round)),
            Stage::Placed { upto, .. } => Some((&mut self.placed, upto)),
            Stage::Delivered { sequence } if is_done => Some((&mut self.unheld, sequence)),
            Stage::Parked
            | Stage::Ordered
            | Stage::Serving
            | Stage::Delivered { .. }
            | Stage::Reading { .. } => None,
        }
    }

    pub(crate) fn set_stage(&mut self, call: &Call, stage: Stage) {
        let Some(waiting) = self.calls.get_mut(call) else { return };
        let before = core::mem::replace(&mut waiting.stage, stage.clone());
        if let Some(at) = waiting.order_at.take() {
            self.by_order.remove(&(at, *call));
        }
        // An executed read leaves nothing behind: it may be reported as not executed.
        waiting.given |= stage != Stage::Parked && !waiting.request.access.reads();
        let is_done = waiting.outcome.is_some();
        if let Some((index, at)) = self.index(&before, is_done) {
            index.remove(&(at, *call));
        }
        if let Some((index, at)) = self.index(&stage, is_done) {
            index.insert((at, *call));
        }
    }

    /// Sets the time at which this node orders a parked call itself, unless it has one.
    pub(crate) fn order_later(&mut self, call: &Call, at: Time) {
        if let Some(waiting) = self.calls.get_mut(call)
            && waiting.order_at.is_none()
        {
            waiting.order_at = Some(at);
            self.by_order.insert((at, *call));
        }
    }

    /// A call that is to be ordered now.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Call> {
        let (at, call) = *self.by_order.first().filter(|(at, _)| *at <= now)?;
        self.by_order.remove(&(at, call));
        self.calls.get_mut(&call).expect("whoever has a time is there").order_at = None;
        Some(call)
    }

    /// The call's progress is not part of the history that goes on: it begins anew.
    pub(crate) fn park(&mut self, call: &Call) {
        self.set_stage(call, Stage::Parked);
        if let Some(waiting) = self.calls.get_mut(call) {
            waiting.outcome = None;
        }
    }

    /// This node's own ordered call is delivered. If its replica has lost the state meanwhile, it
    /// has not taken the call. Then the call waits for a view in which the replica has the state:
    /// its client may ask for this one's answer.
    pub(crate) fn not_taken(&mut self, call: &Call) {
        if self.calls.get(call).is_some_and(|waiting| waiting.stage == Stage::Ordered) {
            self.park(call);
        }
    }

    /// A call that asked this has its first place in the order. The reply depends on the first
    /// place; later ones do not count.
    pub(crate) fn delivered(&mut self, call: &Call, asked: Option<u64>, sequence: u64) {
        let waiting = self.calls.get(call).filter(|waiting| waiting.asks(asked));
        if waiting.is_some_and(|waiting| !matches!(waiting.stage, Stage::Delivered { .. })) {
            self.set_stage(call, Stage::Delivered { sequence });
        }
    }

    /// The call's outcome depends on all messages up to this number, which is after its own place.
    pub(crate) fn settled(&mut self, call: &Call, sequence: u64) {
        let stage = self.calls.get(call).map(|waiting| waiting.stage.clone());
        if stage
            .is_some_and(|stage| matches!(stage, Stage::Delivered { sequence: s } if s < sequence))
        {
            self.set_stage(call, Stage::Delivered { sequence });
        }
    }

    /// The outcome of the call that asked this is known. True if a client waits for it here.
    pub(crate) fn outcome(
        &mut self,
        call: &Call,
        asked: Option<u64>,
        outcome: ServiceOutcome,
    ) -> bool {
        let Some(waiting) = self.calls.get_mut(call).filter(|waiting| waiting.asks(asked)) else {
            return false;
        };
        waiting.outcome = Some(outcome);
        let stage = waiting.stage.clone();
        if let Some((index, at)) = self.index(&stage, true) {
            index.insert((at, *call));
        }
        true
    }

    /// Calls that have their outcome and a place up to this one that is held, in order of place.
    pub(crate) fn ready(&self, upto: u64, is_held: impl Fn(&Call, u64) -> bool) -> Vec<Call> {
        let front = self.unheld.iter().take_while(|(sequence, _)| *sequence <= upto);
        front.filter(|(sequence, call)| is_held(call, *sequence)).map(|(_, call)| *call).collect()
    }

    /// A read for which a round up to this one was asked.
    pub(crate) fn asked_by(&self, round: u64) -> Option<Call> {
        self.asking.first().filter(|(asked, _)| *asked <= round).map(|(_, call)| *call)
    }

    /// A read that waits for a number up to this one.
    pub(crate) fn placed_by(&self, delivered: u64) -> Option<Call> {
        self.placed.first().filter(|(upto, _)| *upto <= delivered).map(|(_, call)| *call)
    }

    /// The configuration is over: what reads waited for says nothing in the next.
    pub(crate) fn park_reads(&mut self) {
        let waiting: Vec<Call> =
            self.asking.iter().chain(&self.placed).map(|(_, call)| *call).collect();
        for call in waiting {
            self.park(&call);
        }
    }

    /// The calls to one group.
    pub(crate) fn of_group(&self, group: GroupId) -> Vec<Call> {
        let range = (group, ClientId(0), 0)..=(group, ClientId(u64::MAX), u64::MAX);
        self.calls.range(range).map(|(call, _)| *call).collect()
    }

    /// The client has the answers that it wants of its calls below this number, or has given them
    /// up.
    pub(crate) fn forget_ended(&mut self, group: GroupId, client: ClientId, unanswered: u64) {
        let ended = self.calls.range((group, client, 0)..(group, client, unanswered));
        let ended: Vec<Call> = ended.map(|(call, _)| *call).collect();
        for call in ended {
            self.remove(&call);
        }
    }

    /// Every call.
    pub(crate) fn all(&self) -> Vec<Call> {
        self.calls.keys().copied().collect()
    }

    /// A call has its outcome and its place in the order, and waits for that to be held.
    pub(crate) fn any_unheld(&self) -> bool {
        !self.unheld.is_empty()
    }

    /// A call is under way that this node may still have to answer.
    pub(crate) fn any_under_way(&self) -> bool {
        self.calls.values().any(|waiting| waiting.stage != Stage::Parked)
    }

    /// The next moment at which a call's timeout ends, or a call must be ordered.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let firsts = [self.by_deadline.first(), self.by_order.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }

    /// Drops calls whose timeout has ended.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(&(deadline, call)) = self.by_deadline.first()
            && deadline <= now
        {
            self.remove(&call);
        }
    }

    /// The connection is gone.
    pub(crate) fn disconnect(&mut self, caller: Caller) {
        self.callers.remove(&caller);
        self.binds.retain(|(waiting, _)| *waiting != caller);
        let first = (GroupId(0), ClientId(0), 0);
        let last = (GroupId(u64::MAX), ClientId(u64::MAX), u64::MAX);
        let calls: Vec<Call> =
            self.by_caller.range((caller, first)..=(caller, last)).map(|(_, c)| *c).collect();
        for call in calls {
            self.remove(&call);
        }
    }

    /// Keeps a question for a group until groups are known. False if too many wait.
    pub(crate) fn keep_bind(&mut self, caller: Caller, name: String) -> bool {
        let room = self.binds.len() < MAX_CALLERS;
        if room {
            self.binds.push((caller, name));
        }
        room
    }

    /// The questions that were kept.
    pub(crate) fn take_binds(&mut self) -> Vec<(Caller, String)> {
        core::mem::take(&mut self.binds)
    }

    /// Invariants.
    pub(crate) fn check_invariants(&self) {
        assert!(self.calls.len() <= MAX_WAITING, "calls are bounded");
        assert_eq!(self.calls.len(), self.by_deadline.len(), "every call has a deadline");
        assert_eq!(self.calls.len(), self.by_caller.len(), "every call has a caller");
        assert!(self.by_order.len() <= self.calls.len(), "only calls are to be ordered");
        let indexed = self.unheld.len() + self.asking.len() + self.placed.len();
        assert!(indexed <= self.calls.len(), "a call is in one stage");
        assert!(self.binds.len() <= MAX_CALLERS, "questions are bounded");
    }
}
