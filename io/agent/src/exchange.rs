//! Logs and bells of ranks, handed on to those who read and ring them.

use std::collections::BTreeMap;

use wire::agents::{Purpose, Route};
use wire::rank::{Frame, Log};

/// A rank, by its job's number and its own.
pub(crate) type RankId = (u64, u32);

/// A word for a rank, with a file (`F`).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Delivery<F> {
    pub to: RankId,
    pub frame: Frame,
    pub file: F,
}

/// A log of a sender's start.
#[derive(Debug)]
struct Held<F> {
    start: u64,
    file: F,
    /// Its sender runs here. Else it is a mirror.
    own: bool,
}

/// All logs and bells that are known here.
#[derive(Debug)]
pub(crate) struct Exchange<F> {
    logs: BTreeMap<Route, Held<F>>,
    /// Messages of starts that are over, kept for their receivers; and up to which message.
    kept: BTreeMap<Route, (Held<F>, u64)>,
    /// By reader: its start, and its bell.
    bells: BTreeMap<RankId, (u64, F)>,
}

impl<F> Default for Exchange<F> {
    fn default() -> Exchange<F> {
        Exchange { logs: BTreeMap::new(), kept: BTreeMap::new(), bells: BTreeMap::new() }
    }
}

impl<F: Clone> Exchange<F> {
    /// A sender has a log of messages to another rank. One of a start that is over changes nothing.
    pub fn log(&mut self, route: Route, start: u64, file: F, own: bool) -> Vec<Delivery<F>> {
        let Route { job, from, to } = route;
        // A mirror of what is here is none.
        let counts =
            |known: &Held<F>| known.start < start || known.start == start && own >= known.own;
        if self.logs.get(&route).is_some_and(|known| !counts(known)) {
            return Vec::new();
        }
        self.logs.insert(route, Held { start, file: file.clone(), own });
        // A receiver that is not here yet gets it when it comes.
        let Some((_, bell)) = self.bells.get(&(job, to)) else { return Vec::new() };
        let rings = Delivery { to: (job, from), frame: Frame::Bell(to), file: bell.clone() };
        vec![delivery((job, to), from, start, file), rings]
    }

    /// Messages of a sender's earlier start were kept, up to this one: the receiver reads them before
    /// those of a later start. `own`: they are on a disk here.
    pub fn kept(
        &mut self,
        route: Route,
        (start, reaches): (u64, u64),
        file: F,
        own: bool,
    ) -> Vec<Delivery<F>> {
        let Route { job, from, to } = route;
        if self.kept.get(&route).is_some_and(|(_, its)| *its >= reaches) {
            return Vec::new();
        }
        self.kept.insert(route, (Held { start, file: file.clone(), own }, reaches));
        // One that has a log of a later start needs them no more.
        let later = self.logs.get(&route).is_some_and(|log| log.start > start);
        let reads = self.bells.contains_key(&(job, to)) && !later;
        reads.then(|| delivery((job, to), from, start, file)).into_iter().collect()
    }

    /// This start of a reader is over.
    pub fn ended(&mut self, rank: RankId, start: u64) {
        if self.bells.get(&rank).is_some_and(|(its, _)| *its == start) {
            self.bells.remove(&rank);
        }
    }

    /// A reader has a bell: it gets the logs that there are, and their writers get its bell.
    pub fn bell(&mut self, (job, to): RankId, start: u64, file: F) -> Vec<Delivery<F>> {
        if self.bells.get(&(job, to)).is_some_and(|(known, _)| *known > start) {
            return Vec::new();
        }
        self.bells.insert((job, to), (start, file.clone()));
        let its = |route: &Route| (route.job, route.to) == (job, to);
        let deliver = |(Route { from, .. }, log): (&Route, &Held<F>)| {
            delivery((job, to), *from, log.start, log.file.clone())
        };
        let ring =
            |from: u32| Delivery { to: (job, from), frame: Frame::Bell(to), file: file.clone() };
        // Kept messages come before those of a later start.
        let kept = self.kept.iter().filter(|(route, _)| its(route));
        let logs = self.logs.iter().filter(|(route, _)| its(route));
        let kept = kept.map(|(route, (log, _))| deliver((route, log)));
        kept.chain(logs.flat_map(|it| [deliver(it), ring(it.0.from)])).collect()
    }

    /// This start of a rank has sent messages, or may have got some.
    pub fn has_talked(&self, (job, rank): RankId, start: u64) -> bool {
        let its = |(route, log): (&Route, &Held<F>)| {
            let sent = route.from == rank && log.start == start && log.own;
            route.job == job && (sent || route.to == rank)
        };
        self.logs.iter().any(its) || self.kept.keys().any(|it| (it.job, it.to) == (job, rank))
    }

