//! Messages between ranks of different agents, and what agents say to each other of them. One
//! machine's ranks read each other's logs; a courier carries a log to where its reader is, and there
//! it is mirrored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use job::{Assignment, Key};
use wire::Member;
use wire::agents::{Kept, Route, Start, Word};
use wire::rank::{Choices, Frame};

use crate::bells::Bells;
use crate::event::Event;
use crate::exchange::{Exchange, RankId};
use crate::keeping::Keeping;
use crate::notes::Notes;
use crate::options::Tls;
use crate::streams::SILENT;

mod carrying;
mod courier;
mod visitor;

use courier::{Carried, Courier, Parcel};
pub(crate) use visitor::{Visits, hear};

/// A word for a rank here, with a file.
pub(crate) type Outgoing = (RankId, Frame, Option<Arc<File>>);

/// A start that waits until other agents have said what is noted of earlier ones.
#[derive(Debug)]
struct Asking {
    since: Instant,
    /// Agents that have yet to answer.
    agents: BTreeSet<Member>,
    /// The longest notes that have come, and those of each agent that are still coming.
    best: Choices,
    coming: BTreeMap<Member, Choices>,
}

/// One agent's part.
pub(crate) struct Post {
    me: Member,
    tls: Option<Tls>,
    events: Sender<Event>,
    bells: Bells,
    exchange: Exchange<Arc<File>>,
    notes: Notes,
    /// Other agents, and where they are; those that could not be reached for long.
    agents: BTreeMap<Member, String>,
    away: BTreeSet<Member>,
    couriers: BTreeMap<Member, Courier>,
    /// Where each rank runs.
    places: BTreeMap<RankId, Member>,
    /// The first start of each rank that counts, where all ranks have gone back.
    since: BTreeMap<RankId, u64>,
    keeping: Keeping,
    /// Logs that are carried to others.
    carried: BTreeMap<(Carried, Member), Arc<File>>,
    /// Logs of jobs that the book has not told of yet.
    early: Vec<(Key, u32, File)>,
    /// How far logs of other agents are on the disk here, as these were told last.
    said: BTreeMap<(Member, Route), Kept>,
    asking: BTreeMap<Key, Asking>,
    /// Messages that receivers here need no more: up to which, of each route.
    needless: BTreeMap<Route, u64>,
    /// Words for ranks here.
    words: Vec<Outgoing>,
}

impl Post {
    pub fn new(
        me: Member,
        tls: Option<Tls>,
        (bells, keeping): (Bells, Keeping),
        events: Sender<Event>,
    ) -> Post {
        Post {
            me,
            tls,
            events,
            bells,
            exchange: Exchange::default(),
            notes: Notes::default(),
            agents: BTreeMap::new(),
            away: BTreeSet::new(),
            couriers: BTreeMap::new(),
            places: BTreeMap::new(),
            since: BTreeMap::new(),
            keeping,
            carried: BTreeMap::new(),
            early: Vec::new(),
            said: BTreeMap::new(),
            asking: BTreeMap::new(),
            needless: BTreeMap::new(),
            words: Vec::new(),
        }
    }

    /// The words for ranks here that there are by now.
    pub fn words(&mut self) -> Vec<Outgoing> {
        mem::take(&mut self.words)
    }

    /// Earlier starts of a rank count no more.
    fn since(&self, rank: &RankId) -> u64 {
        self.since.get(rank).copied().unwrap_or(0)
    }

    fn start_of(&self, Key { job, rank, start }: Key) -> Start {
        Start { job, rank, start, since: self.since(&(job, rank)) }
    }

