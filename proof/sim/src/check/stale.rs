//! A read that may be stale is no older than its bound.
//!
//! Source: docs/protocol/group.md, "Reads". Every reply names its place in the history. A read that
//! may be so old as `max_age` names a place that is not before any that was told so long before the
//! read was made. (That the place is one of the history, and is not lost, is `acknowledged`'s.)

use std::collections::BTreeMap;

use bytes::Bytes;
use client::{CallError, CallId};
use wire::client::Access;
use wire::{Duration, GroupId, Time};

use super::linearizable::Begun;
use super::{Verdict, demand};

const PROPERTY: &str = "stale reads keep their bound";

/// Clocks of hosts drift by up to so many thousandths, with a margin.
const DRIFT: u32 = 1_000;

/// The places that replies named, with their times, and the floors of the reads under way.
#[derive(Clone, Default)]
pub struct Stale {
    /// For each group the largest place told so far, whenever it grew.
    told: BTreeMap<GroupId, Vec<(Time, u64)>>,
    floors: BTreeMap<(usize, CallId), (GroupId, u64)>,
}

impl Stale {
    /// A reply leaves that names this place.
    pub fn answered(&mut self, now: Time, group: GroupId, place: u64) {
        let told = self.told.entry(group).or_default();
        if told.last().is_none_or(|(_, last)| *last < place) {
            told.push((now, place));
        }
    }

    /// A client begins a call.
    pub fn begun(&mut self, now: Time, client: usize, begun: &Begun) {
        let Access::Stale { max_age_ms } = begun.access else { return };
        let age = Duration::from_millis(max_age_ms.into());
        let age = age + age / DRIFT + Duration::from_micros(1);
        let told = self.told.get(&begun.group).map_or(&[][..], Vec::as_slice);
        let before = told.iter().take_while(|(at, _)| *at + age < now).last();
        let floor = before.map_or(0, |(_, place)| *place);
        self.floors.insert((client, begun.call), (begun.group, floor));
    }

    /// A call of a client ends.
    pub fn ended(
        &mut self,
        client: usize,
        call: CallId,
        result: &Result<Bytes, CallError>,
    ) -> Verdict {
        let Some((group, floor)) = self.floors.remove(&(client, call)) else { return Ok(()) };
        let Ok(bytes) = result else { return Ok(()) };
        let place = bytes.first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        demand(place >= floor, PROPERTY, || {
            format!(
                "{call:?} of {group} was answered as after #{place}, #{floor} was told too long before"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::MethodId;

    const GROUP: GroupId = GroupId(1);

    #[test]
    fn a_read_that_is_too_old_is_seen() {
        let at = |ms: u64| Time(1_000_000_000 + ms * 1_000_000);
        for (place, right) in [(6, false), (7, true), (8, true)] {
            let mut checker = Stale::default();
            checker.answered(at(0), GROUP, 7);
            checker.answered(at(90), GROUP, 8);
            let access = Access::Stale { max_age_ms: 50 };
            let begun = Begun {
                call: CallId(1),
                group: GROUP,
                method: MethodId(1),
                body: Bytes::new(),
                access,
                binding: false,
            };
            checker.begun(at(100), 0, &begun);
            let answer = Ok(Bytes::copy_from_slice(&u64::to_le_bytes(place)));
            assert_eq!(checker.ended(0, CallId(1), &answer).is_ok(), right, "{place}");
        }
    }
}
