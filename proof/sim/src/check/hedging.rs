//! A client that asks a second replica does so under the call's own number, and rarely.
//!
//! Source: docs/protocol/client.md, "Hedging": sessions suppress a copy by its number, and copies
//! are no more than the budget allows.

use super::hashed::{HashMap, HashSet};

use client::{Hedging, Stats};
use wire::{ClientId, GroupId};

use super::{Verdict, demand};

const PROPERTY: &str = "hedging";

/// The numbers that clients have used.
#[derive(Clone, Default)]
pub struct Numbers {
    used: HashMap<ClientId, HashSet<(GroupId, u64)>>,
}

impl Numbers {
    /// A client that has begun so many calls sends a request.
    pub fn asked(
        &mut self,
        client: ClientId,
        (group, number): (GroupId, u64),
        calls: u64,
    ) -> Verdict {
        let used = self.used.entry(client).or_default();
        used.insert((group, number));
        let numbers = used.len() as u64;
        demand(numbers <= calls, PROPERTY, || {
            format!("{client} uses {numbers} numbers for {calls} calls")
        })
    }
}

/// The hedges of a client of so many groups are within its budget.
pub fn budget(client: ClientId, stats: Stats, groups: usize) -> Verdict {
    let share = u64::from(Hedging::default().per_thousand);
    let limit = groups as u64 + stats.calls * share / 1_000;
    demand(stats.hedges <= limit, PROPERTY, || {
        let Stats { hedges, calls, .. } = stats;
        format!("{client} asks a second replica {hedges} times in {calls} calls, {limit} at most")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_more_than_calls_and_a_copy_more_than_the_budget_are_seen() {
        let mut numbers = Numbers::default();
        let (client, group) = (ClientId(1), GroupId(1));
        numbers.asked(client, (group, 1), 1).unwrap();
        numbers.asked(client, (group, 1), 1).unwrap();
        assert!(numbers.asked(client, (group, 2), 1).is_err());
        let stats = |hedges| {
            let mut stats = Stats::default();
            (stats.calls, stats.hedges) = (40, hedges);
            stats
        };
        assert!(budget(client, stats(4), 2).is_ok());
        assert!(budget(client, stats(5), 2).is_err());
    }
}
