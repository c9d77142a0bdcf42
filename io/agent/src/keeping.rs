//! Messages on disks, for jobs that want them there (`star.txt`, section 4.2: optimistic and
//! pessimistic logging): this host's, and those of other agents. So a receiver that starts again has
//! what it needs although its sender is lost as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use job::{Assignment, Log};
use memlog::Reader;
use wire::Member;
use wire::agents::{Kept, Route};

use crate::bells::Bells;
use crate::event::Event;
use crate::exchange::RankId;

mod keeper;
mod shelf;

use keeper::{Keeper, Parcel, Task};
pub(crate) use shelf::{Shelf, Ticket};

/// A log of a rank here that is kept.
#[derive(Debug)]
struct Own {
    start: u64,
    log: Arc<File>,
    partners: BTreeSet<Member>,
}

/// The main thread's part.
#[derive(Debug)]
pub(crate) struct Keeping {
    shelf: Shelf,
    bells: Bells,
    events: Sender<Event>,
    /// It is there from the first log on.
    keeper: Option<Keeper>,
    /// Jobs with ranks here: where each keeps messages, and at how many hosts.
    jobs: BTreeMap<u64, (Log, usize)>,
    logs: BTreeMap<Route, Own>,
}

impl Keeping {
    pub fn new(shelf: Shelf, bells: Bells, events: Sender<Event>) -> Keeping {
        let (jobs, logs) = (BTreeMap::new(), BTreeMap::new());
        Keeping { shelf, bells, events, keeper: None, jobs, logs }
    }

    /// The book says which jobs have ranks here.
    pub fn assigned(&mut self, assignment: &Assignment, goes_on: impl Fn(u64) -> bool) {
        self.jobs.retain(|job, _| goes_on(*job));
        for task in &assignment.tasks {
            self.jobs.insert(task.job, (task.spec.log, usize::from(task.spec.copies)));
        }
        self.shelf.keep(goes_on);
    }

    /// Where a job's messages are kept; `None`: the book has not yet said it.
    pub fn log_of(&self, job: u64) -> Option<Log> {
        self.jobs.get(&job).map(|(log, _)| *log)
    }

    /// The other agents that keep a job's messages: as many as images have copies, by this one's order.
    fn partners(&self, job: u64, order: &[Member]) -> BTreeSet<Member> {
        let many = self.jobs.get(&job).map_or(0, |(_, copies)| copies.saturating_sub(1));
        order.iter().take(many).copied().collect()
    }

    /// Has a log kept from now on, also by other agents. Returns the memory of what is kept.
    ///
    /// # Errors
    /// The disk has no room for it.
    pub fn keep(
        &mut self,
        (route, start): (Route, u64),
        log: &Arc<File>,
        order: &[Member],
    ) -> io::Result<Arc<File>> {
        if self.logs.remove(&route).is_some() {
            self.tell(Parcel::Close(route));
        }
        let reader = Reader::open(log)?;
        let at = reader.released().map_err(io::Error::other)?;
        let (ticket, kept) = self.shelf.create(route, start, (reader.capacity(), at))?;
        if self.keeper.is_none() {
            self.keeper =
                Some(Keeper::start(self.shelf.clone(), self.bells.clone(), self.events.clone())?);
        }
        let file = Arc::new(kept.file().try_clone()?);
        let first = self.log_of(route.job) == Some(Log::Pessimistic);
        let (log, partners) = (log.clone(), self.partners(route.job, order));
        self.logs.insert(route, Own { start, log: log.clone(), partners: partners.clone() });
        self.tell(Parcel::Keep(Box::new(Task {
            route,
            start,
            log,
            kept,
            ticket,
            first,
            partners,
        })));
        Ok(file)
    }

    fn tell(&self, parcel: Parcel) {
        if let Some(keeper) = &self.keeper {
            keeper.take(parcel);
        }
    }

    /// To be rung by senders whose receivers see only what is kept, and by those that ask for it.
    pub fn bell(&self) -> Option<Arc<File>> {
        self.keeper.as_ref().map(Keeper::file)
    }

    /// The receiver of this route sees only what is kept.
    pub fn is_first(&self, route: &Route) -> bool {
        self.logs.contains_key(route) && self.log_of(route.job) == Some(Log::Pessimistic)
    }

    /// Chooses anew who keeps each log beside this agent. Logs of senders that are here no more are not
    /// kept any longer.
    pub fn choose_partners(&mut self, order: &[Member], is_here: impl Fn(&Route) -> bool) {
        let mut parcels = Vec::new();
        let gone: Vec<Route> = self.logs.keys().filter(|it| !is_here(it)).copied().collect();
        for route in gone {
            self.logs.remove(&route);
            parcels.push(Parcel::Close(route));
        }
        let wanted: Vec<BTreeSet<Member>> =
            self.logs.keys().map(|route| self.partners(route.job, order)).collect();
        for ((route, own), wanted) in self.logs.iter_mut().zip(wanted) {
            if own.partners != wanted {
                own.partners.clone_from(&wanted);
                parcels.push(Parcel::Partners(*route, wanted));
            }
        }
        parcels.into_iter().for_each(|parcel| self.tell(parcel));
    }

    /// A log cannot be kept any more: it, as its sender has it.
    pub fn give_up(&mut self, route: &Route, start: u64) -> Option<Arc<File>> {
        let its = self.logs.get(route).filter(|own| own.start == start).map(|own| own.log.clone());
        its.inspect(|_| _ = self.logs.remove(route))
    }

    /// The logs that other agents are to have as well: each with its start, and with them.
    pub fn to_carry(&self) -> impl Iterator<Item = (Route, u64, &Arc<File>, &BTreeSet<Member>)> {
        self.logs.iter().map(|(route, own)| (*route, own.start, &own.log, &own.partners))
    }

    /// The bells of those who carry them.
    pub fn carriers(&self, bells: impl Iterator<Item = Arc<memlog::Bell>>) {
        self.tell(Parcel::Carriers(bells.collect()));
    }

    /// Another agent has a log on its disk.
    pub fn reached(&self, from: Member, kept: Kept) {
        self.tell(Parcel::Reached(from, kept));
    }

    /// The logs that are kept here, with start and last message, of a rank's starts before this one.
    pub fn of(&self, rank: RankId, before: u64) -> Vec<(Route, (u64, u64), Arc<File>)> {
        self.shelf.of(rank, before)
    }

    /// Starts before this one of each sender count no more.
    pub fn drop_before(&self, since: impl Fn(RankId) -> u64) {
        self.shelf.drop_before(since);
    }
}