    /// The book says where ranks and agents are.
    pub fn assigned(&mut self, assignment: &Assignment) {
        let is_over = |job| assignment.forgotten.contains(&job) || assignment.over.contains(&job);
        let newest = assignment.jobs.iter().max().copied();
        // Others may have heard of a job before this agent.
        let goes_on = |job: u64| {
            !is_over(job) && (assignment.jobs.contains(&job) || newest.is_none_or(|it| job > it))
        };
        self.exchange.keep(goes_on);
        self.notes.keep(goes_on);
        self.bells.keep(goes_on);
        self.keeping.assigned(assignment, goes_on);
        self.asking.retain(|key, _| goes_on(key.job));
        self.needless.retain(|route, _| goes_on(route.job));
        let me = self.me;
        let others = assignment.agents.iter().filter(|(agent, at)| *agent != me && !at.is_empty());
        self.agents = others.cloned().collect();
        self.away.retain(|agent| self.agents.contains_key(agent));
        self.couriers.retain(|agent, _| self.agents.contains_key(agent));
        let agents = &self.agents;
        self.said.retain(|(to, route), _| agents.contains_key(to) && goes_on(route.job));
        let places = assignment.peers.iter().map(|(key, at)| ((key.job, key.rank), *at));
        let before = mem::replace(&mut self.places, places.collect());
        for asking in self.asking.values_mut() {
            asking.agents.retain(|agent| self.agents.contains_key(agent));
        }
        self.choose_partner();
        let all = assignment
            .since
            .iter()
            .flat_map(|(job, since)| (0..).zip(since).map(|(rank, since)| ((*job, rank), *since)));
        let former = mem::replace(&mut self.since, all.collect());
        // Those who have gone back need again what they did not need any more.
        let regrouped = |job: u64| {
            let mut ranks = self.since.range((job, 0)..=(job, u32::MAX));
            ranks.any(|(rank, since)| former.get(rank) != Some(since))
        };
        self.needless.retain(|route, _| !regrouped(route.job));
        let (places, first) = (&self.places, &self.since);
        self.exchange.drop_moved(|rank| places.get(&rank).is_some_and(|at| *at != me));
        let first = |rank| first.get(&rank).copied().unwrap_or(0);
        self.exchange.drop_before(first);
        self.keeping.drop_before(first);
        self.early.retain(|(key, ..)| goes_on(key.job));
        self.log_early();
        self.carry_all();
        // A sender that runs elsewhere by now may send what is needed no more.
        let moved = |route: &Route| {
            let sender = (route.job, route.from);
            self.places.get(&sender) != before.get(&sender)
        };
        let again: Vec<(Route, u64)> =
            self.needless.iter().filter(|(it, _)| moved(it)).map(|(it, to)| (*it, *to)).collect();
        again.into_iter().for_each(|(route, number)| self.say_needless(route, number));
    }

    /// The agent that notes the choices of ranks here: the next one that can be reached.
    fn partner(&self) -> Option<Member> {
        self.order().first().copied()
    }

    /// The agents that can be reached, from the one behind this on.
    fn order(&self) -> Vec<Member> {
        let there = self.agents.keys().filter(|agent| !self.away.contains(agent));
        let mut order: Vec<Member> = there.copied().collect();
        let behind = order.partition_point(|agent| *agent < self.me);
        order.rotate_left(behind);
        order
    }

    /// Ranks here have another partner, or none any more.
    fn choose_partner(&mut self) {
        let partner = self.partner();
        for (rank, before) in self.notes.ranks() {
            if self.places.get(&rank) != Some(&self.me) || before == partner {
                continue;
            }
            self.notes.set_partner(rank, partner);
            match partner {
                Some(partner) => self.note_all(rank, partner),
                // Nobody else can have them: this agent has.
                None => {
                    let noted = Frame::Noted(self.notes.last(rank));
                    self.words.push((rank, noted, None));
                }
            }
        }
    }

    fn courier(&mut self, to: Member) -> Option<&Courier> {
        if !self.couriers.contains_key(&to) {
            let at = self.agents.get(&to)?.clone();
            let events = self.events.clone();
            match Courier::start((self.me, to), at, self.tls.clone(), events) {
                Ok(courier) => {
                    self.couriers.insert(to, courier);
                    self.keeping.carriers(self.couriers.values().map(Courier::bell));
                }
                Err(error) => {
                    tracing::warn!(%error, "nothing can be carried to another agent");
                    return None;
                }
            };
        }
        self.couriers.get(&to)
    }

    fn say(&mut self, to: Member, word: Word) {
        if let Some(courier) = self.courier(to) {
            courier.take(Parcel::Word(word));
        }
    }

    /// This start of a rank has sent messages, or may have got some.
    pub fn has_talked(&self, key: Key) -> bool {
        self.exchange.has_talked((key.job, key.rank), key.start)
    }

