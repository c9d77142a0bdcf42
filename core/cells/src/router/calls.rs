//! Calls on their way: made here, passing through, and executed here.
//!
//! A call has the session and number that its caller gave it, and the callee's session executes it
//! once. So it may be sent again by any way, and a node that carries it may forget it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use wire::path::Path;
use wire::{ClientId, Duration, GroupId, Time};

use super::links::Links;
use super::sight::Sight;
use super::ways::{course_by, next_hops};
use crate::bug::{Bug, Planted};
use crate::limits::{MAX_CARRIED, MAX_HOPS};
use crate::message::{Call, Carry, Class, Course, End, Message, ORIGINS, Origin};
use crate::output::{LinkId, Output, Outputs};

/// A call that finds no way is tried again so much later, and then twice as much, as long as its
/// caller waits; and whenever a link comes up.
const AGAIN: Duration = Duration::from_millis(10);
const AGAIN_AT_MOST: Duration = Duration::from_millis(160);

/// A call as it is made in this cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The cell that is to execute it.
    pub to: Path,
    /// The call.
    pub call: Call,
    /// Its caller waits so long.
    pub left: Duration,
    /// The first label of the caller's certificate's name. `None`: it has shown none.
    pub caller: Option<String>,
}

/// The name that a call has at its callee: the group's numbers are its own.
type Key = (ClientId, GroupId, u64);

/// Where a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// It was made here, and has this token.
    Here(u64),
    /// By this link, with this number.
    Link(LinkId, u64),
}

/// A call under way.
#[derive(Clone, Debug)]
struct Carried {
    from: From,
    origin: Option<Origin>,
    to: Path,
    call: Call,
    hops: u8,
    course: Course,
    until: Time,
    /// It goes by this link now.
    by: Option<LinkId>,
    /// Links that it was sent by in vain.
    tried: Vec<LinkId>,
    /// An attempt ended so that nobody knows whether it was executed.
    is_open: bool,
    again_at: Option<Time>,
    again: Duration,
}

/// The callers that wait for one execution.
#[derive(Clone, Debug)]
struct Execution {
    callers: Vec<(From, Class)>,
    key: Key,
}

/// All calls of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    under_way: BTreeMap<u64, Carried>,
    /// In the order of their ends.
    ends: BTreeSet<(Time, u64)>,
    executing: BTreeMap<u64, Execution>,
    by_key: BTreeMap<Key, u64>,
    next: u64,
    planted: Planted,
}

/// The fields that the handlers of calls may touch.
pub(super) struct CallHandler<'a, 'b> {
    pub(super) calls: &'a mut Calls,
    pub(super) links: &'a mut Links,
    pub(super) out: &'a mut Outputs,
    pub(super) up: Option<LinkId>,
    pub(super) sight: &'a Sight<'b>,
}

impl Calls {
    pub(super) fn with_bug(planted: Planted) -> Calls {
        Calls { planted, ..Calls::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.under_way.len() + self.executing.len()
    }

    pub(super) fn wait_for_a_way(&self) -> bool {
        self.under_way.values().any(|carried| carried.by.is_none())
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.ends.first().map(|(at, _)| *at)
    }

    fn wait(&mut self, id: u64, at: Time) {
        self.ends.insert((at, id));
    }

    fn take(&mut self, id: u64) -> Option<Carried> {
        let carried = self.under_way.remove(&id)?;
        self.ends.remove(&(carried.until, id));
        if let Some(at) = carried.again_at {
            self.ends.remove(&(at, id));
        }
        Some(carried)
    }
}

/// Whether a call may have been executed that ends so.
fn may_be_executed(end: &End) -> bool {
    match end {
        End::NoWay | End::TooFar | End::NoSuchGroup => false,
        End::Refused(refusal, _) => refusal.was_executed() != Some(false),
        End::Answer(_) | End::Error(_) | End::Lost => true,
    }
}

impl CallHandler<'_, '_> {
    /// A caller of this cell makes a call to another.
    pub(super) fn make(&mut self, now: Time, token: u64, made: Made) {
        let Made { to, call, left, caller } = made;
        let origin = caller.map(|name| Origin { cell: self.sight.cell.path().clone(), name });
        let (hops, course) = (MAX_HOPS, Course::default());
        let carry = Carry { id: 0, to, left, hops, course, call };
        self.begin(now, From::Here(token), origin, carry);
    }