    /// The logs of senders here, with their starts; and what was kept here of earlier ones.
    pub fn own_logs(&self) -> impl Iterator<Item = (Route, Purpose, u64, F)> + '_ {
        let kept = self.kept.iter().filter(|(_, (log, _))| log.own);
        let kept = kept.map(|(route, (log, reaches))| (route, Purpose::Kept(*reaches), log));
        let logs = self.logs.iter().filter(|(_, log)| log.own);
        let all = kept.chain(logs.map(|(route, log)| (route, Purpose::Read, log)));
        all.map(|(route, purpose, log)| (*route, purpose, log.start, log.file.clone()))
    }

    /// A sender of this route is here.
    pub fn has_own(&self, route: &Route) -> bool {
        self.logs.get(route).is_some_and(|log| log.own)
    }

    /// Logs of starts before this one of each sender count no more.
    pub fn drop_before(&mut self, since: impl Fn(RankId) -> u64) {
        let counts = |route: &Route, log: &Held<F>| log.start >= since((route.job, route.from));
        self.logs.retain(|route, log| counts(route, log));
        self.kept.retain(|route, (log, _)| counts(route, log));
    }

    /// Senders that run elsewhere by now have no logs here.
    pub fn drop_moved(&mut self, moved: impl Fn(RankId) -> bool) {
        self.logs.retain(|route, log| !(log.own && moved((route.job, route.from))));
    }

    /// Only these jobs go on.
    pub fn keep(&mut self, jobs: impl Fn(u64) -> bool) {
        self.logs.retain(|route, _| jobs(route.job));
        self.kept.retain(|route, _| jobs(route.job));
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
        let route = |from, to| Route { job: 7, from, to };
        assert_eq!(exchange.bell((7, 0), 1, 'a'), []);
        assert_eq!(exchange.log(route(0, 1), 1, 'b', true), [], "rank 1 has yet to come");
        assert_eq!(exchange.bell((7, 1), 1, 'c'), [log(1, 0, 1, 'b'), bell(0, 1, 'c')]);
        let both = exchange.log(route(1, 0), 1, 'd', false);
        assert_eq!(both, [log(0, 1, 1, 'd'), bell(1, 0, 'a')]);
        // Rank 0 starts again.
        assert_eq!(exchange.bell((7, 0), 2, 'e'), [log(0, 1, 1, 'd'), bell(1, 0, 'e')]);
        let both = exchange.log(route(0, 1), 2, 'f', true);
        assert_eq!(both, [log(1, 0, 2, 'f'), bell(0, 1, 'c')]);
        assert_eq!(exchange.log(route(0, 1), 1, 'b', true), [], "its first start is over");
        assert_eq!(exchange.bell((7, 0), 1, 'a'), []);
        assert!(exchange.has_talked((7, 0), 2) && exchange.has_talked((7, 1), 1));
        assert!(!exchange.has_talked((7, 2), 1) && !exchange.has_talked((8, 0), 2));
        assert_eq!(exchange.own_logs().collect::<Vec<_>>(), [(route(0, 1), Purpose::Read, 2, 'f')]);
        exchange.drop_moved(|rank| rank == (7, 0));
        assert!(!exchange.has_own(&route(0, 1)));
        exchange.keep(|job| job != 7);
        assert_eq!(exchange.bell((7, 1), 2, 'g'), []);
    }

    #[test]
    fn what_was_kept_comes_before_what_a_later_start_sends() {
        let mut exchange = Exchange::default();
        let log = |start, file| delivery((7, 1), 0, start, file);
        let bell = |file| Delivery { to: (7, 0), frame: Frame::Bell(1), file };
        let route = Route { job: 7, from: 0, to: 1 };
        let kept = |exchange: &mut Exchange<char>, start, reaches, file| {
            exchange.kept(route, (start, reaches), file, false)
        };
        assert_eq!(kept(&mut exchange, 2, 9, 'a'), [], "its receiver has yet to come");
        assert_eq!(kept(&mut exchange, 3, 7, 'b'), [], "another one has more");
        assert!(exchange.has_talked((7, 1), 1));
        assert_eq!(exchange.log(route, 4, 'c', true), []);
        assert_eq!(exchange.bell((7, 1), 1, 'd'), [log(2, 'a'), log(4, 'c'), bell('d')]);
        exchange.ended((7, 1), 1);
        assert_eq!(kept(&mut exchange, 3, 10, 'b'), []);
        assert_eq!(exchange.bell((7, 1), 2, 'e'), [log(3, 'b'), log(4, 'c'), bell('e')]);
        assert_eq!(kept(&mut exchange, 3, 11, 'f'), [], "it has a log of a later start");
        assert_eq!(kept(&mut exchange, 5, 12, 'f'), [log(5, 'f')]);
        // No start before counts any more.
        exchange.drop_before(|_| 6);
        assert_eq!(exchange.bell((7, 1), 3, 'g'), []);
        exchange.kept(route, (6, 1), 'h', true);
        let own: Vec<_> = exchange.own_logs().collect();
        assert_eq!(own, [(route, Purpose::Kept(1), 6, 'h')]);
        exchange.keep(|job| job != 7);
        assert_eq!(exchange.own_logs().count(), 0);
    }
}
