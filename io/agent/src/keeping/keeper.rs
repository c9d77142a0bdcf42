//! Has logs of ranks here on the disk: a thread that is a reader of these logs, as a courier is. What
//! has come meanwhile goes to the disk at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use memlog::{Bell, Kept, Reader};
use wire::Member;
use wire::agents::{Kept as Reached, MAX_PIECE, Route};

use super::shelf::{Shelf, Ticket};
use crate::bells::Bells;
use crate::event::Event;
use crate::inbox::Inbox;

/// Messages wait for no longer than this, also where nobody asks for them to be kept.
const SOON: Duration = Duration::from_millis(100);

/// It sleeps no longer than this where it has no logs.
const FAR: Duration = Duration::from_secs(1);

/// Bytes of a log that are taken at a time, so that no other one waits long.
const ROUND: u64 = 1 << 20;

/// A log that is to be kept.
#[derive(Debug)]
pub(super) struct Task {
    pub route: Route,
    pub start: u64,
    pub log: Arc<File>,
    pub kept: Kept,
    pub ticket: Ticket,
    /// The receiver sees what is kept. Else it reads the sender's log, and the sender hears how far it
    /// is kept.
    pub first: bool,
    /// Other agents that are to have it.
    pub partners: BTreeSet<Member>,
}

/// Something for the thread.
#[derive(Debug)]
pub(super) enum Parcel {
    Keep(Box<Task>),
    /// These agents are to have a log as well.
    Partners(Route, BTreeSet<Member>),
    /// One of them has it so far.
    Reached(Member, Reached),
    /// The bells of those who carry logs.
    Carriers(Vec<Arc<Bell>>),
    /// Its sender is here no more.
    Close(Route),
}

/// The way to the thread.
pub(super) type Keeper = Inbox<Parcel>;

impl Keeper {
    pub fn start(shelf: Shelf, bells: Bells, events: Sender<Event>) -> io::Result<Keeper> {
        let (keeper, parcels) = Inbox::new()?;
        let mut desk = Desk {
            parcels,
            bell: keeper.bell(),
            bells,
            shelf,
            events,
            carriers: Vec::new(),
            logs: BTreeMap::new(),
            looked: Instant::now(),
        };
        let body = move || while desk.round() {};
        thread::Builder::new().name("steadfast keeper".into()).spawn(body)?;
        Ok(keeper)
    }
}

/// A log, and how far it is kept.
struct Log {
    start: u64,
    reader: Reader,
    kept: Kept,
    ticket: Ticket,
    first: bool,
    /// How far each other agent has it on its disk.
    partners: BTreeMap<Member, u64>,
    /// All before this byte is on all disks, and was shown.
    shown: u64,
}

impl Log {
    /// There is something to keep. Where the receiver does not wait for it: when the sender asks, or
    /// soon.
    fn is_due(&self, soon: bool) -> bool {
        self.reader.has_more() && (self.first || soon || self.reader.is_asked())
    }

