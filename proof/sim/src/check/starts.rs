//! One start of each rank counts at a time, at one node in its present life.
//!
//! Source: docs/protocol/jobs.md, "The book": late words are void by their numbers. A rank that
//! nobody could end commits nothing, and ends nothing.

use std::collections::{BTreeMap, BTreeSet};

use image::Place;
use wire::Member;

use super::{Verdict, demand};

const PROPERTY: &str = "one start counts";

/// A rank: its job's number, and its own.
pub type RankId = (u64, u32);

/// The starts that were ordered and are over.
#[derive(Clone, Default)]
pub struct Starts {
    ranks: BTreeMap<RankId, Known>,
    /// Lives of nodes that were struck out.
    over: BTreeSet<Member>,
}

#[derive(Clone, Default)]
struct Known {
    last: u64,
    runs: Option<Member>,
    finished: bool,
}

impl Starts {
    fn is_over(&self, node: Member) -> bool {
        self.over.iter().any(|over| over.node == node.node && *over >= node)
    }

    /// A start is ordered.
    pub fn started(&mut self, rank: RankId, start: u64, node: Member) -> Verdict {
        demand(!self.is_over(node), PROPERTY, || format!("a start at {node}, which is gone"))?;
        let known = self.ranks.entry(rank).or_default();
        let free = start > known.last && known.runs.is_none() && !known.finished;
        demand(free, PROPERTY, || {
            format!("start {start} of {rank:?} at {node}, and start {} counts", known.last)
        })?;
        (known.last, known.runs) = (start, Some(node));
        Ok(())
    }

    /// The start that counts.
    pub fn runs(&self, rank: RankId) -> Option<u64> {
        self.ranks.get(&rank).filter(|known| known.runs.is_some()).map(|known| known.last)
    }

    /// The book takes a start's end.
    pub fn ended(&mut self, rank: RankId, start: u64, finished: bool) -> Verdict {
        let known = self.ranks.entry(rank).or_default();
        let counts = known.runs.take().is_some() && known.last == start && !known.finished;
        known.finished |= finished;
        demand(counts, PROPERTY, || format!("start {start} of {rank:?} ends, and does not count"))
    }

    /// Its results are lost: it goes on once more.
    pub fn reopened(&mut self, rank: RankId) {
        self.ranks.entry(rank).or_default().finished = false;
    }

    /// The book takes an image.
    pub fn committed(&mut self, place: Place, holder: Member) -> Verdict {
        let known = self.ranks.entry((place.job, place.rank)).or_default();
        let counts = known.runs == Some(holder) && known.last == place.start;
        demand(counts, PROPERTY, || format!("{place} counts, and its start is over"))
    }

    /// A node's word of its images counts.
    pub fn held(&self, holder: Member) -> Verdict {
        demand(!self.is_over(holder), PROPERTY, || format!("{holder} is believed, and is gone"))
    }

    /// A life of a node is struck out.
    pub fn gone(&mut self, node: Member) {
        self.over.insert(node);
        for known in self.ranks.values_mut() {
            known.runs.take_if(|at| at.node == node.node && *at <= node);
        }
    }

    /// A life of a node is there, or is there again.
    pub fn introduced(&mut self, node: Member) -> Verdict {
        self.over.remove(&node);
        demand(!self.is_over(node), PROPERTY, || format!("{node} comes, and a later life is gone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    fn node(number: u32, life: u64) -> Member {
        Member { node: NodeId(number), incarnation: Incarnation(life) }
    }

    #[test]
    fn a_second_start_and_an_old_image_are_seen() {
        let (rank, one, two) = ((1, 0), node(1, 1), node(2, 1));
        let place = |start| Place { job: 1, rank: 0, start, generation: 1 };
        let mut starts = Starts::default();
        starts.started(rank, 1, one).unwrap();
        starts.committed(place(1), one).unwrap();
        assert!(starts.committed(place(1), two).is_err());
        assert!(starts.started(rank, 2, two).is_err(), "the first one runs");
        starts.gone(one);
        assert!(starts.committed(place(1), one).is_err());
        assert!(starts.held(one).is_err());
        assert!(starts.started(rank, 1, two).is_err(), "its number was used");
        assert!(starts.started(rank, 2, one).is_err(), "the node is gone");
        starts.introduced(one).unwrap();
        starts.started(rank, 2, one).unwrap();
        starts.ended(rank, 2, true).unwrap();
        assert!(starts.ended(rank, 2, true).is_err(), "it finishes once");
    }
}
