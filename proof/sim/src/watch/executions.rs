//! The replicas' executions, and the histories that result.

use wire::{ClientId, GroupId, Member, RingId, Time};

use crate::check::Verdict;
use crate::check::discarded::Discarded;
use crate::check::hashed::HashMap;
use crate::check::histories::Histories;
use crate::check::merged::Merged;
use crate::check::once::Once;
use crate::check::ordered_time::OrderedTime;
use crate::check::viewed::Viewed;
use crate::service::{Entry, extend};

/// A call, as a replica's history has it.
type Executed = (Member, GroupId, ClientId, u64);

/// The checkers of histories.
#[derive(Clone, Default)]
pub struct Executions {
    once: Once,
    /// Calls that replicas give up where two histories meet.
    pub discarded: Discarded,
    /// Calls that are merged instead.
    pub merged: Merged,
    /// The views that services are told of among their calls.
    pub viewed: Viewed,
    histories: Histories,
    clock: OrderedTime,
    /// Places of calls in histories, as services counted them.
    places: HashMap<Executed, u64>,
    /// Executions of warm passive primaries; each joins the group's history only when it is
    /// ordered.
    ahead: HashMap<Executed, (Time, Step)>,
}

/// How a history went on.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// In this component.
    pub component: RingId,
    /// The new length.
    pub place: u64,
    /// The hash before.
    pub before: u64,
    /// The hash now.
    pub after: u64,
    /// The fastest wall clock's reading.
    pub latest: Time,
}

impl Executions {
    /// The checkers, of which three concern some groups.
    pub fn new(discarded: Discarded, merged: Merged, viewed: Viewed) -> Executions {
        Executions { discarded, merged, viewed, ..Executions::default() }
    }

    /// A service has executed a call, and counted it.
    pub fn counted(&mut self, by: Member, group: GroupId, entry: &Entry, place: u64) {
        self.places.insert((by, group, entry.client, entry.number), place);
    }

    /// The place that a service gave this call.
    pub fn place(&self, call: Executed) -> u64 {
        self.places.get(&call).copied().unwrap_or_default()
    }

    /// A replica tells that it gives up so many calls.
    pub fn told_discarded(&mut self, by: Member, group: GroupId, calls: u64) -> Verdict {
        if !self.merged.concerns(group) {
            return self.discarded.told(by, group, calls);
        }
        self.merged.discarded(group, calls);
        Ok(())
    }

    /// A replica executed a call.
    pub fn executed(&mut self, by: Member, group: GroupId, entry: &Entry) -> Verdict {
        self.once.executed(by, group, entry)
    }

    /// It has executed it alone: if it dies before others know, another executes the call in its
    /// own way.
    pub fn went_ahead(&mut self, by: Member, group: GroupId, entry: &Entry, step: &Step) {
        self.ahead.insert((by, group, entry.client, entry.number), (entry.time, *step));
    }

    /// A call is ordered in this component: it may have been executed ahead.
    pub fn ordered(&mut self, call: Executed, component: RingId) -> Verdict {
        match self.ahead.remove(&call) {
            Some((time, step)) => self.went_on(call.0, call.1, time, &Step { component, ..step }),
            None => Ok(()),
        }
    }

    /// The group's history went on at this replica.
    pub fn went_on(&mut self, by: Member, group: GroupId, time: Time, step: &Step) -> Verdict {
        let Step { component, place, after, latest, .. } = *step;
        self.clock.executed(by, component, (group, place), (time, latest))?;
        self.histories.reached(by, component, (group, place), after)
    }

    /// The calls that a replica executed as primary went with its history. Others may have executed
    /// the same calls since.
    pub fn gave_up(&mut self, by: Member, group: GroupId) {
        self.ahead.retain(|(who, of, ..), _| (*who, *of) != (by, group));
    }

    /// A replica's history was replaced by this one.
    pub fn replaced(&mut self, by: Member, group: GroupId, history: &[Entry]) -> Verdict {
        let last = history.last().map_or(Time::ZERO, |entry| entry.time);
        let hashes = history.iter().scan(0, |hash, entry| {
            *hash = extend(*hash, entry);
            Some(*hash)
        });
        self.discarded.replaced(by, group, &hashes.collect::<Vec<u64>>())?;
        self.clock.replaced(by, group, last);
        self.once.replaced(by, group, history)
    }
}
