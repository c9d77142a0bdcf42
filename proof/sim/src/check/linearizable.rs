//! A single process that never fails could have shown clients what they saw of a group.
//!
//! Source: docs/linearizability.md. Every client's calls are recorded with their times and ends.
//! Two things must be linearizable: each register, by what was read; and the group as a whole, as a
//! counter of its executions, by the place that each reply names. Calls that ended with an error
//! that says "not executed" must not show.

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{CallError, CallId};
use history::models::{Register, RegisterCall, RegisterReply};
use history::{Handle, History, Limits, Model, check};
use wire::client::{Access, Refusal};
use wire::{ClientId, GroupId, MethodId, Time};

use super::{Verdict, demand};
use crate::registers::{READ, SWAP, unpack};
use crate::service::REPLY;

const PROPERTY: &str = "linearizable";

/// A seed's histories have some hundred operations.
const LIMITS: Limits = Limits { steps: 2_000_000, configurations: 200_000 };

/// A group seen as a counter: each call is executed as the next, and one that changes nothing names
/// the last.
#[derive(Clone)]
struct Places;

/// The effect of a call on the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Next,
    Look,
}

impl Model for Places {
    type Key = ();
    type Call = Step;
    type Reply = u64;
    type State = u64;

    fn key(&self, _: &Step) {}

    fn initial(&self, (): &()) -> u64 {
        0
    }

    fn execute(&self, state: &mut u64, step: &Step) -> u64 {
        *state += u64::from(*step == Step::Next);
        *state
    }

    fn is_read(&self, step: &Step, _: Option<&u64>) -> bool {
        *step == Step::Look
    }

    fn tell(&self, step: &Step, reply: Option<&u64>) -> String {
        let verb = if *step == Step::Look { "read after" } else { "executed as" };
        reply.map_or(verb.into(), |place| format!("{verb} #{place}"))
    }
}

/// The clients' history of a group.
#[derive(Clone, Default)]
struct Seen {
    registers: History<RegisterCall, RegisterReply>,
    places: History<Step, u64>,
}

/// A call under way.
#[derive(Clone)]
struct Open {
    group: GroupId,
    method: MethodId,
    register: Option<Handle>,
    place: Handle,
    binding: bool,
}

/// The clients' histories of all groups.
#[derive(Clone, Default)]
pub struct Linearizable {
    seen: BTreeMap<GroupId, Seen>,
    open: BTreeMap<(usize, CallId), Open>,
    /// Nested calls, which count like clients': their callees, and the places of those under way.
    nested: BTreeMap<(ClientId, u64), (GroupId, Option<Handle>)>,
    /// Histories for which the checker would have taken too long.
    undecided: Vec<String>,
}

/// A call as its client begins it.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Its name.
    pub call: CallId,
    /// The group that is called.
    pub group: GroupId,
    /// The method that is called.
    pub method: MethodId,
    /// The arguments.
    pub body: Bytes,
    /// Its effect on the state.
    pub access: Access,
    /// A replica that declines the call has not executed it. This does not hold for reads: a read
    /// may be ordered, executed and then declined.
    pub binding: bool,
}

impl Linearizable {
    /// A client begins a call.
    pub fn begun(&mut self, now: Time, client: usize, begun: &Begun) {
        let Begun { call, group, method, ref body, access, binding } = *begun;
        if matches!(access, Access::Stale { .. }) {
            return; // judged by its bound: see `check/stale.rs`
        }
        let seen = self.seen.entry(group).or_default();
        let lane = client as u32;
        let word = <[u8; 8]>::try_from(&body[..]).map(u64::from_le_bytes);
        let register = word.ok().and_then(|word| unpack(method, word));
        let register = register.map(|call| seen.registers.invoke(lane, now, call));
        let step = if access.reads() { Step::Look } else { Step::Next };
        let place = seen.places.invoke(lane, now, step);
        self.open.insert((client, call), Open { group, method, register, place, binding });
    }

    /// A client's call ends.
    pub fn ended(
        &mut self,
        now: Time,
        client: usize,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) {
        let Some(Open { group, method, register, place, binding }) =
            self.open.remove(&(client, call))
        else {
            return;
        };
        let seen = self.seen.entry(group).or_default();
        let (told, held) = match result {
            Ok(bytes) | Err(CallError::Service(bytes)) => (word(bytes, 0), word(bytes, REPLY)),
            // The service's own answer, which begins with the place.
            Err(CallError::Refused { refusal: Refusal::NoSuchMethod, reason }) => {
                (reason.split(' ').next().and_then(|place| place.parse().ok()), None)
            }
            Err(error) => {
                if binding && error.was_executed() == Some(false) {
                    seen.places.failed(place);
                    register.into_iter().for_each(|handle| seen.registers.failed(handle));
                }
                return;
            }
        };
        // A reply that names no place is none of the service's.
        seen.places.answered(place, now, told.unwrap_or(u64::MAX));
        if let Some(handle) = register {
            let tells = method == READ || method == SWAP;
            let value = held.filter(|_| tells).map(RegisterReply::Value);
            seen.registers.answered(handle, now, value.unwrap_or(RegisterReply::Written));
        }
    }

