//! Ordered time never runs backwards in a history and is no invention.
//!
//! Source: docs/protocol/group.md, "Requests", step 3; `ft-corba-totem.txt` (consistent clocks).
//! That it is the same at every replica follows from the histories' hashes, which contain it; here
//! it is compared in the open too, so that a failure says so.

use super::hashed::HashMap;

use wire::{GroupId, Member, RingId, Time};

use super::{Verdict, demand};

const PROPERTY: &str = "ordered time";

/// Ordered time at each replica and place.
#[derive(Clone, Default)]
pub struct OrderedTime {
    last: HashMap<(Member, GroupId), Time>,
    seen: HashMap<(RingId, GroupId, u64), (Time, Member)>,
}

impl OrderedTime {
    /// A replica executes the call at `place` with this ordered time; no wall clock is beyond
    /// `latest`.
    pub fn executed(
        &mut self,
        by: Member,
        component: RingId,
        (group, place): (GroupId, u64),
        (time, latest): (Time, Time),
    ) -> Verdict {
        let last = self.last.insert((by, group), time).unwrap_or_default();
        demand(last <= time, PROPERTY, || format!("{by}: {group} goes from {last} to {time}"))?;
        demand(time <= latest, PROPERTY, || {
            format!("{by}: {group} is at {time}, no clock is beyond {latest}")
        })?;
        let (first, who) = *self.seen.entry((component, group, place)).or_insert((time, by));
        demand(first == time, PROPERTY, || {
            format!("the {place}th of {group} is at {time} at {by}, at {first} at {who}")
        })
    }

    /// A replica's history is now one that ends at this time.
    pub fn replaced(&mut self, by: Member, group: GroupId, last: Time) {
        self.last.insert((by, group), last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn a_step_back_a_difference_and_the_future_are_seen() {
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        let mut clock = OrderedTime::default();
        let mut execute = |by, place, time| {
            let at = (GroupId(1), place);
            clock.executed(member(by), RingId::default(), at, (Time(time), Time(100)))
        };
        execute(1, 1, 50).unwrap();
        execute(1, 2, 50).unwrap();
        assert!(execute(2, 1, 51).is_err());
        assert!(execute(1, 3, 49).is_err());
        assert!(execute(1, 3, 101).is_err());
        clock.replaced(member(1), GroupId(1), Time(7));
        let at = (GroupId(1), 9);
        clock.executed(member(1), RingId::default(), at, (Time(7), Time(9))).unwrap();
    }
}
