//! Calls between groups: who orders them, and who orders how they ended
//! (`docs/protocol/nested.md`).

mod handler;

use alloc::collections::{BTreeMap, BTreeSet};

use wire::histogram::Histogram;
use wire::limits::MAX_NESTED_OWED;
use wire::ordered::End;
use wire::{Duration, GroupId, Payload, Time};

use crate::api::NestedStatus;
use crate::callers::Call;
use crate::replica::{Ask, CallQuorum, Child};

/// Where several replicas may say the same, each waits for those before it in rank: as many times
/// as long as this takes of late, and within these bounds.
const LAG_FACTOR: u32 = 4;
const LEAST: Duration = Duration::from_micros(500);
const MOST: Duration = Duration::from_millis(50);

/// The reason for a refusal if the calling group is cold passive.
const CROWDED: &str = "the log of the group that calls has no room for replies: let its handlers ask for less at a time, and see why no checkpoint is taken";

/// Calls between groups in which this node's replicas have a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nested {
    /// The wall clock when a handler here last called another group.
    asked_wall: Time,
    /// The call that a replica's handler waits for, by its group.
    open: BTreeMap<GroupId, Open>,
    /// Calls that replicas here have taken and of which no end is ordered.
    owed: BTreeMap<Call, Owed>,
    /// When those are to be ended that others have not, though they are before in rank.
    due: BTreeSet<(Time, Call)>,
    /// How long it takes from when this node could say something until it is said, smoothed;
    /// `None`: not known yet.
    lag: Option<Duration>,
    /// See [`NestedStatus`]; none before the first.
    call_delays: Option<Histogram>,
    end_delays: Option<Histogram>,
    services: Option<Histogram>,
}

/// A call that a handler here waits for.
#[derive(Clone, Debug)]
struct Open {
    ask: Ask,
    /// The wall clock when it was asked.
    wall: Time,
    /// The time at which this node orders it, if no other node does before. `None`: others do, or
    /// it is done.
    order_at: Option<Time>,
    /// This node orders it, or gives it up.
    speaks: bool,
    /// It has been delivered in this component.
    delivered: bool,
    /// It was given up, in this component.
    given_up: bool,
    /// The copy that this node has handed in, and when.
    handed: Option<(Payload, Time)>,
}

impl Open {
    /// The time of the next check. A refused call is given up in its turn, after its deadline too.
    /// With the deadline as the time it would be checked again and again between the two.
    fn due(&self) -> Time {
        let in_turn = self.order_at.unwrap_or(Time::FAR);
        match self.ask.call_quorum {
            CallQuorum::Refused => in_turn,
            CallQuorum::Awaited | CallQuorum::Given => in_turn.min(self.ask.due),
        }
    }
}

/// A call whose end is owed to its caller.
#[derive(Clone, Debug)]
struct Owed {
    caller: GroupId,
    child: Child,
    asked: u64,
    /// The end leaves when this is held.
    sequence: u64,
    /// When it was delivered here.
    since: Time,
    end: Option<(End, Time)>,
    /// Others are before in rank until then.
    order_at: Option<Time>,
    /// As of [`Open::handed`].
    handed: Option<(Payload, Time)>,
}

impl Nested {
    fn wait_no_more(&mut self, call: &Call) -> Option<Owed> {
        let owed = self.owed.remove(call)?;
        if let Some(at) = owed.order_at {
            self.due.remove(&(at, *call));
        }
        Some(owed)
    }

    fn rank_pause(&self) -> Duration {
        self.lag.map_or(MOST, |lag| (lag * LAG_FACTOR).clamp(LEAST, MOST))
    }

    /// Learns the delay from the time at which this node could have ordered it until some member
    /// did.
    fn learn(&mut self, took: Duration) {
        let took = took.min(MOST);
        // Too short a pause costs copies; too long a pause costs only time after a failure.
        self.lag = Some(match self.lag {
            Some(lag) if took < lag => (lag * 7 + took) / 8,
            _ => took,
        });
    }

    /// A call has ended here, and its end waits until that is held.
    pub(crate) fn waits_to_pay(&self) -> bool {
        self.owed.values().any(|owed| owed.end.is_some() && owed.handed.is_none())
    }

    /// When something here is due by itself.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let open = self.open.values().filter(|open| open.speaks && !open.given_up);
        let open = open.map(Open::due);
        open.chain(self.due.first().map(|(at, _)| *at)).min()
    }

    /// A handler here is about to call another group.
    pub(crate) fn asked_at(&mut self, wall: Time) {
        self.asked_wall = wall;
    }

    pub(crate) fn status(&self) -> NestedStatus {
        let times = |of: &Option<Histogram>| of.as_ref().map(Histogram::times).unwrap_or_default();
        NestedStatus {
            call_delays: times(&self.call_delays),
            end_delays: times(&self.end_delays),
            services: times(&self.services),
        }
    }

    /// Asserts the invariants.
    pub(crate) fn check_invariants(&self) {
        assert!(self.owed.len() <= MAX_NESTED_OWED, "ends that are owed are bounded");
        assert!(self.due.len() <= self.owed.len(), "only what is owed is due");
    }
}