    /// A group calls this one, for the first time or again.
    pub fn nested_begun(&mut self, now: Time, group: GroupId, (client, number): (ClientId, u64)) {
        let seen = self.seen.entry(group).or_default();
        let lane = client.0 as u32;
        let begin = || (group, Some(seen.places.invoke(lane, now, Step::Next)));
        self.nested.entry((client, number)).or_insert_with(begin);
    }

    /// It was answered, as the first of the caller's replicas sees.
    pub fn nested_ended(&mut self, now: Time, name: (ClientId, u64), reply: &[u8]) {
        let Some((group, handle)) = self.nested.get_mut(&name) else { return };
        if let (Some(handle), Some(place)) = (handle.take(), word(reply, 0)) {
            self.seen.entry(*group).or_default().places.answered(handle, now, place);
        }
    }

    /// At the end: judges the clients' history of this group.
    pub fn finish(&mut self, group: GroupId) -> Verdict {
        let Some(seen) = self.seen.get(&group) else { return Ok(()) };
        let registers = check(&Register, seen.registers.operations(), LIMITS);
        demand(registers.broken.is_none(), PROPERTY, || {
            format!("{group}, registers: {}", registers.broken.as_ref().expect("it is"))
        })?;
        let places = check(&Places, seen.places.operations(), LIMITS);
        demand(places.broken.is_none(), PROPERTY, || {
            format!("{group}, places: {}", places.broken.as_ref().expect("it is"))
        })?;
        let of_registers =
            registers.undecided.iter().map(|one| format!("{group}: register {one:?}"));
        self.undecided.extend(of_registers);
        self.undecided.extend(places.undecided.iter().map(|one| format!("{group}: {one:?}")));
        Ok(())
    }

    /// The histories that took too long to be judged.
    pub fn undecided(&self) -> &[String] {
        &self.undecided
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::pack;

    const GROUP: GroupId = GroupId(1);

    /// The answer of the `place`th call, a register's that held this.
    fn reply(place: u64, held: u64) -> Result<Bytes, CallError> {
        let words = [place, 0, 0, held];
        Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    fn begin(checker: &mut Linearizable, now: u64, id: u64, call: RegisterCall) {
        let (method, word) = pack(&call);
        let body = Bytes::copy_from_slice(&word.to_le_bytes());
        let access = Access::Change;
        let binding = !matches!(call, RegisterCall::Read(_));
        let begun = Begun { call: CallId(id), group: GROUP, method, body, access, binding };
        checker.begun(Time(now), id as usize, &begun);
    }

    fn end(checker: &mut Linearizable, now: u64, id: u64, result: Result<Bytes, CallError>) {
        checker.ended(Time(now), id as usize, CallId(id), &result);
    }

    #[test]
    fn a_stale_read_is_seen() {
        for (held, right) in [(0, false), (5, true)] {
            let mut checker = Linearizable::default();
            begin(&mut checker, 0, 1, RegisterCall::Write(2, 5));
            end(&mut checker, 1, 1, reply(1, 0));
            begin(&mut checker, 2, 2, RegisterCall::Read(2));
            end(&mut checker, 3, 2, reply(2, held));
            assert_eq!(checker.finish(GROUP).is_ok(), right);
            assert!(checker.undecided().is_empty());
        }
    }

    #[test]
    fn a_place_before_one_that_was_told_is_seen() {
        let mut checker = Linearizable::default();
        for (id, place) in [(1, 2), (2, 1)] {
            begin(&mut checker, id * 10, id, RegisterCall::Read(2));
            end(&mut checker, id * 10 + 1, id, reply(place, 0));
        }
        assert!(checker.finish(GROUP).is_err());
    }

    #[test]
    fn an_error_that_lies_is_seen() {
        let told = |error| {
            let mut checker = Linearizable::default();
            begin(&mut checker, 0, 1, RegisterCall::Write(2, 5));
            end(&mut checker, 1, 1, Err(error));
            begin(&mut checker, 2, 2, RegisterCall::Read(2));
            end(&mut checker, 3, 2, reply(2, 5));
            checker.finish(GROUP)
        };
        assert!(told(CallError::NoReplica).is_err());
        assert!(told(CallError::DeadlineExceeded).is_ok());
    }
    /// Seed 5212 of the world of styles: a voting group had executed a read when two minorities
    /// declined it.
    #[test]
    fn a_read_that_was_ordered_and_declined_may_have_a_place() {
        for (first, right) in [(RegisterCall::Read(2), true), (RegisterCall::Write(2, 5), false)] {
            let mut checker = Linearizable::default();
            begin(&mut checker, 0, 1, first);
            end(&mut checker, 1, 1, Err(CallError::NoReplica));
            begin(&mut checker, 2, 2, RegisterCall::Write(2, 6));
            end(&mut checker, 3, 2, reply(2, 0));
            assert_eq!(checker.finish(GROUP).is_ok(), right);
        }
    }
}
