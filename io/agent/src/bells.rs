//! The bells of ranks, for all threads that have something for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use memlog::Bell;

use crate::exchange::RankId;

/// The bells of ranks here, for the threads to which other agents' couriers come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bells(Arc<Mutex<BTreeMap<RankId, Bell>>>);

impl Bells {
    pub fn ring(&self, ranks: &BTreeSet<RankId>) {
        if !ranks.is_empty() {
            let bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ranks.iter().filter_map(|rank| bells.get(rank)).for_each(Bell::ring);
        }
    }

    pub fn set(&self, rank: RankId, bell: Option<Bell>) {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bell.map(|bell| bells.insert(rank, bell));
    }

    pub fn keep(&self, jobs: impl Fn(u64) -> bool) {
        let mut bells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|(job, _), _| jobs(*job));
    }
}
