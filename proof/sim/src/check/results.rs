//! Each rank ends with the result of an undisturbed run, bit for bit, once.
//!
//! Source: docs/jobs.md; docs/protocol/jobs.md, "The agent": nothing of a damaged image is restored,
//! and the results are in the last image.

use std::collections::BTreeMap;

use super::starts::RankId;
use super::{Verdict, demand};

const PROPERTY: &str = "results as undisturbed";

/// A rank's arrays.
pub type State = Vec<Vec<u64>>;

/// Undisturbed runs, and what was delivered.
#[derive(Clone, Default)]
pub struct Results {
    /// The states of each rank, one for each number of turns.
    undisturbed: BTreeMap<RankId, Vec<State>>,
    delivered: BTreeMap<RankId, u64>,
}

impl Results {
    /// A rank is to have these states, one after the other.
    pub fn expect(&mut self, rank: RankId, states: Vec<State>) {
        self.undisturbed.insert(rank, states);
    }

    fn is_right(&self, rank: RankId, step: u64, state: &State) -> bool {
        let states = self.undisturbed.get(&rank);
        states.and_then(|states| states.get(step as usize)) == Some(state)
    }

    /// A start goes on from this state.
    pub fn restored(&self, rank: RankId, step: u64, state: &State) -> Verdict {
        demand(self.is_right(rank, step, state), PROPERTY, || {
            format!("{rank:?} goes on from turn {step} with a state that it never had")
        })
    }

    /// A rank has done its work, and the book has that.
    pub fn delivered(&mut self, rank: RankId, start: u64, step: u64, state: &State) -> Verdict {
        let last = self.undisturbed.get(&rank).map_or(0, |states| states.len() as u64 - 1);
        demand(step == last && self.is_right(rank, step, state), PROPERTY, || {
            format!("{rank:?} ends after {step} of {last} turns, or with a wrong result")
        })?;
        let before = *self.delivered.entry(rank).or_insert(start);
        demand(before == start, PROPERTY, || {
            format!("starts {before} and {start} of {rank:?} both deliver its result")
        })
    }

    /// They are lost: the rank delivers them again.
    pub fn lost(&mut self, rank: RankId) {
        self.delivered.remove(&rank);
    }

    /// At the end, this is in a rank's last image; `None`: it cannot be read.
    pub fn found(&self, rank: RankId, found: Option<&(u64, State)>) -> Verdict {
        let last = self.undisturbed.get(&rank).map_or(0, |states| states.len() as u64 - 1);
        let right = found.is_some_and(|(step, it)| *step == last && self.is_right(rank, *step, it));
        demand(right, PROPERTY, || {
            format!("the last image of {rank:?} does not have its result, but {found:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_state_and_a_second_result_are_seen() {
        let (rank, state) = ((1, 0), |word| vec![vec![word]]);
        let mut results = Results::default();
        results.expect(rank, vec![state(5), state(6), state(7)]);
        results.restored(rank, 1, &state(6)).unwrap();
        assert!(results.restored(rank, 1, &state(7)).is_err());
        assert!(results.restored(rank, 3, &state(7)).is_err());
        assert!(results.delivered(rank, 1, 1, &state(6)).is_err(), "a turn is missing");
        results.delivered(rank, 1, 2, &state(7)).unwrap();
        results.delivered(rank, 1, 2, &state(7)).unwrap();
        assert!(results.delivered(rank, 2, 2, &state(7)).is_err(), "another start delivers, too");
        results.found(rank, Some(&(2, state(7)))).unwrap();
        assert!(results.found(rank, Some(&(2, state(6)))).is_err());
        assert!(results.found(rank, None).is_err());
    }
}