    /// Takes what is there.
    fn read(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        let begun = self.reader.place();
        while self.reader.place() - begun < ROUND {
            let next = self.reader.copy_next(MAX_PIECE, piece).map_err(io::Error::other)?;
            let released = match next {
                Some((_, released)) => released,
                None => self.reader.released().map_err(io::Error::other)?,
            };
            self.kept.release(released)?;
            let Some((at, _)) = next else { break };
            self.kept.push(at, piece)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.kept.is_dirty() { self.kept.flush().map(drop) } else { Ok(()) }
    }

    /// Shows what all disks have. True: there is more than before.
    fn show(&mut self, shelf: &Shelf) -> bool {
        let others = self.partners.values().copied().min().unwrap_or(u64::MAX);
        let until = self.kept.whole().min(others);
        if until <= self.shown {
            return false;
        }
        self.shown = until;
        shelf.reaches(self.ticket, self.kept.show(until));
        true
    }
}

/// The thread's own.
struct Desk {
    parcels: Receiver<Parcel>,
    bell: Arc<Bell>,
    bells: Bells,
    shelf: Shelf,
    events: Sender<Event>,
    carriers: Vec<Arc<Bell>>,
    logs: BTreeMap<Route, Log>,
    /// When all logs were looked at.
    looked: Instant,
}

impl Desk {
    /// Keeps what there is, and sleeps where there is nothing. False: nobody brings any more.
    fn round(&mut self) -> bool {
        if !self.take_parcels() {
            return false;
        }
        let soon = self.looked.elapsed() >= SOON;
        if soon {
            self.looked = Instant::now();
        }
        let (mut due, mut bad, mut piece) = (Vec::new(), Vec::new(), Vec::new());
        for (route, log) in self.logs.iter_mut().filter(|(_, log)| log.is_due(soon)) {
            match log.read(&mut piece) {
                Ok(()) => due.push(*route),
                Err(error) => bad.push((*route, error)),
            }
        }
        if !due.is_empty() {
            // Others begin while this disk is busy.
            self.carriers.iter().for_each(|bell| bell.ring());
            for (route, log) in self.logs.iter_mut().filter(|(route, _)| due.contains(route)) {
                bad.extend(log.flush().err().map(|error| (*route, error)));
            }
        }
        for (route, error) in bad {
            tracing::error!(?route, %error, "messages are not kept any more");
            if let Some(log) = self.logs.remove(&route) {
                let _ = self.events.send(Event::NotKept(route, log.start));
            }
        }
        let mut rung = BTreeSet::new();
        for (route, log) in &mut self.logs {
            if log.show(&self.shelf) {
                rung.insert((route.job, if log.first { route.to } else { route.from }));
            }
        }
        if !rung.is_empty() {
            self.bells.ring(&rung);
            self.carriers.iter().for_each(|bell| bell.ring());
        }
        if due.is_empty() {
            self.sleep();
        }
        true
    }

    fn take_parcels(&mut self) -> bool {
        loop {
            match self.parcels.try_recv() {
                Ok(parcel) => self.take(parcel),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn take(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Keep(task) => {
                let Task { route, start, log, kept, ticket, first, partners } = *task;
                let reader = match Reader::open(&log) {
                    Ok(reader) => reader,
                    Err(error) => {
                        tracing::warn!(?route, %error, "a log cannot be read");
                        return self.events.send(Event::NotKept(route, start)).unwrap_or_default();
                    }
                };
                let partners = partners.into_iter().map(|agent| (agent, 0)).collect();
                let shown = 0;
                let log = Log { start, reader, kept, ticket, first, partners, shown };
                self.logs.insert(route, log);
            }
            Parcel::Partners(route, agents) => {
                if let Some(log) = self.logs.get_mut(&route) {
                    log.partners.retain(|agent, _| agents.contains(agent));
                    agents.iter().for_each(|agent| _ = log.partners.entry(*agent).or_default());
                }
            }
            Parcel::Reached(from, Reached { route, start, capacity, until }) => {
                let its = |log: &&mut Log| (log.start, log.kept.capacity()) == (start, capacity);
                if let Some(log) = self.logs.get_mut(&route).filter(its)
                    && let Some(reached) = log.partners.get_mut(&from)
                {
                    *reached = until.max(*reached);
                }
            }
            Parcel::Carriers(bells) => self.carriers = bells,
            Parcel::Close(route) => _ = self.logs.remove(&route),
        }
    }

    /// Sleeps until there is something, or messages have waited for long enough.
    fn sleep(&mut self) {
        let heard = self.bell.begin();
        let brought = match self.parcels.try_recv() {
            Ok(parcel) => {
                self.take(parcel);
                true
            }
            Err(TryRecvError::Empty) => false,
            // The next round ends the thread.
            Err(TryRecvError::Disconnected) => true,
        };
        if !brought && !self.logs.values().any(|log| log.is_due(false)) {
            self.bell.sleep(heard, if self.logs.is_empty() { FAR } else { SOON });
        }
        self.bell.end();
    }
}
