//! The world of channels: ranks that talk, save, die and go on. Whatever dies, each message is taken
//! once, and all end as if nothing had died.
//!
//! There is no time: one happening follows on the other, in an order that the seed draws.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use channel::{Arrival, ChannelError, Counts, Head, Planted, State};
use wire::Time;

use crate::check::messages::Messages;
use crate::check::{Verdict, demand};
use crate::draw::Draw;
use crate::outcome::{Outcome, Summary};
use crate::plant::Plant;
use crate::trace::Trace;

mod options;
mod program;
mod rank;

use options::Options;
use program::{Act, Kind};
use rank::{Process, Rank};

/// After all has healed, all ends within so many happenings.
const WITHIN: u64 = 200_000;

const ONE_START: &str = "one start counts";
const AS_BEFORE: &str = "what is done again is the same";

#[derive(Clone, Copy)]
struct Message {
    start: u64,
    head: Head,
    bytes: u64,
}

/// The messages on their way from one rank to another, and the next that is put there.
#[derive(Default)]
struct Link {
    messages: VecDeque<Message>,
    next: u64,
    /// Those that are kept at other hosts, by their numbers and without a gap.
    kept: BTreeMap<u64, Message>,
}

struct World {
    options: Options,
    planted: Planted,
    draw: Draw,
    trace: Trace,
    ranks: Vec<Rank>,
    links: BTreeMap<(u32, u32), Link>,
    /// Words that messages are needed no more: sender, receiver, up to which.
    releases: VecDeque<(u32, u32, u64)>,
    messages: Messages,
    /// Ranks whose notes were lost last, until they are told again or the rank dies.
    exposed: BTreeSet<u32>,
    kills: u64,
    regroups: u64,
    taken: u64,
}

/// Runs one seed of this world.
pub fn run(draw: &mut Draw, plant: Plant, aloud: bool) -> Outcome {
    let options = Options::draw(draw);
    let trace = Trace::new(aloud);
    trace.say(Time::ZERO, || format!("{options:#?}"));
    let mut world = World::new(options.clone(), plant.channel, draw.fork(), trace);
    let verdict = crate::run::guarded(|| {
        let ends = world.run(true)?;
        if options.kind.is_determined() {
            let quiet = Trace::new(false);
            let mut twin = World::new(options, Planted::default(), draw.fork(), quiet);
            let undisturbed = twin.run(false)?;
            demand(ends == undisturbed, AS_BEFORE, || {
                format!("ranks end with {ends:?}, and undisturbed with {undisturbed:?}")
            })?;
        }
        Ok(())
    });
    let summary = Summary {
        steps: world.trace.steps(),
        answered: world.taken,
        deaths: world.kills,
        ..Summary::default()
    };
    Outcome { verdict, hash: world.trace.hash(), summary }
}

impl World {
    fn new(options: Options, planted: Planted, draw: Draw, trace: Trace) -> World {
        let ranks = options.ranks;
        World {
            options,
            planted,
            draw,
            trace,
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            links: BTreeMap::new(),
            releases: VecDeque::new(),
            messages: Messages::new(ranks),
            exposed: BTreeSet::new(),
            kills: 0,
            regroups: 0,
            taken: 0,
        }
    }

    /// Until all have ended: how each has.
    fn run(&mut self, faults: bool) -> Result<Vec<u64>, crate::check::Violation> {
        (0..self.options.ranks).try_for_each(|rank| self.start(rank))?;
        let phase = if faults { self.options.phase } else { 0 };
        for _ in 0..phase {
            self.happen(true)?;
        }
        self.say(|| "ALL HEALS".into());
        let mut left = WITHIN;
        while !self.is_done() {
            demand(left > 0, "liveness", || format!("ranks wait for ever: {}", self.told()))?;
            left -= 1;
            self.happen(false)?;
        }
        self.messages.ended()?;
        self.check_logs()?;
        Ok(self.processes().map(|process| process.program.state()).collect())
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.ranks.iter().flat_map(|rank| &rank.process)
    }