    /// The cell at the other end may carry a call of this caller: what comes up, or from another
    /// branch, was made there or below it. A cell above vouches for all but what was made here or
    /// below: that comes from above where a cell has lost its way, and has no name then.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn vouched(&self, link: LinkId, origin: Origin) -> Result<Option<Origin>, ()> {
        let own = self.sight.cell.path();
        let path = self.links.path_of(link).ok_or(())?;
        if self.calls.planted.is(Bug::BelieveOrigins) || path == own {
            return Ok(Some(origin));
        }
        match own.is_below(path) {
            true => Ok(Some(origin).filter(|origin| !origin.cell.is_within(own))),
            false if origin.cell.is_within(path) => Ok(Some(origin)),
            false => Err(()),
        }
    }

    /// A call comes by a link.
    pub(super) fn carry(&mut self, now: Time, link: LinkId, origin: Option<Origin>, carry: Carry) {
        self.links.called(now, link);
        self.begin(now, From::Link(link, carry.id), origin, carry);
    }

    fn begin(&mut self, now: Time, from: From, origin: Option<Origin>, carry: Carry) {
        let Carry { to, left, hops, course, call, .. } = carry;
        if to == *self.sight.cell.path() {
            return self.execute(from, origin, call, left);
        }
        if self.calls.len() >= MAX_CARRIED || hops == 0 {
            return self.answer(from, Class::of(call.priority), End::NoWay);
        }
        self.calls.next += 1;
        let (id, until) = (self.calls.next, now + left);
        let carried = Carried {
            from,
            origin,
            to,
            call,
            hops,
            course,
            until,
            by: None,
            tried: Vec::new(),
            is_open: false,
            again_at: None,
            again: AGAIN,
        };
        self.calls.under_way.insert(id, carried);
        self.calls.wait(id, until);
        self.send(now, id);
    }

    /// Sends a call by the best way that it has not failed by.
    fn send(&mut self, now: Time, id: u64) {
        let Some(carried) = self.calls.under_way.get_mut(&id) else { return };
        let back = match carried.from {
            From::Link(link, _) => Some(link),
            From::Here(_) => None,
        };
        let hops = next_hops(&carried.to, carried.course, self.sight, self.links, self.up);
        let way =
            hops.into_iter().find(|link| Some(*link) != back && !carried.tried.contains(link));
        let Some(link) = way else { return self.fail(now, id) };
        let left = carried.until.since(now);
        let round_trip = self.links.get(link).map_or(Duration::ZERO, |it| it.round_trip.usual());
        if left < round_trip {
            let end = if carried.is_open { End::Lost } else { End::TooFar };
            return self.end(id, end);
        }
        carried.by = Some(link);
        let (to, hops, mut call) = (carried.to.clone(), carried.hops - 1, carried.call.clone());
        if !carried.tried.is_empty() && self.calls.planted.is(Bug::NumberAnew) {
            call.number += 1 << 32;
        }
        let class = Class::of(call.priority);
        let mut course = course_by(carried.course, link, self.sight, self.links);
        course.is_down &= !self.calls.planted.is(Bug::GoUpAgain);
        let origin = carried.origin.clone().filter(|_| self.links.version(link) >= ORIGINS);
        self.links.called(now, link);
        let carry = Carry { id, to, left, hops, course, call };
        let message = match origin {
            None => Message::Carry(carry),
            Some(origin) => Message::CarryFor(origin, carry),
        };
        self.out.send(link, class, message);
    }

    /// No way is left. A caller of this cell waits for one; another node may know one.
    fn fail(&mut self, now: Time, id: u64) {
        let Some(carried) = self.calls.under_way.get_mut(&id) else { return };
        (carried.by, carried.tried) = (None, Vec::new());
        if matches!(carried.from, From::Link(..)) {
            let end = if carried.is_open { End::Lost } else { End::NoWay };
            return self.end(id, end);
        }
        if carried.again_at.is_some() {
            // It was tried before its time, for a link came up.
            return;
        }
        let at = now + carried.again;
        carried.again = (carried.again * 2).min(AGAIN_AT_MOST);
        if at < carried.until {
            carried.again_at = Some(at);
            self.calls.wait(id, at);
        }
    }

