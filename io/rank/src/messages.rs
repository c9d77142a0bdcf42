//! Messages to and from the other ranks: channels, in logs that the ranks of a host share.

use std::fs::File;
use std::hint::spin_loop;
use std::time::{Duration, Instant};

use channel::{ChannelError, Channels, Choice, Head, Notes, OWN_TAGS};
use memlog::{Bell, LastKept, Reader};
use wire::rank::{Choices, Frame, Log, MAX_CHOICES};

use crate::error::JobError;
use crate::journal::{Event, Journal};

mod keeper;
mod message;
mod outgoing;
mod saved;
mod spin;

use keeper::Keeper;
pub use message::Message;
use message::{Body, Place};
use outgoing::Outgoing;
pub(crate) use saved::LOG;
use spin::Spin;

/// Looks for messages between two at the clock.
const LOOKS: usize = 8;

/// Messages of a channel that are looked at in one go.
const AT_ONCE: usize = 64;

/// Messages from one rank.
#[derive(Debug, Default)]
struct Incoming {
    reader: Option<Reader>,
    start: u64,
}

/// The channels of this process, and what is to be said to its agent because of them.
#[derive(Debug)]
pub(crate) struct Messages {
    rank: u32,
    start: u64,
    channels: Channels<Place>,
    journal: Journal<Body>,
    bell: Bell,
    keeper: Option<Keeper>,
    /// The receiver of a message that was refused because too many are on no disk.
    refused: Option<u32>,
    sent: Vec<Option<Outgoing>>,
    comes: Vec<Incoming>,
    /// The channels as they were saved last, until it is known whether they count.
    saving: Option<channel::Vector>,
    /// Bytes of each rank that were taken since.
    taken: Vec<u64>,
    /// Messages that were needed no more when that was told last.
    needless: Vec<(u32, u64)>,
    words: Vec<(Frame, Option<File>)>,
    spin: Spin,
}

impl Messages {
    /// Those of a rank that begins: of a job of so many ranks, in its start of this number. `notes`:
    /// what earlier starts have chosen.
    pub fn new((rank, ranks): (u32, u32), start: u64, notes: Notes) -> Result<Messages, JobError> {
        let channels = Channels::again(ranks, notes)?;
        let sent = (0..ranks).map(|_| None).collect();
        Messages::of((rank, start), channels, Journal::default(), sent)
    }

    fn of(
        (rank, start): (u32, u64),
        channels: Channels<Place>,
        journal: Journal<Body>,
        sent: Vec<Option<Outgoing>>,
    ) -> Result<Messages, JobError> {
        let mut messages = Messages {
            rank,
            start,
            channels,
            journal,
            bell: Bell::new()?,
            keeper: None,
            refused: None,
            comes: sent.iter().map(|_| Incoming::default()).collect(),
            taken: vec![0; sent.len()],
            sent,
            saving: None,
            needless: Vec::new(),
            words: Vec::new(),
            spin: Spin::default(),
        };
        messages.publish();
        messages.offer()?;
        Ok(messages)
    }

    /// Another agent has come: it gets all that the last one had.
    pub fn offer_again(&mut self) -> Result<(), JobError> {
        self.offer()?;
        self.channels.move_notes();
        // It is told which ones are needless, even if there are no others.
        let after = self.channels.needless_choices();
        self.words.push((Frame::Choices(Choices { after, choices: Vec::new() }), None));
        self.say_choices();
        self.say_needless(None);
        Ok(())
    }

    /// Says once more what is needed no more: of this rank, or of all.
    fn say_needless(&mut self, from: Option<u32>) {
        let its = |(rank, _): &&(u32, u64)| from.is_none_or(|from| from == *rank);
        let needless: Vec<(u32, u64)> = self.needless.iter().filter(its).copied().collect();
        if !needless.is_empty() {
            self.words.push((Frame::Needless(needless), None));
        }
    }

    /// Has the agent know all that there is.
    fn offer(&mut self) -> Result<(), JobError> {
        self.words.clear();
        self.sent.iter_mut().flatten().for_each(Outgoing::keeps_not);
        if self.sent.len() > 1 {
            self.words.push((Frame::Bell(self.rank), Some(self.bell.file().try_clone()?)));
        }
        (0..self.sent.len()).try_for_each(|to| self.offer_log(to))
    }