    fn is_done(&self) -> bool {
        let Options { kind, ranks, .. } = self.options;
        let done = self.processes().filter(|process| process.program.is_done(kind, ranks));
        done.count() == self.ranks.len() && (kind != Kind::Outside || self.is_carried())
    }

    /// All that was sent has arrived, also what was sent once more.
    fn is_carried(&self) -> bool {
        self.links.iter().all(|((from, to), link)| {
            let process = self.ranks[*from as usize].process.as_ref();
            let last = process.map_or(0, |process| process.channels.last(*to));
            link.messages.is_empty() && link.next > last
        })
    }

    /// Each rank's channels: to each other rank the first message in the log, the last that may leave,
    /// and the first that is wanted there.
    fn told(&self) -> String {
        let mut text = String::new();
        for (number, rank) in (0..).zip(&self.ranks) {
            let Some(process) = &rank.process else { continue };
            let (channels, replays) = (&process.channels, process.channels.replays());
            let noted = channels.is_noted();
            text += &format!("rank {number} (replays: {replays}, noted: {noted})");
            for to in 0..self.options.ranks {
                let (first, left) = (channels.first(to), channels.left(to));
                text += &format!(" to {to}: {first}..={left}, {};", self.wanted(number, to));
            }
        }
        text
    }

    fn say(&self, words: impl FnOnce() -> String) {
        self.trace.say(Time::ZERO, words);
    }

    fn happen(&mut self, faults: bool) -> Verdict {
        let one = self.draw.between(0, u64::from(self.options.ranks) - 1) as u32;
        let other = self.draw.between(0, u64::from(self.options.ranks) - 1) as u32;
        self.trace.note(Time::ZERO, 60, one as usize, [u64::from(other), self.taken]);
        if faults && self.draw.permille(self.options.kills) {
            match self.draw.permille(self.options.moved)
                && self.ranks[one as usize].process.is_some()
            {
                true => {
                    self.ranks[one as usize].lose_notes();
                    self.exposed.insert(one);
                }
                false => self.kill(one),
            }
            return Ok(());
        }
        if self.draw.permille(self.options.saves) {
            self.save(one);
            return Ok(());
        }
        match self.draw.between(0, 16) {
            0..6 => self.act(one),
            6..14 => self.carry(one, other),
            14 => self.ranks[one as usize].note(one),
            15 => {
                self.release();
                Ok(())
            }
            _ if self.ranks[one as usize].process.is_none() => self.start(one),
            _ => Ok(()),
        }
    }

    fn kill(&mut self, one: u32) {
        for number in 0..self.options.ranks {
            let also = self.draw.permille(10 * self.options.others);
            // Its notes are being told to another host: two hosts are not lost at once.
            let exposed = self.exposed.contains(&number) && !self.ranks[number as usize].is_noted();
            if (number == one || also) && !exposed {
                self.exposed.remove(&number);
                self.kills += 1;
                self.ranks[number as usize].die();
                self.say(|| format!("rank {number} is killed"));
            }
        }
    }

    fn start(&mut self, number: u32) -> Verdict {
        let (ranks, planted) = (self.options.ranks, self.planted);
        let damaged = self.draw.permille(10 * self.options.damaged);
        (0..ranks).try_for_each(|other| self.read_kept(number, other))?;
        let rank = &mut self.ranks[number as usize];
        let mark = rank.begin(number, ranks, damaged, planted)?;
        let start = rank.start;
        self.messages.back(number, &mark);
        self.say(|| format!("rank {number} begins its start {start} at {mark:?}"));
        for other in 0..ranks {
            // Messages on their way to the process that is gone are gone, too.
            let mut next = self.wanted(other, number);
            if self.options.kind == Kind::Outside {
                next = next.saturating_sub(self.options.back);
            }
            let link = self.links.entry((other, number)).or_default();
            (link.next, link.messages) = (next, VecDeque::new());
            if let Some(process) = &mut self.ranks[other as usize].process {
                process.channels.starts(number, start);
            }
            let of = self.ranks[other as usize].start;
            if let Some(process) = &mut self.ranks[number as usize].process {
                process.channels.starts(other, of);
            }
            let back = match self.options.kind {
                Kind::Outside => self.options.back,
                _ => self.draw.between(0, self.options.back),
            };
            let next = self.wanted(number, other).saturating_sub(back);
            let link = self.links.entry((number, other)).or_default();
            (link.next, link.messages) = (next, VecDeque::new());
        }
        Ok(())
    }

