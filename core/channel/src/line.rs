//! States of all ranks that fit together, for ranks that all go back.

use alloc::vec;
use alloc::vec::Vec;

use wire::rank::Counts;

use crate::bug::{Bug, Planted};

const NONE: Counts = Counts::NONE;

/// A state of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State<'a> {
    /// The start that has saved it.
    pub start: u64,
    /// Its channels to all ranks. None: it has no messages.
    pub counts: &'a [Counts],
}

/// States of all ranks that fit together, as new as can be: nobody has taken what nobody has sent, and
/// whoever needs a message finds it in a log. `states`: of each rank, the newest first. Returns the
/// place of each rank's state; as many as it has: it begins anew.
///
/// All begin anew if nothing else fits, so there is always an answer.
pub fn line(states: &[Vec<State<'_>>], planted: Planted) -> Vec<usize> {
    let mut places = vec![0; states.len()];
    let back = |places: &[usize]| {
        let ranks = 0..states.len();
        let pairs = ranks.clone().flat_map(|rank| ranks.clone().map(move |other| (rank, other)));
        let mut pairs = pairs.filter(|(rank, other)| rank != other);
        pairs.find_map(|(rank, other)| {
            let start = states[other].get(places[other]).map_or(0, |state| state.start);
            let counts = [(rank, other), (other, rank)].map(|(rank, other)| {
                let state = states[rank].get(places[rank]);
                state.and_then(|state| state.counts.get(other)).copied().unwrap_or(NONE)
            });
            let start = if planted.is(Bug::FitByNumbers) { 0 } else { start };
            Some(match misfit(counts, start)? {
                Misfit::Receiver => rank,
                Misfit::Sender => other,
            })
        })
    };
    while let Some(rank) = back(&places) {
        places[rank] += 1;
    }
    places
}

/// The one that is to go back further.
enum Misfit {
    Receiver,
    Sender,
}

/// Whether a receiver's and a sender's states do not fit together. `start`: that which has saved the
/// sender's.
fn misfit([its, others]: [Counts; 2], start: u64) -> Option<Misfit> {
    if its.taken > others.sent {
        return Some(Misfit::Receiver);
    }
    if others.first > its.below + 1 {
        return Some(Misfit::Sender);
    }
    // A sender that goes on alone may send others than before. Until it has gone on from what was
    // taken, only the checksums show it, where both are as far.
    let [_, below] = its.checks;
    let same = its.below == others.sent && others.checks[0] == below;
    (its.taken > 0 && start > its.start && !same).then_some(Misfit::Sender)
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
                    now[rank][other].start = 1;
                }
                2 => now[rank][other].first = now[other][rank].below + 1,
                _ => states[rank].insert(0, now[rank].clone()),
            }
        }
        states
    }

    fn fits(states: &[Vec<Vec<Counts>>], places: &[usize]) -> bool {
        let counts = |rank: usize, other: usize| {
            states[rank].get(places[rank]).map_or(NONE, |state| state[other])
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
            let mut borrowed: Vec<Vec<State<'_>>> = Vec::new();
            for rank in &states {
                borrowed.push(rank.iter().map(|counts| State { start: 1, counts }).collect());
            }
            let places = line(&borrowed, Planted::default());
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

    /// Rank 0 has saved in its first start, and in its second one, which sends others, or the same.
    #[test]
    fn what_a_later_start_has_sent_fits_to_who_has_seen_that_it_is_the_same() {
        let sender = |sent, check| [NONE, Counts { sent, checks: [check, 0], ..NONE }];
        let receiver = |taken, start, check| {
            [Counts { below: taken, taken, start, checks: [0, check], ..NONE }, NONE]
        };
        let (later, first, oldest) = (sender(7, 77), sender(5, 5), receiver(4, 1, 4));
        let fits = |newest: [Counts; 2]| {
            let sent = vec![State { start: 2, counts: &later }, State { start: 1, counts: &first }];
            let took = [&newest, &oldest].map(|counts| State { start: 1, counts });
            line(&[sent, took.to_vec()], Planted::default())
        };
        assert_eq!(fits(receiver(7, 1, 7)), [1, 1], "it has taken others");
        assert_eq!(fits(receiver(7, 1, 77)), [0, 0], "the same");
        assert_eq!(fits(receiver(6, 1, 6)), [1, 1], "nobody knows");
        assert_eq!(fits(receiver(6, 2, 6)), [0, 0], "it has seen that by later ones");
        assert_eq!(fits(receiver(0, 0, 0)), [0, 0], "it has taken none");
    }
}
