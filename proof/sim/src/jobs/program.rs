//! The program of a rank: each turn folds one of its arrays, by all that came before.

use super::options::JobPlan;
use crate::check::results::State;
use crate::check::starts::RankId;
use crate::trace::mix;

/// The arrays of a rank that has yet to begin.
pub fn begin(plan: &JobPlan, (_, rank): RankId) -> State {
    let word = |array: usize, word: usize| mix(u64::from(rank), (array * 100 + word) as u64);
    (0..plan.arrays).map(|array| (0..plan.words).map(|it| word(array, it)).collect()).collect()
}

/// The turn after so many. Returns the array that it has changed.
pub fn turn(state: &mut State, step: u64) -> usize {
    let (array, many) = ((step % state.len() as u64) as usize, state.len());
    let other = state[(array + 1) % many][0];
    for word in &mut state[array] {
        *word = mix(mix(*word, other), step);
    }
    array
}

/// All states of an undisturbed rank, one for each number of turns.
pub fn undisturbed(plan: &JobPlan, rank: RankId) -> Vec<State> {
    let mut states = vec![begin(plan, rank)];
    for step in 0..plan.turns {
        let mut state = states[step as usize].clone();
        turn(&mut state, step);
        states.push(state);
    }
    states
}