    /// A rank here needs messages of others no more, or choices of its own.
    pub fn needless(&mut self, key: Key, needless: Vec<(u32, u64)>) {
        if key.start < self.since(&(key.job, key.rank)) {
            return;
        }
        for (from, number) in needless {
            if from == key.rank {
                let rank = (key.job, key.rank);
                self.notes.forget(rank, self.since(&rank), number);
                if let Some(partner) = self.partner() {
                    self.say(partner, Word::Forget(self.start_of(key), number));
                }
            } else {
                let route = Route { job: key.job, from, to: key.rank };
                self.needless.insert(route, number);
                self.say_needless(route, number);
            }
        }
    }

    /// The sender of a route hears that its receiver needs no messages up to this one.
    fn say_needless(&mut self, route: Route, number: u64) {
        match self.places.get(&(route.job, route.from)).copied() {
            Some(at) if at != self.me => self.say(at, Word::Needless(route, number)),
            _ => self.words.push(released(route, number)),
        }
    }

    /// A rank here has made choices.
    pub fn chose(&mut self, key: Key, choices: Choices) {
        let rank = (key.job, key.rank);
        // The rank itself knows what is needed.
        let Some(noted) =
            self.notes.note(rank, (key.start, self.since(&rank)), (choices.clone(), true))
        else {
            return;
        };
        let partner = self.partner();
        let another = self.notes.set_partner(rank, partner);
        match partner {
            None => self.words.push((rank, Frame::Noted(noted), None)),
            Some(partner) if another => self.note_all(rank, partner),
            Some(partner) => {
                let oldest = choices.after <= self.notes.after(rank);
                let Choices { after, choices } = choices;
                self.say(partner, Word::Choices(self.start_of(key), after, choices, oldest));
            }
        }
    }

    /// All that is noted of a rank here goes to another agent.
    fn note_all(&mut self, rank: RankId, partner: Member) {
        let Some((start, pieces)) = self.notes.of(rank) else { return };
        for (number, Choices { after, choices }) in pieces.into_iter().enumerate() {
            self.say(partner, Word::Choices(start, after, choices, number == 0));
        }
    }

    /// A courier has come to this agent: words may have been lost before.
    pub fn reached(&mut self, agent: Member) {
        if self.away.remove(&agent) {
            self.choose_partner();
            self.carry_all();
        }
        for (rank, _) in self.notes.ranks().into_iter().filter(|(_, it)| *it == Some(agent)) {
            self.note_all(rank, agent);
        }
        let said = self.said.iter().filter(|((to, _), _)| *to == agent);
        let said: Vec<Kept> = said.map(|(_, kept)| *kept).collect();
        said.into_iter().for_each(|kept| self.say(agent, Word::Kept(kept)));
        for (start, number) in self.notes.noted_of(agent) {
            self.say(agent, Word::Noted(start, number));
        }
        let asking = self.asking.iter().filter(|(_, asking)| asking.agents.contains(&agent));
        let asked: Vec<Key> = asking.map(|(key, _)| *key).collect();
        asked.into_iter().for_each(|key| self.say(agent, Word::Ask(self.start_of(key))));
        let places = &self.places;
        let there = |route: &Route| places.get(&(route.job, route.from)) == Some(&agent);
        let again = self.needless.iter().filter(|(route, _)| there(route));
        let again: Vec<(Route, u64)> = again.map(|(route, number)| (*route, *number)).collect();
        again.into_iter().for_each(|(route, number)| self.say_needless(route, number));
    }

    /// An agent cannot be reached for long: nobody waits for it.
    pub fn unreached(&mut self, agent: Member) {
        if self.agents.contains_key(&agent) && self.away.insert(agent) {
            tracing::warn!(%agent, "an agent cannot be reached: choices are noted elsewhere");
            self.choose_partner();
            self.carry_all();
        }
        for asking in self.asking.values_mut() {
            asking.agents.remove(&agent);
        }
    }

