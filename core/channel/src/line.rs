//! States of all ranks that fit together, for ranks that all go back.

use alloc::vec;
use alloc::vec::Vec;

use wire::rank::Counts;

const NONE: Counts = Counts::NONE;

/// The newest states of all ranks that fit together: nobody has taken what nobody has sent, and whoever
/// needs a message finds it in a log. `states`: of each rank, the newest first, each with its channels
/// to all ranks. Returns the place of each rank's state; as many as it has: it begins anew.
///
/// All begin anew if nothing else fits, so there is always an answer. It is the only newest one: a
/// state that does not fit now does not fit if others go back further.
pub fn line(states: &[Vec<Vec<Counts>>]) -> Vec<usize> {
    let counts = |place: &[usize], rank: usize, other: usize| {
        let state = states[rank].get(place[rank]);
        state.and_then(|state| state.get(other)).copied().unwrap_or(NONE)
    };
    let mut places = vec![0; states.len()];
    loop {
        let mut back = None;
        for rank in 0..states.len() {
            for other in 0..states.len() {
                let (its, others) = (counts(&places, rank, other), counts(&places, other, rank));
                if its.taken > others.sent {
                    back = Some(rank);
                } else if others.first > its.below + 1 {
                    back = Some(other);
                }
            }
        }
        match back {
            Some(rank) => places[rank] += 1,
            None => return places,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::Random;

    use super::*;

    /// Ranks that send, take, let go and save at random: their states, the newest first.
    fn history(random: &mut Random) -> Vec<Vec<Vec<Counts>>> {
        let ranks = 2 + random.below(2) as usize;
        let mut now = vec![vec![NONE; ranks]; ranks];
        let mut states = vec![Vec::new(); ranks];
        for _ in 0..random.below(60) {
            let (rank, other) =
                (random.below(ranks as u64) as usize, random.below(ranks as u64) as usize);
            match random.below(4) {
                0 => now[rank][other].sent += 1,
                1 if now[rank][other].below < now[other][rank].sent => {
                    now[rank][other].below += 1;
                    now[rank][other].taken = now[rank][other].below;
                }
                2 => now[rank][other].first = now[other][rank].below + 1,
                _ => states[rank].insert(0, now[rank].clone()),
            }
        }
        states
    }

    fn fits(states: &[Vec<Vec<Counts>>], places: &[usize]) -> bool {
        let counts = |rank: usize, other: usize| {
            states[rank].get(places[rank]).map_or(NONE, |state: &Vec<Counts>| state[other])
        };
        let mut pairs =
            (0..states.len()).flat_map(|rank| (0..states.len()).map(move |it| (rank, it)));
        pairs.all(|(rank, other)| {
            let (its, others) = (counts(rank, other), counts(other, rank));
            its.taken <= others.sent && others.first <= its.below + 1
        })
    }

    #[test]
    fn no_newer_states_fit_together() {
        let mut random = Random::new(7);
        for _ in 0..3_000 {
            let states = history(&mut random);
            let places = line(&states);
            assert!(fits(&states, &places), "{states:?}: {places:?}");
            // All others that fit are older in each rank.
            let mut other = vec![0; states.len()];
            loop {
                if fits(&states, &other) {
                    let newer = other.iter().zip(&places).any(|(other, place)| other < place);
                    assert!(!newer, "{states:?}: {other:?} fits, and {places:?} was chosen");
                }
                let Some(rank) = (0..other.len()).find(|rank| other[*rank] < states[*rank].len())
                else {
                    break;
                };
                other[rank] += 1;
                other[..rank].fill(0);
            }
        }
    }
}