    /// Before a receiver hears of another start of a sender, it reads what was kept of earlier ones, as
    /// far as it has come.
    fn read_kept(&mut self, from: u32, to: u32) -> Verdict {
        let Some(link) = self.links.get(&(from, to)).filter(|_| from != to) else { return Ok(()) };
        let many = self.draw.between(0, link.kept.len() as u64) as usize;
        let wanted = self.wanted(from, to);
        let kept: Vec<Message> = link.kept.range(wanted..).take(many).map(|it| *it.1).collect();
        for message in kept {
            self.arrive((from, to), message)?;
        }
        Ok(())
    }

    /// The first message from a rank that another one has not got.
    fn wanted(&self, from: u32, to: u32) -> u64 {
        let process = self.ranks[to as usize].process.as_ref();
        process.map_or(1, |process| process.channels.wanted(from))
    }

    /// The program of a rank does what is next.
    fn act(&mut self, number: u32) -> Verdict {
        let Options { kind, ranks, .. } = self.options;
        let outside = self.draw.bits();
        let rank = &mut self.ranks[number as usize];
        let Some(Process { channels, program, .. }) = &mut rank.process else { return Ok(()) };
        let told = |error: ChannelError| crate::check::Violation {
            property: AS_BEFORE,
            text: format!("rank {number}: {error}"),
        };
        match program.next(kind, ranks) {
            Act::Send(to, tag, bytes) => {
                let head = channels.send(to, (tag, 8, bytes as u32), bytes).map_err(told)?;
                program.done(None);
                self.messages.sent(number, to, head.number, bytes)?;
            }
            Act::Take(from, tag) => {
                if let Some(taken) = channels.take(from, Some(tag)).map_err(told)? {
                    program.done(Some((taken.from, taken.place)));
                    self.taken += 1;
                    self.messages.took(number, taken.from, taken.head.number, taken.place)?;
                }
            }
            Act::Probe => {
                let there = channels.probe(None, None).map_err(told)?;
                program.done(Some((u32::MAX, there.into())));
            }
            Act::Draw => {
                let drawn = match kind {
                    Kind::Outside => outside,
                    _ => channels.number(|| outside).map_err(told)?,
                };
                program.done(Some((u32::MAX, drawn)));
            }
            Act::Nothing => {}
        }
        self.ranks[number as usize].say();
        Ok(())
    }

    /// A message comes onto its way, or arrives.
    fn carry(&mut self, from: u32, to: u32) -> Verdict {
        let arrives = self.draw.one_in(2);
        let Some(link) = self.links.get_mut(&(from, to)) else { return Ok(()) };
        if !arrives {
            let Some(process) = &self.ranks[from as usize].process else {
                // Its sender is gone, and what was kept of it comes.
                let kept = link.kept.range(link.next..).next().map(|(_, message)| *message);
                if let Some(message) = kept {
                    link.messages.push_back(message);
                    link.next = message.head.number + 1;
                }
                return Ok(());
            };
            // One that it has, and is asked for once more, may be in no log any more.
            link.next = link.next.max(process.channels.first(to));
            let told = |error: ChannelError| crate::check::Violation {
                property: "logs are kept",
                text: format!("for rank {to}: {error}"),
            };
            if let Some((head, bytes)) = process.channels.log(to, link.next).map_err(told)?.next() {
                let (start, bytes) = (process.start, *bytes);
                let message = Message { start, head, bytes };
                link.messages.push_back(message);
                link.next = head.number + 1;
                // A kept log of an earlier start goes when there is as much of this one.
                let reaches = link.kept.keys().next_back().is_none_or(|last| *last <= head.number);
                if self.draw.permille(self.options.kept) && reaches {
                    // With all before it that its log has.
                    let all = process.channels.whole_log(to, process.channels.first(to));
                    let left = all.take_while(|it| it.0.number <= head.number);
                    let message =
                        |(head, bytes): (Head, &u64)| Message { start, head, bytes: *bytes };
                    link.kept = left.map(|it| (it.0.number, message(it))).collect();
                }
            }
            return Ok(());
        }
        if self.ranks[to as usize].process.is_some()
            && let Some(message) = link.messages.pop_front()
        {
            return self.arrive((from, to), message);
        }
        Ok(())
    }