    /// A link says how a call ended that was sent by it.
    pub(super) fn carried(&mut self, now: Time, link: LinkId, id: u64, end: End) {
        let Some(carried) = self.calls.under_way.get_mut(&id) else { return };
        if carried.by != Some(link) {
            return;
        }
        match end {
            End::NoWay | End::Lost => {
                carried.is_open |= end == End::Lost;
                carried.by = None;
                carried.tried.push(link);
                self.send(now, id);
            }
            // An attempt before this one may have been executed.
            end if carried.is_open && !may_be_executed(&end) => self.end(id, End::Lost),
            end => self.end(id, end),
        }
    }

    /// Calls that went by this link go by another.
    pub(super) fn lost(&mut self, now: Time, link: LinkId) {
        if self.calls.planted.is(Bug::ForgetLost) {
            return;
        }
        let by = |(_, carried): &(&u64, &Carried)| carried.by == Some(link);
        let lost: Vec<u64> = self.calls.under_way.iter().filter(by).map(|(id, _)| *id).collect();
        for id in lost {
            if let Some(carried) = self.calls.under_way.get_mut(&id) {
                carried.is_open = !self.calls.planted.is(Bug::CallLostUndone);
                carried.by = None;
                carried.tried.push(link);
            }
            self.send(now, id);
        }
        // Their answers would go nowhere.
        let gone = |carried: &Carried| matches!(carried.from, From::Link(from, _) if from == link);
        let gone: Vec<u64> =
            self.calls.under_way.iter().filter(|(_, it)| gone(it)).map(|(id, _)| *id).collect();
        for id in gone {
            self.calls.take(id);
        }
    }

    /// A link is up: calls that wait for a way are tried.
    pub(super) fn retry(&mut self, now: Time) {
        let waits = |(_, carried): &(&u64, &Carried)| carried.by.is_none();
        let all: Vec<u64> = self.calls.under_way.iter().filter(waits).map(|(id, _)| *id).collect();
        for id in all {
            self.send(now, id);
        }
    }

    /// Ends and repeats what is due.
    pub(super) fn look(&mut self, now: Time) {
        while let Some(&(at, id)) = self.calls.ends.first()
            && at <= now
        {
            self.calls.ends.pop_first();
            let Some(carried) = self.calls.under_way.get_mut(&id) else { continue };
            carried.again_at.take_if(|again| *again == at);
            if carried.until <= now {
                let is_open = carried.is_open || carried.by.is_some();
                self.end(id, if is_open { End::Lost } else { End::NoWay });
            } else if carried.by.is_none() {
                self.send(now, id);
            }
        }
    }

    /// A call is for this cell. One that is being executed already is not asked for again.
    fn execute(&mut self, from: From, origin: Option<Origin>, mut call: Call, left: Duration) {
        if self.calls.planted.is(Bug::GiveUpOlder) {
            call.unanswered = call.number;
        }
        let is_one = self.calls.planted.is(Bug::KeyWithoutGroup);
        let group = if is_one { GroupId(0) } else { GroupId::of(&call.group) };
        let key = (call.client, group, call.number);
        let class = Class::of(call.priority);
        let present = self.calls.by_key.get(&key).and_then(|id| self.calls.executing.get_mut(id));
        if let Some(execution) = present {
            execution.callers.push((from, class));
            execution.callers.dedup();
            return;
        }
        if self.calls.len() >= MAX_CARRIED {
            return self.answer(from, class, End::NoWay);
        }
        self.calls.next += 1;
        let id = self.calls.next;
        self.calls.by_key.insert(key, id);
        self.calls.executing.insert(id, Execution { callers: alloc::vec![(from, class)], key });
        self.out.push(Output::Execute { call: id, request: call, left, origin });
    }

    /// So a call ended that was executed here.
    pub(super) fn executed(&mut self, id: u64, end: End) {
        let Some(execution) = self.calls.executing.remove(&id) else { return };
        self.calls.by_key.remove(&execution.key);
        for (from, class) in execution.callers {
            self.answer(from, class, end.clone());
        }
    }

    fn end(&mut self, id: u64, end: End) {
        if let Some(carried) = self.calls.take(id) {
            self.answer(carried.from, Class::of(carried.call.priority), end);
        }
    }

    fn answer(&mut self, from: From, class: Class, end: End) {
        match from {
            From::Here(token) => self.out.push(Output::Ended { token, end }),
            From::Link(link, id) if self.links.get(link).is_some() => {
                self.out.send(link, class, Message::Carried { id, end });
            }
            // Its caller asks again, and gets the kept reply.
            From::Link(..) => {}
        }
    }
}
