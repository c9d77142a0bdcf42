//! Datagrams that are to leave at the end of the turn, and which of them leave together.

use wire::NodeSet;
use wire::limits::MAX_RING_LINKS;

use crate::sockets::{MAX_RUN, MAX_SEGMENTS};

/// By each link, the nodes that a datagram goes to.
pub(super) type Ways = [NodeSet; MAX_RING_LINKS];

/// Datagrams that are to leave at the end of the turn.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// All of them, one after the other.
    pub bytes: Vec<u8>,
    pub runs: Vec<Run>,
}

/// Datagrams that lie one after the other, go the same ways, and are of one size but for the last,
/// which may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub ways: Ways,
    pub start: usize,
    pub end: usize,
    pub size: usize,
}

impl Outgoing {
    /// Whether a datagram of this length would be more than the kernel takes at once.
    pub fn is_full_for(&self, length: usize) -> bool {
        !self.bytes.is_empty() && self.bytes.len() + length > MAX_RUN
    }

    /// Takes the datagram, not an empty one, that was written to the end of `bytes`, from `start`
    /// on.
    pub fn push(&mut self, ways: Ways, start: usize) {
        let end = self.bytes.len();
        let length = end - start;
        debug_assert!(length > 0);
        match self.runs.last_mut() {
            Some(run) if run.ways == ways && run.takes(length) => run.end = end,
            _ => self.runs.push(Run { ways, start, end, size: length }),
        }
    }
}

impl Run {
    /// Whether a further datagram of this length keeps it a run.
    fn takes(&self, length: usize) -> bool {
        let so_far = self.end - self.start;
        // A shorter one is the last.
        let even = so_far.is_multiple_of(self.size) && length <= self.size;
        even && so_far / self.size < MAX_SEGMENTS && so_far + length <= MAX_RUN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(place: usize) -> Ways {
        std::array::from_fn(|link| if link == 0 { NodeSet::one(place) } else { NodeSet::EMPTY })
    }

    fn runs(datagrams: &[(Ways, usize)]) -> Vec<(Ways, usize, usize)> {
        let mut outgoing = Outgoing::default();
        for (ways, length) in datagrams {
            let start = outgoing.bytes.len();
            outgoing.bytes.resize(start + length, 0);
            outgoing.push(*ways, start);
        }
        let mut covered = 0;
        for run in &outgoing.runs {
            assert_eq!(run.start, covered, "no datagram is lost between runs");
            covered = run.end;
            assert!(run.end - run.start <= MAX_RUN);
            assert!((run.end - run.start).div_ceil(run.size) <= MAX_SEGMENTS);
        }
        assert_eq!(covered, outgoing.bytes.len());
        outgoing.runs.iter().map(|run| (run.ways, run.end - run.start, run.size)).collect()
    }

    #[test]
    fn equal_datagrams_that_go_the_same_ways_are_a_run_and_a_shorter_one_ends_it() {
        let (all, one) = (way(0), way(1));
        let sent = [(all, 100), (all, 100), (all, 40), (all, 40), (one, 40), (one, 100)];
        assert_eq!(runs(&sent), [(all, 240, 100), (all, 40, 40), (one, 40, 40), (one, 100, 100)]);
    }

    #[test]
    fn a_run_is_not_larger_than_the_kernel_takes() {
        let all = way(0);
        assert_eq!(runs(&[(all, 10); MAX_SEGMENTS + 3]), [(all, 640, 10), (all, 30, 10)]);
        let many = runs(&[(all, 1_400); 60]);
        assert_eq!(many, [(all, 46 * 1_400, 1_400), (all, 14 * 1_400, 1_400)]);
    }
}