    fn arrive(&mut self, (from, to): (u32, u32), message: Message) -> Verdict {
        let Message { start, head, bytes } = message;
        let present = self.ranks[from as usize].start;
        let Some(process) = &mut self.ranks[to as usize].process else { return Ok(()) };
        let property = |error: &ChannelError| match error {
            ChannelError::Gap { .. } => "logs are kept",
            _ => AS_BEFORE,
        };
        let arrival = match process.channels.arrived(from, start, head, bytes, |it| *it as u32) {
            Err(ChannelError::Diverged { .. }) if self.options.kind == Kind::Outside => {
                return self.regroup(to);
            }
            arrival => arrival.map_err(|error| crate::check::Violation {
                property: property(&error),
                text: format!("rank {to}: {error}"),
            })?,
        };
        demand(start == present || arrival == Arrival::Old, ONE_START, || {
            format!("rank {to} takes {head:?} of start {start} of rank {from}, which is over")
        })
    }

    /// A rank cannot go on alone: all go back to states that fit together.
    fn regroup(&mut self, diverged: u32) -> Verdict {
        self.say(|| format!("rank {diverged} has diverged, and all go back"));
        let all: Vec<Vec<(u64, Vec<Counts>)>> = self.ranks.iter().map(Rank::states).collect();
        let mut states: Vec<Vec<State<'_>>> = Vec::new();
        for rank in &all {
            states
                .push(rank.iter().map(|(start, counts)| State { start: *start, counts }).collect());
        }
        let places = channel::line(&states, self.planted);
        for (rank, place) in self.ranks.iter_mut().zip(places) {
            rank.go_back(place);
        }
        self.releases.clear();
        self.exposed.clear();
        self.links.values_mut().for_each(|link| link.kept.clear());
        self.regroups += 1;
        (0..self.options.ranks).try_for_each(|rank| self.start(rank))
    }

    fn save(&mut self, number: u32) {
        let mark = self.messages.mark(number);
        let below = self.ranks[number as usize].save(mark).messages;
        self.releases.extend((0..).zip(below).map(|(sender, below)| (sender, number, below)));
    }

    fn release(&mut self) {
        // A message that goes before it is looked at again may be another one, and nobody sees it.
        let looked = |it: &(u32, u32, u64)| {
            let link = self.links.get(&(it.0, it.1));
            link.is_some_and(|link| link.messages.is_empty() && link.next > it.2)
        };
        let kind = self.options.kind;
        if let Some((sender, receiver, below)) = self.releases.pop_front()
            && (kind != Kind::Outside || looked(&(sender, receiver, below)))
            && let Some(process) = &mut self.ranks[sender as usize].process
        {
            process.channels.release(receiver, below).for_each(drop);
            if let Some(link) = self.links.get_mut(&(sender, receiver)) {
                link.kept = link.kept.split_off(&(below + 1));
            }
        }
    }

    /// Two images after its last message, nobody keeps one.
    fn check_logs(&mut self) -> Verdict {
        for _ in 0..3 {
            for number in 0..self.options.ranks {
                // One may be on its way: that is one more.
                self.save(number);
                self.save(number);
            }
        }
        (0..self.releases.len()).for_each(|_| self.release());
        let kept: u64 = self.processes().map(|process| process.channels.logged()).sum();
        demand(kept == 0, "logs are let go", || format!("{kept} bytes stay that nobody needs"))
    }
}
