//! Ranks that all go back, because one of them cannot go on alone.

use alloc::vec::Vec;

use channel::State;
use wire::Time;

use crate::{Generation, Job, MAX_GROUP, Rank, Rollback};

impl Job {
    /// All ranks go back to the newest states that fit together. Whether there are some: all that was
    /// done is given up only if a user says so.
    pub(crate) fn regroup(&mut self, now: Time, or_begin_anew: bool) -> bool {
        let mut together = self.together(|rank| rank.images.restorable().collect());
        if self.gives_up(&together) {
            // The holders of others may come back.
            let whole = self.together(|rank| rank.images.whole().collect());
            if !self.gives_up(&whole) {
                together = whole;
            }
        }
        if self.gives_up(&together) && !or_begin_anew {
            return false;
        }
        for (rank, generation) in self.ranks.iter_mut().zip(together) {
            rank.go_back(now, generation);
        }
        true
    }

    /// A rank would begin anew that has saved something.
    fn gives_up(&self, together: &[Option<u64>]) -> bool {
        let saved = |rank: &Rank| rank.images.generations().next().is_some();
        self.ranks.iter().zip(together).any(|(rank, state)| state.is_none() && saved(rank))
    }

    /// States that fit together are kept until newer ones do which have all their copies, of a job whose
    /// ranks save at the same turns.
    pub(crate) fn keep_together(&mut self) {
        if self.spec.recovery == Rollback::Group {
            let together = self.together(|rank| rank.images.safe().collect());
            for (rank, generation) in self.ranks.iter_mut().zip(together) {
                rank.images.keep_from(generation.unwrap_or(0));
            }
        }
    }

    /// The newest state of each rank that fits to those of all others; `None`: its beginning.
    fn together<'a>(
        &'a self,
        states: impl Fn(&'a Rank) -> Vec<Vec<&'a Generation>>,
    ) -> Vec<Option<u64>> {
        // Without its channels nobody knows whether a state fits.
        let all_known = self.ranks.len() <= MAX_GROUP as usize;
        let states = |rank| -> (Vec<u64>, Vec<State<'_>>) {
            let heads = states(rank).into_iter().map(|state| state[0]);
            let known = heads.filter(|it| all_known || !it.talks);
            let state = |it: &'a Generation| State { start: it.place.start, counts: &it.counts };
            known.map(|it| (it.place.generation, state(it))).unzip()
        };
        let (numbers, states): (Vec<Vec<u64>>, Vec<_>) = self.ranks.iter().map(states).unzip();
        let places = channel::line(&states, channel::Planted::default());
        numbers.iter().zip(places).map(|(numbers, place)| numbers.get(place).copied()).collect()
    }
}
