//! Logs and bells of ranks, handed on to those who read and ring them.

use std::collections::BTreeMap;

use wire::rank::{Frame, Log};

/// A rank, by its job's number and its own.
pub(crate) type RankId = (u64, u32);

/// What a rank is to get. `F`: a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delivery<F> {
    pub to: RankId,
    pub frame: Frame,
    pub file: F,
}

/// All logs and bells that are known here.
#[derive(Debug)]
pub(crate) struct Exchange<F> {
    /// By job, sender and receiver: the sender's start, and its log.
    logs: BTreeMap<(u64, u32, u32), (u64, F)>,
    /// By reader: its start, and its bell.
    bells: BTreeMap<RankId, (u64, F)>,
}

impl<F> Default for Exchange<F> {
    fn default() -> Exchange<F> {
        Exchange { logs: BTreeMap::new(), bells: BTreeMap::new() }
    }
}

impl<F: Clone> Exchange<F> {
    /// A sender has a log of messages to another rank. One of a start that is over changes nothing.
    pub fn log(&mut self, (job, from): RankId, to: u32, start: u64, file: F) -> Vec<Delivery<F>> {
        let known = self.logs.get(&(job, from, to)).is_some_and(|(known, _)| *known > start);
        if known {
            return Vec::new();
        }
        self.logs.insert((job, from, to), (start, file.clone()));
        // A receiver that is not here yet gets it when it comes.
        let Some((_, bell)) = self.bells.get(&(job, to)) else { return Vec::new() };
        let rings = Delivery { to: (job, from), frame: Frame::Bell(to), file: bell.clone() };
        vec![delivery((job, to), from, start, file), rings]
    }

    /// A reader has a bell: it gets the logs that there are, and their writers get its bell.
    pub fn bell(&mut self, (job, to): RankId, start: u64, file: F) -> Vec<Delivery<F>> {
        if self.bells.get(&(job, to)).is_some_and(|(known, _)| *known > start) {
            return Vec::new();
        }
        self.bells.insert((job, to), (start, file.clone()));
        let logs = self.logs.range((job, 0, 0)..=(job, u32::MAX, u32::MAX));
        let logs = logs.filter(|((_, _, receiver), _)| *receiver == to);
        let both = logs.flat_map(|((_, from, _), (start, log))| {
            let rings =
                Delivery { to: (job, *from), frame: Frame::Bell(to), file: file.clone() };
            [delivery((job, to), *from, *start, log.clone()), rings]
        });
        both.collect()
    }

    /// This start of a rank has sent messages.
    pub fn has_sent(&self, (job, from): RankId, start: u64) -> bool {
        let mut logs = self.logs.range((job, from, 0)..=(job, from, u32::MAX));
        logs.any(|(_, (its, _))| *its == start)
    }

    /// Only these jobs go on.
    pub fn keep(&mut self, jobs: impl Fn(u64) -> bool) {
        self.logs.retain(|(job, ..), _| jobs(*job));
        self.bells.retain(|(job, _), _| jobs(*job));
    }
}

fn delivery<F>(to: RankId, from: u32, start: u64, file: F) -> Delivery<F> {
    Delivery { to, frame: Frame::Log(Log { rank: from, start }), file }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_later_gets_what_is_there() {
        let mut exchange = Exchange::default();
        let log = |to, from, start, file| delivery((7, to), from, start, file);
        let bell = |to, rank, file| Delivery { to: (7, to), frame: Frame::Bell(rank), file };
        assert_eq!(exchange.bell((7, 0), 1, 'a'), []);
        assert_eq!(exchange.log((7, 0), 1, 1, 'b'), [], "rank 1 has yet to come");
        assert_eq!(exchange.bell((7, 1), 1, 'c'), [log(1, 0, 1, 'b'), bell(0, 1, 'c')]);
        assert_eq!(exchange.log((7, 1), 0, 1, 'd'), [log(0, 1, 1, 'd'), bell(1, 0, 'a')]);
        // Rank 0 starts again.
        assert_eq!(exchange.bell((7, 0), 2, 'e'), [log(0, 1, 1, 'd'), bell(1, 0, 'e')]);
        assert_eq!(exchange.log((7, 0), 1, 2, 'f'), [log(1, 0, 2, 'f'), bell(0, 1, 'c')]);
        assert_eq!(exchange.log((7, 0), 1, 1, 'b'), [], "its first start is over");
        assert_eq!(exchange.bell((7, 0), 1, 'a'), []);
        assert!(exchange.has_sent((7, 0), 2) && !exchange.has_sent((7, 0), 1));
        assert!(!exchange.has_sent((7, 2), 1));
        exchange.keep(|job| job != 7);
        assert_eq!(exchange.bell((7, 1), 2, 'g'), []);
    }
}