    /// Has the receiver get this log.
    fn offer_log(&mut self, to: usize) -> Result<(), JobError> {
        let Some(outgoing) = &self.sent[to] else { return Ok(()) };
        let file = outgoing.file().try_clone()?;
        if to == self.rank as usize {
            self.comes[to] = Incoming { reader: Some(Reader::open(&file)?), start: self.start };
        } else {
            let log = Log { rank: to as u32, start: self.start };
            self.words.push((Frame::Log(log), Some(file)));
        }
        Ok(())
    }

    /// There is something to be said to the agent.
    pub fn has_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// The words for the agent that there are now.
    pub fn words(&mut self) -> impl Iterator<Item = (Frame, Option<File>)> + '_ {
        self.words.drain(..)
    }

    /// Nobody is there to whom something could be sent.
    pub fn is_alone(&self) -> bool {
        self.sent.len() == 1
    }

    // Sending.

    /// Sends a message of two parts, the first of a multiple of 8 bytes. False: the log is full.
    pub fn send(&mut self, to: u32, tag: u32, parts: [&[u8]; 2]) -> Result<bool, JobError> {
        let body = crc32c::crc32c_append(crc32c::crc32c(parts[0]), parts[1]);
        let length = parts[0].len() as u64 + parts[1].len() as u64;
        if length > outgoing::LONGEST {
            return Err(JobError::LongMessage(length));
        }
        if self.journal.repeats() {
            return match self.journal.repeat() {
                Some(Event::Sent(a, b, c, d)) if (*a, *b, *c, *d) == (to, tag, length, body) => {
                    Ok(true)
                }
                _ => Err(JobError::Otherwise),
            };
        }
        if self.is_behind(to) {
            self.refused = Some(to);
            return Ok(false);
        }
        let many = self.sent.len() as u32;
        let outgoing = self.sent.get_mut(to as usize);
        let outgoing = outgoing.ok_or(ChannelError::NoRank(to, many))?;
        let made = outgoing.is_none();
        if made {
            *outgoing = Some(Outgoing::new()?);
        }
        let Some(outgoing) = outgoing else { return Ok(false) };
        let Head { number, check, .. } = self.channels.next(to, (tag, length, body))?;
        let grown = outgoing.grow(length, &mut self.channels, to)?;
        let Some(end) = outgoing.push((number, tag, check), parts) else { return Ok(false) };
        self.channels.send(to, (tag, length, body), Place::Sent(end))?;
        self.journal.happened(Event::Sent(to, tag, length, body));
        if made || grown {
            self.offer_log(to as usize)?;
        }
        match self.channels.left(to) >= number {
            true => self.sent[to as usize].iter_mut().for_each(|it| it.publish(end)),
            false => self.say_choices(),
        }
        // An earlier start has sent it, and nobody needs it.
        let needless = self.sent[to as usize].as_ref().map_or(0, |outgoing| outgoing.needless);
        if number <= needless {
            self.release(to, number);
        }
        Ok(true)
    }

    /// Too many messages to this rank are on no disk.
    fn is_behind(&self, to: u32) -> bool {
        let (first, last) = (self.channels.first(to), self.channels.last(to));
        let outgoing = self.sent.get(to as usize).and_then(Option::as_ref);
        let both = self.keeper.as_ref().zip(outgoing);
        both.is_some_and(|(keeper, outgoing)| keeper.is_behind(outgoing, (first, last)))
    }

    /// A log has been full for so long: it grows if its receiver waits as well. False: it may grow no more.
    pub fn make_room(&mut self, to: u32, full: Duration) -> bool {
        let outgoing = self.sent.get_mut(to as usize).and_then(Option::as_mut);
        outgoing.is_none_or(|outgoing| outgoing.make_room(full))
    }

    /// Messages that may leave now do.
    fn publish(&mut self) {
        for (to, outgoing) in (0..).zip(&mut self.sent) {
            let Some(outgoing) = outgoing else { continue };
            let last = self.channels.whole_log(to, self.channels.left(to)).next();
            if let Some((head, Place::Sent(end))) = last
                && head.number == self.channels.left(to)
            {
                outgoing.publish(*end);
            }
        }
    }

    /// Choices are to be noted.
    pub fn say_choices(&mut self) {
        for unsaid in self.channels.unsaid().chunks(MAX_CHOICES) {
            let after = unsaid[0].0 - 1;
            let choices = unsaid.iter().map(|(_, choice)| *choice).collect();
            self.words.push((Frame::Choices(Choices { after, choices }), None));
        }
    }

    // Receiving.

    /// Takes the oldest message of a rank, or of any; of a tag, or of any below [`OWN_TAGS`].
    pub fn take(
        &mut self,
        from: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Option<Message>, JobError> {
        if self.journal.repeats() {
            let fits = |rank: u32, its: u32| {
                from.is_none_or(|from| from == rank) && tag.map_or(its < OWN_TAGS, |tag| tag == its)
            };
            return match self.journal.repeat() {
                Some(Event::Came(from, tag, body)) if fits(*from, *tag) => {
                    Ok(Some(Message { from: *from, tag: *tag, body: body.clone() }))
                }
                _ => Err(JobError::Otherwise),
            };
        }
        let taken = loop {
            match self.channels.take(from, tag)? {
                Some(taken) => break taken,
                None if self.poll(from)? > 0 => {}
                None => return Ok(None),
            }
        };
        let Place::Came(found) = taken.place else { return Err(JobError::Otherwise) };
        let (from, tag, body) = (taken.from, taken.head.tag, Body::There(found));
        self.taken[from as usize] += taken.head.length;
        if self.journal.keeps() {
            self.journal.happened(Event::Came(from, tag, body.clone()));
        }
        Ok(Some(Message { from, tag, body }))
    }

    /// So much was taken that its senders need images of this rank, to let it go.
    pub fn wants_image(&self) -> bool {
        self.taken.iter().any(|taken| *taken > outgoing::MOST / 8)
    }

    /// Without an agent choices are noted nowhere: messages need not wait for that.
    pub fn note_alone(&mut self) {
        self.channels.unsaid();
        self.words.clear();
        self.channels.noted(u64::MAX);
        self.publish();
    }

    /// Without an agent nothing is gone back to: choices are needless, and so are messages to oneself
    /// that were taken.
    pub fn let_go(&mut self) {
        self.note_alone();
        let vector = self.channels.vector();
        self.channels.committed(0, &vector);
        self.channels.retired(0);
        let taken = vector.seen[self.rank as usize].below();
        self.release(self.rank, taken);
    }

    /// Looks for messages of a rank, or of any: how many have come, also such as had come before.
    pub fn poll(&mut self, from: Option<u32>) -> Result<usize, JobError> {
        let many = self.comes.len() as u32;
        let ranks = match from {
            Some(from) => from..from.saturating_add(1).min(many),
            None => 0..many,
        };
        let mut come = 0;
        for rank in ranks {
            let Incoming { reader, start } = &mut self.comes[rank as usize];
            let Some(reader) = reader else { continue };
            for _ in 0..AT_ONCE {
                let found = reader.advance().map_err(|broken| JobError::Broken(rank, broken))?;
                let Some(found) = found else { break };
                let head = found.head;
                self.channels.arrived(rank, *start, head, Place::Came(found), Place::body)?;
                come += 1;
            }
        }
        Ok(come)
    }

    /// Waits until somebody rings, for messages of this rank or any: first awake, if that has paid.
    /// `asleep`: what else is to be looked at before it sleeps; true if it found something.
    pub fn wait(
        &mut self,
        from: Option<u32>,
        most: Duration,
        asleep: impl FnOnce(&mut Messages) -> Result<bool, JobError>,
    ) -> Result<(), JobError> {
        let begun = Instant::now();
        let budget = self.spin.budget().min(most);
        while begun.elapsed() < budget {
            // A look at the clock takes as long as some at the logs.
            for _ in 0..LOOKS {
                if self.poll(from)? > 0 {
                    self.spin.found();
                    return Ok(());
                }
                spin_loop();
            }
        }
        self.say_choices();
        let heard = self.bell.begin();
        // Disks may have caught up since a message was refused because of them.
        let caught_up = self.refused.take().is_some_and(|to| !self.is_behind(to));
        let found = caught_up || self.poll(from)? > 0 || asleep(self)?;
        if !found {
            self.bell.sleep(heard, most);
        }
        self.bell.end();
        self.spin.slept(begun.elapsed());
        Ok(())
    }

    /// Whether a message is there.
    pub fn probe(&mut self, from: Option<u32>, tag: Option<u32>) -> Result<bool, JobError> {
        if self.journal.repeats() {
            return match self.journal.repeat() {
                Some(Event::Chose(Choice::There(there))) => Ok(*there),
                _ => Err(JobError::Otherwise),
            };
        }
        while self.poll(from)? > 0 {}
        let there = self.channels.probe(from, tag)?;
        self.journal.happened(Event::Chose(Choice::There(there)));
        Ok(there)
    }

    /// A number from outside, or the one that was there before.
    pub fn number(&mut self, now: u64) -> Result<u64, JobError> {
        if self.journal.repeats() {
            return match self.journal.repeat() {
                Some(Event::Chose(Choice::Number(number))) => Ok(*number),
                _ => Err(JobError::Otherwise),
            };
        }
        let number = self.channels.number(|| now)?;
        self.journal.happened(Event::Chose(Choice::Number(number)));
        Ok(number)
    }

    // Loops.

    /// A loop begins, or goes on.
    pub fn begin_loop(&mut self) {
        self.journal.begin_loop();
    }

    /// The loop of this depth is at a turn.
    pub fn turn(&mut self, depth: usize, another: bool) {
        self.journal.turn(depth, another);
    }

    /// The loop of this depth is over.
    pub fn end_loop(&mut self, depth: usize) {
        self.journal.end_loop(depth);
    }

    /// A safe point of the program's own.
    pub fn point(&mut self) {
        self.journal.point();
    }

    // The agent.

    /// The agent says something of messages.
    pub fn hear(&mut self, frame: Frame, file: Option<File>) {
        match (frame, file) {
            (Frame::Log(Log { rank, start }), Some(file)) => self.come(rank, start, &file),
            (Frame::Bell(rank), Some(file)) => {
                // Another rank's file is not to be believed: a broken one rings nobody.
                if let Some(Some(outgoing)) = self.sent.get_mut(rank as usize)
                    && let Ok(bell) = Bell::open(file)
                {
                    outgoing.rings(bell);
                }
            }
            (Frame::Keeper(transit), Some(file)) => {
                self.keeper = Bell::open(file).ok().map(|bell| Keeper { transit, bell });
            }
            (Frame::Kept(rank), Some(file)) => {
                if let Some(Some(outgoing)) = self.sent.get_mut(rank as usize)
                    && let Ok(kept) = LastKept::open(&file)
                {
                    outgoing.keeps(kept);
                }
            }
            (Frame::Needless(needless), _) => {
                needless.into_iter().for_each(|(to, number)| self.release(to, number));
            }
            (Frame::Noted(number), _) => {
                self.channels.noted(number);
                self.publish();
            }
            (Frame::Oldest(generation), _) => self.retired(generation),
            _ => {}
        }
    }

    /// Messages of a rank come through this log from now on. A later start will bring another one, if
    /// this one makes no sense.
    fn come(&mut self, from: u32, start: u64, file: &File) {
        let Some(incoming) = self.comes.get(from as usize) else { return };
        if start >= incoming.start
            && let Ok(reader) = Reader::open(file)
        {
            // A message in the former one need not be sent again to be taken. If it makes no sense, the
            // new one tells.
            while self.poll(Some(from)).is_ok_and(|come| come > 0) {}
            self.comes[from as usize] = Incoming { reader: Some(reader), start };
            self.channels.starts(from, start);
            // A start that has gone back sends what is needed no more.
            self.say_needless(Some(from));
        }
    }

    /// A rank needs no messages up to this one any more.
    fn release(&mut self, to: u32, number: u64) {
        let Some(Some(outgoing)) = self.sent.get_mut(to as usize) else { return };
        outgoing.needless = outgoing.needless.max(number);
        if let Some((_, Place::Sent(end))) = self.channels.release(to, number).last() {
            outgoing.release(end);
        }
    }

    /// Images before this one are not restored: what only these need is needless.
    fn retired(&mut self, generation: u64) {
        let Some(needless) = self.channels.retired(generation) else { return };
        let choices = needless.choices;
        let mut messages: Vec<(u32, u64)> = (0..).zip(needless.messages.iter().copied()).collect();
        // Its own word is for its choices: messages to itself it lets go by itself.
        let own = std::mem::replace(&mut messages[self.rank as usize].1, choices);
        self.release(self.rank, own);
        messages.retain(|(_, until)| *until > 0);
        self.needless = messages;
        self.say_needless(None);
        // Messages that waited for choices which nobody needs may leave.
        self.publish();
    }
}
