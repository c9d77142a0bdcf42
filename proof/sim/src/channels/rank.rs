//! A rank: its process, its images on stable storage, and its choices at another host.

use std::collections::{BTreeMap, VecDeque};

use channel::{Channels, Choice, Head, Planted, Vector};

use super::program::Program;
use crate::check::messages::Mark;
use crate::check::{Verdict, demand};

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
    notes: Vec<Choice>,
    notes_out: VecDeque<(u64, u64, Choice)>,
    answers: VecDeque<(u64, u64)>,
}

impl Rank {
    /// A process begins, from the newest image, or from the one before if that is damaged. How far it
    /// was then.
    pub fn begin(&mut self, number: u32, ranks: u32, damaged: bool, planted: Planted) -> Mark {
        if damaged && self.images.len() == KEPT {
            self.images.pop_last();
        }
        self.start += 1;
        self.notes_out.clear();
        self.answers.clear();
        let image = self.images.last_key_value().map(|(number, image)| (*number, image.clone()));
        let made = image.as_ref().map_or(0, |(_, image)| image.vector.choices) as usize;
        let notes = self.notes.get(made..).unwrap_or_default().to_vec();
        let (channels, program, mark) = match image {
            Some((generation, image)) => {
                let vector = Vector::decode(&image.vector.encode(), ranks);
                let vector = vector.expect("it was saved so");
                let channels = Channels::restored(vector, image.logs, generation, notes);
                (channels.expect("it was saved so"), image.program, image.mark)
            }
            None => (Channels::again(ranks, notes), Program::new(number), Mark::default()),
        };
        let channels = channels.planted(planted);
        self.process = Some(Process { start: self.start, channels, program });
        mark
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
            let known = self.notes.get(at as usize - 1).copied();
            demand(known.is_none_or(|known| known == choice), PROPERTY, || {
                format!("rank {number} chooses {choice:?}, and had chosen {known:?}")
            })?;
            if known.is_none() {
                let next = self.notes.len() as u64 + 1;
                demand(at == next, PROPERTY, || format!("choice {at} is noted before {next}"))?;
                self.notes.push(choice);
            }
            self.answers.push_back((start, at));
        } else if let Some((start, at)) = self.answers.pop_front()
            && let Some(process) = self.process.as_mut().filter(|process| process.start == start)
        {
            process.channels.noted(at);
        }
        Ok(())
    }

    /// The process saves, or what it has saved is on stable storage. Returns, for each rank, up to
    /// which of its messages are needed no more.
    pub fn save(&mut self, mark: Mark) -> Vec<u64> {
        let Some(process) = &mut self.process else { return Vec::new() };
        let Some(image) = self.saving.take() else {
            let vector = process.channels.vector();
            let log = |(to, (first, _)): (u32, &(u64, u64))| {
                let log = process.channels.whole_log(to, *first);
                log.map(|(head, bytes)| (head, *bytes)).collect()
            };
            let logs = (0..).zip(&vector.sent).map(log).collect();
            let (program, start) = (process.program.clone(), process.start);
            self.saving = Some(Image { vector, logs, program, start, mark });
            return Vec::new();
        };
        if image.start != process.start {
            return Vec::new();
        }
        self.last += 1;
        process.channels.committed(self.last, &image.vector);
        self.images.insert(self.last, image);
        while self.images.len() > KEPT {
            self.images.pop_first();
        }
        match self.images.first_key_value() {
            // With one image alone, all may have to begin anew.
            Some((oldest, _)) if self.images.len() == KEPT => {
                process.channels.retired(*oldest).to_vec()
            }
            _ => Vec::new(),
        }
    }
}