    /// A start of a rank is about to begin here: others are asked for what its earlier ones have
    /// noted. True: that is to be waited for.
    pub fn ask(&mut self, key: Key) -> bool {
        let there = self.agents.keys().filter(|agent| !self.away.contains(agent));
        let agents: BTreeSet<Member> = there.copied().collect();
        if key.start == 1 || agents.is_empty() {
            return false;
        }
        for agent in &agents {
            self.say(*agent, Word::Ask(self.start_of(key)));
        }
        let (best, coming) = (Choices::default(), BTreeMap::new());
        self.asking.insert(key, Asking { since: Instant::now(), agents, best, coming });
        true
    }

    /// Starts for which all have answered by now, or which have waited for too long.
    pub fn answered(&mut self) -> Vec<Key> {
        let ready = |(key, asking): (&Key, &Asking)| {
            (asking.agents.is_empty() || asking.since.elapsed() > SILENT).then_some(*key)
        };
        let ready: Vec<Key> = self.asking.iter().filter_map(ready).collect();
        for key in &ready {
            if let Some(asking) = self.asking.remove(key) {
                let rank = (key.job, key.rank);
                self.notes.adopt(rank, self.since(&rank), asking.best);
            }
        }
        ready
    }

    /// A start begins: what is noted of earlier ones, which note nothing any more.
    pub fn begin(&mut self, key: Key) -> (u64, u64, Vec<Choices>) {
        let rank = (key.job, key.rank);
        self.offer_kept(rank, key.start);
        let notes = self.notes.begin(rank, (key.start, self.since(&rank)));
        let partner = self.partner();
        if let Some(partner) = partner.filter(|_| notes.1 > 0) {
            self.notes.set_partner(rank, Some(partner));
            self.note_all(rank, partner);
        }
        notes
    }

    /// Another agent says something.
    pub fn heard(&mut self, from: Member, word: Word) {
        match word {
            Word::Needless(route, number) => self.words.push(released(route, number)),
            Word::Choices(start, after, choices, oldest) => {
                let rank = (start.job, start.rank);
                let said = (Choices { after, choices }, oldest);
                if let Some(noted) = self.notes.note(rank, (start.start, start.since), said) {
                    self.notes.set_of(rank, from);
                    self.say(from, Word::Noted(start, noted));
                }
            }
            Word::Noted(Start { job, rank, start, .. }, number) => {
                if self.notes.is_by((job, rank), start) && self.partner() == Some(from) {
                    self.words.push(((job, rank), Frame::Noted(number), None));
                }
            }
            Word::Forget(start, number) => {
                self.notes.forget((start.job, start.rank), start.since, number);
            }
            Word::Kept(kept) => self.keeping.reached(from, kept),
            Word::Ask(start) => {
                self.offer_kept((start.job, start.rank), start.start);
                let (none, _, mut pieces) =
                    self.notes.begin((start.job, start.rank), (start.start, start.since));
                let none = Choices { after: none, choices: Vec::new() };
                let last = pieces.pop().unwrap_or(none);
                for Choices { after, choices } in pieces {
                    self.say(from, Word::Notes(start, after, choices, true));
                }
                self.say(from, Word::Notes(start, last.after, last.choices, false));
            }
            Word::Notes(Start { job, rank, start, .. }, after, choices, more) => {
                if let Some(asking) = self.asking.get_mut(&Key { job, rank, start }) {
                    asking.heard(from, Choices { after, choices }, more);
                }
            }
        }
    }
}

impl Asking {
    fn heard(&mut self, from: Member, mut piece: Choices, more: bool) {
        if !self.agents.contains(&from) {
            return;
        }
        let coming = self.coming.entry(from).or_default();
        // The answer may have been broken off, and begin once more.
        if coming.after + coming.choices.len() as u64 != piece.after {
            *coming = Choices { after: piece.after, choices: Vec::new() };
        }
        coming.choices.append(&mut piece.choices);
        if more {
            return;
        }
        let end = |choices: &Choices| choices.after + choices.choices.len() as u64;
        if let Some(come) = self.coming.remove(&from)
            && end(&come) >= end(&self.best)
        {
            self.best = come;
        }
        self.agents.remove(&from);
    }
}

/// The receiver of a route needs no messages up to this one.
fn released(route: Route, number: u64) -> Outgoing {
    ((route.job, route.from), Frame::Needless(vec![(route.to, number)]), None)
}
