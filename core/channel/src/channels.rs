//! One rank's channels.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bug::{Bug, Planted};
use crate::choices::{Choices, Notes};
use crate::error::ChannelError;
use crate::received::{Arrival, Received};
use crate::sent::Sent;
use crate::vector::Vector;
use crate::{Choice, Head, MAX_AHEAD, Seen};

/// A message that the program takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<P> {
    /// Its sender.
    pub from: u32,
    /// Its head.
    pub head: Head,
    /// Its bytes, which are the program's now.
    pub place: P,
}

/// The messages and choices that no state needs which may be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needless {
    /// Messages of each rank up to this one.
    pub messages: Vec<u64>,
    /// Choices up to this one.
    pub choices: u64,
}

/// The channels of one start of a rank.
#[derive(Clone, Debug)]
pub struct Channels<P> {
    sent: Vec<Sent<P>>,
    received: Vec<Received<P>>,
    choices: Choices,
    /// Images that may be restored, by their generations, and what each does not need.
    states: BTreeMap<u64, Needless>,
    /// The rank that was chosen last.
    last: u32,
    /// Choices that were made, and are to be noted.
    unsaid: Vec<(u64, Choice)>,
    planted: Planted,
}

impl<P> Channels<P> {
    /// A rank of a job of so many, which begins.
    pub fn new(ranks: u32) -> Channels<P> {
        let many = ranks as usize;
        Channels {
            sent: (0..many).map(|_| Sent::default()).collect(),
            received: (0..many).map(|_| Received::default()).collect(),
            choices: Choices::default(),
            states: BTreeMap::new(),
            last: 0,
            unsaid: Vec::new(),
            planted: Planted::default(),
        }
    }

    /// One that begins anew, after an earlier start that has left no image.
    ///
    /// # Errors
    /// Notes are missing.
    pub fn again(ranks: u32, notes: Notes) -> Result<Channels<P>, ChannelError> {
        Ok(Channels {
            choices: Choices::restored((0, 0), Vec::new(), notes)?,
            ..Channels::new(ranks)
        })
    }

    /// One that goes on from an image. `logs`: the messages in it, to each rank. `generation`: its
    /// number. `notes`: its choices at another host.
    ///
    /// # Errors
    /// The logs are not those of the vector, or notes are missing.
    pub fn restored(
        vector: Vector,
        logs: Vec<Vec<(Head, P)>>,
        generation: u64,
        notes: Notes,
    ) -> Result<Channels<P>, ChannelError> {
        let needless = needless(&vector);
        let mut sent = Vec::new();
        for ((log, (first, last)), check) in logs.into_iter().zip(&vector.sent).zip(&vector.checks)
        {
            let numbers = log.iter().map(|(head, _)| head.number);
            if !numbers.eq(*first..=*last) {
                return Err(ChannelError::Vector("an image lacks messages of its log".into()));
            }
            sent.push(Sent::restored((*last, *check), log.into_iter(), vector.choices));
        }
        if sent.len() != vector.sent.len() || vector.seen.len() != sent.len() {
            return Err(ChannelError::Vector("an image lacks a log".into()));
        }
        let made = (vector.choices, vector.needless);
        let choices = Choices::restored(made, vector.unnoted, notes)?;
        let mut channels = Channels {
            sent,
            received: vector.seen.into_iter().map(Received::restored).collect(),
            unsaid: choices.behind(choices.noted()).collect(),
            choices,
            states: BTreeMap::from([(generation, needless)]),
            last: 0,
            planted: Planted::default(),
        };
        channels.open_all();
        Ok(channels)
    }

    /// The same with these mistakes.
    pub fn planted(self, planted: Planted) -> Channels<P> {
        Channels { planted, ..self }
    }

    fn check(&self, rank: u32) -> Result<usize, ChannelError> {
        let many = self.sent.len();
        let known = (rank as usize) < many;
        if known { Ok(rank as usize) } else { Err(ChannelError::NoRank(rank, many as u32)) }
    }

    // The sender's side.

