//! Logs on their way: to receivers here, to those elsewhere, and to disks.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use job::{Key, Log};
use memlog::Bell;
use wire::Member;
use wire::agents::{Kept, Open, Purpose, Route, Word};
use wire::rank::Frame;

use super::Post;
use super::courier::{Carried, Parcel};
use crate::exchange::{Delivery, RankId};

impl Post {
    /// Receivers ring nobody but those who read the sender's own log.
    fn deliver(&mut self, deliveries: Vec<Delivery<Arc<File>>>) {
        for Delivery { to, frame, file } in deliveries {
            let rung = match frame {
                Frame::Bell(receiver) => self.rung_by(to, receiver),
                _ => None,
            };
            self.words.push((to, frame, Some(rung.unwrap_or(file))));
        }
    }

    /// The keeper's bell, for a sender whose receiver sees only what is kept.
    fn rung_by(&self, (job, from): RankId, to: u32) -> Option<Arc<File>> {
        let is_first = self.keeping.is_first(&Route { job, from, to });
        self.keeping.bell().filter(|_| is_first)
    }

    /// A rank here has a log of messages to another one.
    pub fn log(&mut self, key: Key, to: u32, file: File) {
        if key.start < self.since(&(key.job, key.rank)) {
            return;
        }
        let Some(kind) = self.keeping.log_of(key.job) else {
            return self.early.push((key, to, file));
        };
        let (route, file) = (Route { job: key.job, from: key.rank, to }, Arc::new(file));
        let read = match kind {
            Log::Sender => file,
            kind => self.keep((route, key.start), file, kind),
        };
        let deliveries = self.exchange.log(route, key.start, read, true);
        self.deliver(deliveries);
        self.carry_all();
    }

    /// Logs that came before the book said where they are kept.
    pub(super) fn log_early(&mut self) {
        let early = std::mem::take(&mut self.early);
        early.into_iter().for_each(|(key, to, file)| self.log(key, to, file));
    }

    /// Has a log kept. Returns the one that its receiver reads.
    fn keep(&mut self, (route, start): (Route, u64), log: Arc<File>, kind: Log) -> Arc<File> {
        let order = self.order();
        let kept = match self.keeping.keep((route, start), &log, &order) {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(?route, %error, "messages cannot be kept on this host's disk");
                return log;
            }
        };
        let carriers = self.couriers.values().map(super::Courier::bell);
        self.keeping.carriers(carriers);
        let Log::Optimistic(messages) = kind else { return kept };
        let sender = (route.job, route.from);
        self.words.push((sender, Frame::Keeper(messages), self.keeping.bell()));
        self.words.push((sender, Frame::Kept(route.to), Some(kept)));
        log
    }

    /// A rank here has a bell.
    pub fn bell(&mut self, key: Key, file: File) {
        let rank = (key.job, key.rank);
        self.bells.set(rank, file.try_clone().and_then(Bell::open).ok());
        let deliveries = self.exchange.bell(rank, key.start, Arc::new(file));
        self.deliver(deliveries);
    }

    /// A courier has brought a log.
    pub fn mirrored(&mut self, Open { purpose, route, start, .. }: Open, file: File) {
        if start < self.since(&(route.job, route.from)) {
            return;
        }
        let deliveries = match purpose {
            Purpose::Kept(reaches) => {
                self.exchange.kept(route, (start, reaches), Arc::new(file), false)
            }
            _ => self.exchange.log(route, start, Arc::new(file), false),
        };
        self.deliver(deliveries);
    }

    /// A log of that agent is on the disk here.
    pub fn keeps(&mut self, from: Member, kept: Kept) {
        self.said.insert((from, kept.route), kept);
        self.say(from, Word::Kept(kept));
    }

    /// A log of a rank here cannot be kept any more: its receiver reads the sender's own.
    pub fn not_kept(&mut self, route: Route, start: u64) {
        let Some(log) = self.keeping.give_up(&route, start) else { return };
        // Its sender waits for no disk.
        let sender = (route.job, route.from);
        self.words.push((sender, Frame::Keeper(u32::MAX), self.keeping.bell()));
        let deliveries = self.exchange.log(route, start, log, true);
        self.deliver(deliveries);
        self.carry_all();
    }

    /// This start of a rank here is over.
    pub fn ended(&mut self, key: Key) {
        self.exchange.ended((key.job, key.rank), key.start);
    }

    /// A later start of a rank begins: receivers get what was kept of its earlier ones here.
    pub(super) fn offer_kept(&mut self, rank: RankId, start: u64) {
        let since = self.since(&rank);
        let kept = self.keeping.of(rank, start);
        for (route, start, file) in kept.into_iter().filter(|(_, its, _)| its.0 >= since) {
            let deliveries = self.exchange.kept(route, start, file, true);
            self.deliver(deliveries);
        }
        self.carry_all();
    }

    /// All that is to be carried: logs whose readers are elsewhere, and those that others keep.
    fn to_carry(&self) -> BTreeMap<(Carried, Member), (u64, Arc<File>)> {
        let is_other = |agent: &Member| *agent != self.me && self.agents.contains_key(agent);
        let read = self.exchange.own_logs().filter_map(|(route, purpose, start, file)| {
            let to = self.places.get(&(route.job, route.to)).filter(|to| is_other(to))?;
            Some((((route, purpose), *to), (start, file)))
        });
        let kept = self.keeping.to_carry().flat_map(|(route, start, file, partners)| {
            let all = partners.iter().filter(|to| is_other(to));
            all.map(move |to| (((route, Purpose::Keep), *to), (start, file.clone())))
        });
        read.chain(kept).collect()
    }

    /// Each log is carried to where it is read or kept, and no other.
    pub(super) fn carry_all(&mut self) {
        let (order, exchange) = (self.order(), &self.exchange);
        self.keeping.choose_partners(&order, |route| exchange.has_own(route));
        let wanted = self.to_carry();
        let couriers = &self.couriers;
        self.carried.retain(|(carried, agent), file| {
            let stays =
                wanted.get(&(*carried, *agent)).is_some_and(|(_, it)| Arc::ptr_eq(it, file));
            match couriers.get(agent) {
                Some(courier) if !stays => courier.take(Parcel::Close(*carried)),
                Some(_) => {}
                None => return false,
            }
            stays
        });
        for ((carried, to), (start, file)) in wanted {
            if self.carried.contains_key(&(carried, to)) {
                continue;
            }
            let Some(courier) = self.courier(to) else { continue };
            courier.take(Parcel::Log(carried, start, file.clone()));
            let (bell, (route, purpose)) = (courier.file(), carried);
            self.carried.insert((carried, to), file);
            if purpose == Purpose::Read {
                let sender = (route.job, route.from);
                let bell = self.rung_by(sender, route.to).unwrap_or(bell);
                self.words.push((sender, Frame::Bell(route.to), Some(bell)));
            }
        }
    }
}
