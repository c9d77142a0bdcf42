//! A rank: its process, its images on stable storage, and its choices at another host.

use std::collections::{BTreeMap, VecDeque};

use channel::{Channels, Choice, Counts, Head, Needless, Notes, Planted, Vector};

use super::program::Program;
use crate::check::messages::Mark;
use crate::check::{Verdict, Violation, demand};

/// Images that are kept.
const KEPT: usize = 2;

/// A start of a rank.
pub struct Process {
    pub start: u64,
    pub channels: Channels<u64>,
    pub program: Program,
}

/// A state on stable storage.
#[derive(Clone)]
pub struct Image {
    vector: Vector,
    logs: Vec<Vec<(Head, u64)>>,
    program: Program,
    start: u64,
    mark: Mark,
}

#[derive(Default)]
pub struct Rank {
    pub process: Option<Process>,
    /// The number of its last start.
    pub start: u64,
    images: BTreeMap<u64, Image>,
    /// The number of its last image.
    last: u64,
    /// One that is being saved.
    saving: Option<Image>,
    /// Its choices at another host; on their way there, and the answers on theirs, each with the start.
    notes: Notes,
    notes_out: VecDeque<(u64, u64, Choice)>,
    answers: VecDeque<(u64, u64)>,
    /// The needless, as it was told last.
    needless: Needless,
}

impl Rank {
    /// A process begins, from the newest image, or from the one before if that is damaged. How far it
    /// was then.
    pub fn begin(
        &mut self,
        number: u32,
        ranks: u32,
        damaged: bool,
        planted: Planted,
    ) -> Result<Mark, Violation> {
        if damaged && self.images.len() == KEPT {
            self.images.pop_last();
        }
        // From now on, notes of earlier starts are refused.
        self.start += 1;
        let image = self.images.last_key_value().map(|(number, image)| (*number, image.clone()));
        let notes = self.notes.clone();
        let (channels, program, mark) = match image {
            Some((generation, image)) => {
                let vector = Vector::decode(&image.vector.encode(), ranks);
                let vector = vector.expect("it was saved so");
                let channels = Channels::restored(vector, image.logs, generation, notes);
                (channels, image.program, image.mark)
            }
            None => (Channels::again(ranks, notes), Program::new(number), Mark::default()),
        };
        let channels = channels.map_err(|error| Violation {
            property: "choices are repeated",
            text: format!("rank {number} cannot go on: {error}"),
        })?;
        let channels = channels.planted(planted);
        self.process = Some(Process { start: self.start, channels, program });
        Ok(mark)
    }

    /// The states from which it may go on, the newest first.
    pub fn states(&self) -> Vec<(u64, Vec<Counts>)> {
        let state = |image: &Image| (image.start, image.vector.counts());
        self.images.values().rev().map(state).collect()
    }

    /// It is to go on from the state at this place of these, and has made no later choices.
    pub fn go_back(&mut self, place: usize) {
        self.die();
        (0..place).for_each(|_| _ = self.images.pop_last());
        let vector = self.images.last_key_value().map(|(_, image)| &image.vector);
        let noted = |it: &Vector| it.choices - it.unnoted.len() as u64;
        self.notes = Notes { after: vector.map_or(0, noted), choices: Vec::new() };
        (self.needless, self.notes_out) = (Needless::default(), VecDeque::new());
        self.answers.clear();
    }

    pub fn die(&mut self) {
        (self.process, self.saving) = (None, None);
    }

    /// Choices of the process are on their way to be noted.
    pub fn say(&mut self) {
        let Some(process) = &mut self.process else { return };
        let start = process.start;
        let unsaid = process.channels.unsaid().into_iter();
        self.notes_out.extend(unsaid.map(|(at, choice)| (start, at, choice)));
    }

    /// A choice is noted, or the rank hears of it.
    pub fn note(&mut self, number: u32) -> Verdict {
        const PROPERTY: &str = "choices are repeated";

        if let Some((start, at, choice)) = self.notes_out.pop_front() {
            if start < self.start {
                return Ok(());
            }
            let Notes { after, choices } = &mut self.notes;
            let Some(place) = at.checked_sub(*after + 1) else {
                // One that nobody needs is as good as noted.
                self.answers.push_back((start, at));
                return Ok(());
            };
            let known = choices.get(place as usize).copied();
            demand(known.is_none_or(|known| known == choice), PROPERTY, || {
                format!("rank {number} chooses {choice:?}, and had chosen {known:?}")
            })?;
            if known.is_none() {
                let next = *after + choices.len() as u64 + 1;
                demand(at == next, PROPERTY, || format!("choice {at} is noted before {next}"))?;
                choices.push(choice);
            }
            self.answers.push_back((start, at));
        } else if let Some((start, at)) = self.answers.pop_front()
            && let Some(process) = self.process.as_mut().filter(|process| process.start == start)
        {
            process.channels.noted(at);
        }
        Ok(())
    }

    /// The host with the notes dies, if the rank can tell them again: another one gets them.
    pub fn lose_notes(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.channels.move_notes();
        self.notes_out.clear();
        self.answers.clear();
        let after = self.needless.choices;
        self.notes = Notes { after, choices: Vec::new() };
        self.say();
    }

    /// All choices that were noted once are.
    pub fn is_noted(&self) -> bool {
        self.process.as_ref().is_none_or(|process| process.channels.has_all_noted())
    }

    /// The process saves, or what it has saved is on stable storage. Returns what is needed no more.
    pub fn save(&mut self, mark: Mark) -> Needless {
        let Some(process) = &mut self.process else { return Needless::default() };
        let Some(image) = self.saving.take() else {
            let vector = process.channels.vector();
            let log = |(to, (first, _)): (u32, &(u64, u64))| {
                let log = process.channels.whole_log(to, *first);
                log.map(|(head, bytes)| (head, *bytes)).collect()
            };
            let logs = (0..).zip(&vector.sent).map(log).collect();
            let (program, start) = (process.program.clone(), process.start);
            self.saving = Some(Image { vector, logs, program, start, mark });
            return Needless::default();
        };
        if image.start != process.start {
            return Needless::default();
        }
        self.last += 1;
        process.channels.committed(self.last, &image.vector);
        self.images.insert(self.last, image);
        while self.images.len() > KEPT {
            self.images.pop_first();
        }
        // With one image alone, all may have to begin anew.
        let oldest = self.images.first_key_value().filter(|_| self.images.len() == KEPT);
        let needless = oldest.and_then(|(oldest, _)| process.channels.retired(*oldest));
        let Some(needless) = needless.cloned() else { return Needless::default() };
        let many = needless.choices.saturating_sub(self.notes.after);
        let there = many.min(self.notes.choices.len() as u64);
        self.notes.choices.drain(..there as usize);
        self.notes.after += many;
        self.needless.clone_from(&needless);
        needless
    }
}