    /// The head of the next message to a rank: of this tag, length and checksum of its bytes.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn next(&self, to: u32, message: (u32, u64, u32)) -> Result<Head, ChannelError> {
        Ok(self.sent[self.check(to)?].next(message))
    }

    /// Sends: the message is in the log. What may leave, [`left`](Channels::left) says.
    ///
    /// # Errors
    /// There is no such rank.
    pub fn send(
        &mut self,
        to: u32,
        message: (u32, u64, u32),
        place: P,
    ) -> Result<Head, ChannelError> {
        let to = self.check(to)?;
        let made = self.choices.made();
        let head = self.sent[to].push(message, made, place);
        self.open(to);
        Ok(head)
    }

    fn open(&mut self, to: usize) {
        let noted = if self.planted.is(Bug::OpenGate) { u64::MAX } else { self.choices.noted() };
        self.sent[to].open(noted);
    }

    fn open_all(&mut self) {
        (0..self.sent.len()).for_each(|to| self.open(to));
    }

    /// The last message to a rank that may leave: all choices before are noted.
    pub fn left(&self, to: u32) -> u64 {
        self.sent.get(to as usize).map_or(0, Sent::left)
    }

    /// The last message to a rank.
    pub fn last(&self, to: u32) -> u64 {
        self.sent.get(to as usize).map_or(0, Sent::last)
    }

    /// The first message to a rank that is in the log, or the next one.
    pub fn first(&self, to: u32) -> u64 {
        self.sent.get(to as usize).map_or(1, Sent::first)
    }

    /// Messages to a rank from this number on, as far as they may leave.
    ///
    /// # Errors
    /// The log does not go back so far: the receiver can only go on with all others.
    pub fn log(
        &self,
        to: u32,
        from: u64,
    ) -> Result<impl Iterator<Item = (Head, &P)>, ChannelError> {
        let sent = &self.sent[self.check(to)?];
        if from < sent.first() {
            return Err(ChannelError::Gap { from: to, wanted: from, first: sent.first() });
        }
        let left = sent.left();
        Ok(sent.from(from).take_while(move |(head, _)| head.number <= left))
    }

    /// All messages to a rank in the log, from this number on: what an image has of it.
    pub fn whole_log(&self, to: u32, from: u64) -> impl Iterator<Item = (Head, &P)> {
        self.sent.get(to as usize).into_iter().flat_map(move |sent| sent.from(from))
    }

    /// Another log has the messages to a rank from now on: their places.
    pub fn places_mut(&mut self, to: u32) -> impl Iterator<Item = (Head, &mut P)> {
        self.sent.get_mut(to as usize).into_iter().flat_map(Sent::places_mut)
    }

    /// Bytes of all messages in logs.
    pub fn logged(&self) -> u64 {
        self.sent.iter().map(Sent::bytes).sum()
    }

    /// A rank will never need messages up to this one again: their places are free.
    pub fn release(&mut self, to: u32, below: u64) -> impl Iterator<Item = (Head, P)> + '_ {
        let sent = self.sent.get_mut(to as usize);
        sent.into_iter().flat_map(move |sent| sent.release(below))
    }

    // The receiver's side.

    /// The first message of a rank that has not come.
    pub fn wanted(&self, from: u32) -> u64 {
        self.received.get(from as usize).map_or(1, Received::wanted)
    }

    /// A rank has another start: what its earlier ones send counts no more.
    pub fn starts(&mut self, from: u32, start: u64) {
        if let Some(received) = self.received.get_mut(from as usize) {
            received.starts(start);
        }
    }

    /// A message has come, of this start of its sender. `body`: a checksum of its bytes. It is asked
    /// for where it is not known yet that the sender has sent before what this rank has taken.
    ///
    /// # Errors
    /// It is not the next one, or it is not what it was before.
    pub fn arrived(
        &mut self,
        from: u32,
        start: u64,
        head: Head,
        place: P,
        body: impl FnOnce(&P) -> u32,
    ) -> Result<Arrival, ChannelError> {
        let planted = self.planted;
        let number = self.check(from)?;
        self.received[number].arrived((from, start), head, place, body, planted)
    }

    /// Takes the oldest message of a rank, or of this tag; `None`: it has not come. From `None`: that
    /// of any rank, which is a choice.
    ///
    /// # Errors
    /// There is no such rank, older messages of other tags wait too long, or the program does not
    /// choose as before.
    pub fn take(
        &mut self,
        from: Option<u32>,
        tag: Option<u32>,
    ) -> Result<Option<Taken<P>>, ChannelError> {
        let Some(rank) = (match from {
            Some(from) => Some(from),
            None => self.any(tag)?,
        }) else {
            return Ok(None);
        };
        let place = self.check(rank)?;
        let received = &self.received[place];
        let Some(first) = received.first(tag) else { return Ok(None) };
        if received.seen().ahead() >= MAX_AHEAD
            && let Some(oldest) = received.oldest().filter(|oldest| oldest.number < first.number)
        {
            return Err(ChannelError::Ahead(rank, oldest.tag));
        }
        if from.is_none() {
            self.choose(Choice::From(rank))?;
            self.last = rank;
        }
        let taken = self.received[place].take(tag);
        Ok(taken.map(|(head, place)| Taken { from: rank, head, place }))
    }

    /// The rank whose message is taken where any will do: the next one that has one, behind the last.
    fn any(&self, tag: Option<u32>) -> Result<Option<u32>, ChannelError> {
        let there = |from: &u32| {
            self.received.get(*from as usize).is_some_and(|it| it.first(tag).is_some())
        };
        let many = self.received.len() as u32;
        let first = (1..=many).map(|after| (self.last + after) % many).find(there);
        match self.choices.earlier() {
            Some(_) if self.planted.is(Bug::ReplayOutOfOrder) => Ok(first),
            // The one that it had chosen may have yet to come.
            Some(Choice::From(from)) => Ok(Some(from).filter(there)),
            Some(_) => Err(ChannelError::Choice(self.choices.made() + 1)),
            None => Ok(first),
        }
    }

    /// Whether a message is there: a choice.
    ///
    /// # Errors
    /// There is no such rank, or the program does not choose as before.
    pub fn probe(&mut self, from: Option<u32>, tag: Option<u32>) -> Result<bool, ChannelError> {
        let ranks = match from {
            Some(from) => self.check(from)?..from as usize + 1,
            None => 0..self.received.len(),
        };
        let there = match self.choices.earlier() {
            Some(Choice::There(there)) => there,
            Some(_) => return Err(ChannelError::Choice(self.choices.made() + 1)),
            None => self.received[ranks].iter().any(|it| it.first(tag).is_some()),
        };
        self.choose(Choice::There(there))?;
        Ok(there)
    }

    /// A number from outside, as it is now, or as it was before.
    ///
    /// # Errors
    /// The program does not choose as before.
    pub fn number(&mut self, now: impl FnOnce() -> u64) -> Result<u64, ChannelError> {
        let number = match self.choices.earlier() {
            Some(Choice::Number(number)) => number,
            Some(_) => return Err(ChannelError::Choice(self.choices.made() + 1)),
            None => now(),
        };
        self.choose(Choice::Number(number))?;
        Ok(number)
    }

    fn choose(&mut self, choice: Choice) -> Result<(), ChannelError> {
        let replayed = self.choices.earlier().is_some();
        if self.planted.is(Bug::ReplayOutOfOrder) && replayed {
            self.choices.skip();
            return Ok(());
        }
        if self.choices.make(choice)? {
            match self.planted.is(Bug::SkipChoice) {
                true => self.choices.note_all(),
                false => self.unsaid.push((self.choices.made(), choice)),
            }
        }
        Ok(())
    }

    /// The choices that are to be noted at another host, each with its number.
    pub fn unsaid(&mut self) -> Vec<(u64, Choice)> {
        core::mem::take(&mut self.unsaid)
    }

    /// All choices up to this one are noted: more messages may leave.
    pub fn noted(&mut self, choices: u64) {
        self.choices.note(choices);
        self.open_all();
    }

    /// Another host is to have the notes, from now on: all are to be noted there.
    pub fn move_notes(&mut self) {
        self.choices.move_notes();
        self.unsaid = self.choices.behind(self.choices.noted()).collect();
    }

    /// No state needs choices up to this one.
    pub fn needless_choices(&self) -> u64 {
        self.choices.needless()
    }

    /// All that was chosen is noted: what follows on it may be seen outside.
    pub fn is_noted(&self) -> bool {
        self.choices.noted() >= self.choices.made()
    }

    /// The other host has all choices that this one knows, also those that only an earlier start has made.
    pub fn has_all_noted(&self) -> bool {
        self.choices.behind(self.choices.noted()).next().is_none()
    }

    /// It does what an earlier start has done.
    pub fn replays(&self) -> bool {
        self.choices.earlier().is_some()
    }

    // Images.

    /// The state of the channels as it is now. The messages of the logs belong to it.
    pub fn vector(&self) -> Vector {
        let logged = |sent: &Sent<P>| match self.planted.is(Bug::LogNotInImage) {
            true => (sent.last() + 1, sent.last()),
            false => (sent.first(), sent.last()),
        };
        let seen = |received: &Received<P>| {
            let mut seen = received.seen().clone();
            if self.planted.is(Bug::ForgetAhead) {
                seen.forget_ahead();
            }
            seen
        };
        Vector {
            sent: self.sent.iter().map(logged).collect(),
            checks: self.sent.iter().map(Sent::check).collect(),
            seen: self.received.iter().map(seen).collect(),
            choices: self.choices.made(),
            needless: self.choices.needless(),
            unnoted: self.choices.unnoted(),
        }
    }

    /// An image with this vector may be restored from now on.
    pub fn committed(&mut self, generation: u64, vector: &Vector) {
        self.states.insert(generation, needless(vector));
    }

    /// No image before this one may be restored any more. Returns what is of no use now; `None`: the
    /// image is one of an earlier start, of which this one knows nothing.
    pub fn retired(&mut self, oldest: u64) -> Option<&Needless> {
        self.states = self.states.split_off(&oldest);
        // By the oldest: a newer one may be found damaged.
        let oldest = match self.planted.is(Bug::TrimByNewest) {
            true => *self.states.last_key_value()?.0,
            false => oldest,
        };
        self.choices.forget(self.states.get(&oldest)?.choices);
        // Messages that waited for choices which nobody needs may leave.
        self.open_all();
        self.states.get(&oldest)
    }
}

fn needless(vector: &Vector) -> Needless {
    let messages = vector.seen.iter().map(Seen::below).collect();
    Needless { messages, choices: vector.choices }
}
