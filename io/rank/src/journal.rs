//! Messages that a program repeats when it starts again. It runs from its beginning, so what it sent
//! and received outside completed turns of loops happens once more, before the place where it was saved.
//! There it gets what it got before, and what it sends is not sent again.

use serde::{Deserialize, Serialize};
use wire::rank::Choice;

/// Something that happened outside completed turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Event<B> {
    /// A message to a rank, with its tag, length and checksum.
    Sent(u32, u32, u64, u32),
    /// A message of a rank, with its tag and bytes.
    Came(u32, u32, B),
    /// A choice, but for the sender of a message.
    Chose(Choice),
}

/// The events of one rank. `B`: where the bytes of a message are, as long as it was not saved.
#[derive(Clone, Debug)]
pub(crate) struct Journal<B> {
    events: Vec<Event<B>>,
    /// The next one that is to happen again.
    next: usize,
    /// Events before each loop that runs, the outermost first.
    marks: Vec<usize>,
    /// Whether events are kept: outside all loops, and in the present turn of each loop that runs.
    /// After a safe point of its own, a program does by its state what is to be done.
    kept: Vec<bool>,
    /// The loops in which the state was saved, while they were not entered again.
    ahead: Vec<Option<Level>>,
}

/// A loop in which a state was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Level {
    /// Events before it.
    mark: usize,
    /// Whether those of its turn were kept.
    kept: bool,
}

/// A journal in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saved {
    events: Vec<Event<Vec<u8>>>,
    /// Whether those outside all loops were kept.
    kept: bool,
    loops: Vec<Level>,
}

impl Saved {
    /// Bytes of the messages in it.
    pub fn bytes(&self) -> usize {
        let bytes = |event: &Event<Vec<u8>>| match event {
            Event::Came(_, _, bytes) => bytes.len(),
            _ => 0,
        };
        self.events.iter().map(bytes).sum()
    }
}

impl<B> Default for Journal<B> {
    fn default() -> Journal<B> {
        Journal {
            events: Vec::new(),
            next: 0,
            marks: Vec::new(),
            kept: vec![true],
            ahead: Vec::new(),
        }
    }
}

impl<B: From<Vec<u8>> + Clone> Journal<B> {
    /// That of a start that goes on from what was saved.
    pub fn restored(saved: Saved) -> Journal<B> {
        let own = |event| match event {
            Event::Sent(to, tag, length, check) => Event::Sent(to, tag, length, check),
            Event::Came(from, tag, bytes) => Event::Came(from, tag, B::from(bytes)),
            Event::Chose(choice) => Event::Chose(choice),
        };
        Journal {
            events: saved.events.into_iter().map(own).collect(),
            next: 0,
            marks: Vec::new(),
            kept: vec![saved.kept],
            ahead: saved.loops.into_iter().map(Some).collect(),
        }
    }

    /// The present events have happened before.
    pub fn repeats(&self) -> bool {
        self.next < self.events.len()
    }

    /// The next event, which happens again.
    pub fn repeat(&mut self) -> Option<&Event<B>> {
        self.next += 1;
        self.events.get(self.next - 1)
    }

    /// Events that happen now are kept.
    pub fn keeps(&self) -> bool {
        self.kept.last() == Some(&true)
    }

    /// Something has happened for the first time.
    pub fn happened(&mut self, event: Event<B>) {
        if self.keeps() {
            self.events.push(event);
            self.next = self.events.len();
        }
    }

    /// A loop begins, or goes on.
    pub fn begin_loop(&mut self) {
        let level = self.ahead.get(self.marks.len()).copied().flatten();
        self.marks.push(self.next);
        self.kept.push(level.is_none_or(|level| level.kept));
    }

    /// The loop of this depth is at a turn: those within are over, and, if it is another turn than
    /// before, so is all that happened in it.
    pub fn turn(&mut self, depth: usize, another: bool) {
        self.marks.truncate(depth + 1);
        self.kept.truncate(depth + 2);
        if another {
            self.drop_from(depth);
            self.kept[depth + 1] = true;
            self.ahead.clear();
        } else if let Some(level) = self.ahead.get_mut(depth) {
            // This is the loop in which it was saved. Later ones of its depth are others.
            *level = None;
        }
    }

    /// The loop of this depth is over. If nothing was done in it, the events after it may have yet to
    /// happen again.
    pub fn end_loop(&mut self, depth: usize) {
        if !self.repeats() {
            self.drop_from(depth);
        }
        self.marks.truncate(depth);
        self.kept.truncate(depth + 1);
    }

    fn drop_from(&mut self, depth: usize) {
        if let Some(mark) = self.marks.get(depth) {
            self.events.truncate(*mark);
            self.next = self.next.min(*mark);
        }
    }

    /// A safe point of the program's own. What was kept of this turn and did not happen again is done
    /// by the program's state; loops within it have yet to come.
    pub fn point(&mut self) {
        let within = self.ahead.get(self.marks.len()).copied().flatten();
        let mark = within.map_or(self.events.len(), |level| level.mark.min(self.events.len()));
        self.next = self.next.max(mark);
        if let Some(kept) = self.kept.last_mut() {
            *kept = false;
        }
    }

    /// The journal for an image. `bytes` reads messages where they lie; they stay in the journal from
    /// now on.
    pub fn save(&mut self, mut bytes: impl FnMut(&B) -> Vec<u8>) -> Saved {
        let mut events = Vec::new();
        for event in &mut self.events {
            events.push(match event {
                Event::Sent(to, tag, length, check) => Event::Sent(*to, *tag, *length, *check),
                Event::Came(from, tag, place) => {
                    let bytes = bytes(place);
                    *place = B::from(bytes.clone());
                    Event::Came(*from, *tag, bytes)
                }
                Event::Chose(choice) => Event::Chose(*choice),
            });
        }
        let levels = self.marks.iter().zip(&self.kept[1..]);
        let loops = levels.map(|(mark, kept)| Level { mark: *mark, kept: *kept }).collect();
        Saved { events, kept: self.kept[0], loops }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::Turns;

    /// A program with messages before its loops, between them, and in their turns, before a loop
    /// within. `log`: what others see of it.
    struct Program<'a> {
        turns: Turns,
        journal: Journal<Vec<u8>>,
        log: &'a mut Vec<u32>,
        /// Events that may still happen until it is killed.
        budget: u32,
        /// Before this loop there is a safe point of its own.
        point: u32,
        /// The last safe point: loops, journal, and events until then.
        image: (Vec<u8>, Saved, usize),
    }

    impl Program<'_> {
        fn event(&mut self, number: u32) -> Option<()> {
            if self.journal.repeats() {
                let sent = Event::Sent(number, 0, 0, 0);
                assert_eq!(self.journal.repeat(), Some(&sent));
                return Some(());
            }
            self.budget = self.budget.checked_sub(1)?;
            self.log.push(number);
            self.journal.happened(Event::Sent(number, 0, 0, 0));
            Some(())
        }

        fn turn(&mut self, depth: usize, turn: u64) {
            let another = self.turns.turn(depth, turn);
            self.journal.turn(depth, another);
            self.image = (self.turns.encode(), self.journal.save(Clone::clone), self.log.len());
        }

        fn begin(&mut self, turns: u64) -> (usize, u64) {
            self.journal.begin_loop();
            self.turns.begin(turns)
        }

        fn end(&mut self, depth: usize) {
            self.turns.end(depth);
            self.journal.end_loop(depth);
        }

        fn run(&mut self) -> Option<()> {
            self.event(1)?;
            for round in 1..3 {
                if round == self.point {
                    self.journal.point();
                }
                let (outer, from) = self.begin(3);
                for turn in from..3 {
                    self.turn(outer, turn);
                    let number = 100 * round + 10 * turn as u32;
                    self.event(number)?;
                    let (inner, from) = self.begin(2);
                    for within in from..2 {
                        self.turn(inner, within);
                        self.event(number + 1 + within as u32)?;
                    }
                    self.end(inner);
                    self.event(number + 5)?;
                }
                self.end(outer);
                // Behind its own point, the program's state says what was done outside loops.
                if self.point == 0 {
                    self.event(1_000 * round)?;
                }
            }
            Some(())
        }
    }

    #[test]
    fn nobody_sees_anything_twice_wherever_a_start_ends() {
        let run = |budget: u32, point: u32| {
            let (mut log, mut image) = (Vec::new(), None::<(Vec<u8>, Saved, usize)>);
            for _ in 0..100 {
                let (turns, journal) = match &image {
                    Some((turns, saved, length)) => {
                        // Others have seen what was not saved: it is sent with the same number.
                        log.truncate(*length);
                        (Turns::decode(turns).unwrap(), Journal::restored(saved.clone()))
                    }
                    None => {
                        log.clear();
                        (Turns::default(), Journal::default())
                    }
                };
                let none = (Vec::new(), Saved::default(), 0);
                let image_now = image.clone().unwrap_or(none);
                let mut program =
                    Program { turns, journal, log: &mut log, budget, point, image: image_now };
                if program.run().is_some() {
                    return log;
                }
                image = Some(program.image).filter(|image| image.2 > 0);
            }
            panic!("it never ends with {budget} events at a time");
        };
        for (point, events) in [(0, 27), (1, 25)] {
            let undisturbed = run(1_000, point);
            assert_eq!(undisturbed.len(), events);
            for budget in 3..27 {
                assert_eq!(run(budget, point), undisturbed, "{budget} events at a time, {point}");
            }
        }
    }

    #[test]
    fn a_later_loop_of_the_same_depth_is_another_one() {
        let mut journal = Journal::<Vec<u8>>::default();
        journal.begin_loop();
        journal.turn(0, false);
        journal.point();
        let mut again = Journal::<Vec<u8>>::restored(journal.save(Clone::clone));
        again.begin_loop();
        again.turn(0, false);
        again.end_loop(0);
        again.begin_loop();
        again.turn(0, false);
        again.happened(Event::Sent(1, 0, 4, 0));
        assert_eq!(again.save(Clone::clone).events.len(), 1, "its turn has had no point");
    }

    #[test]
    fn a_safe_point_of_its_own_ends_what_is_repeated() {
        let mut journal = Journal::<Vec<u8>>::default();
        journal.happened(Event::Came(3, 7, b"parameters".to_vec()));
        journal.point();
        journal.happened(Event::Sent(1, 0, 4, 0));
        let saved = journal.save(Clone::clone);
        assert_eq!(saved.bytes(), 10);
        let mut again = Journal::<Vec<u8>>::restored(saved);
        let came = Event::Came(3, 7, b"parameters".to_vec());
        assert_eq!(again.repeat(), Some(&came));
        assert!(!again.repeats());
        again.happened(Event::Sent(1, 0, 4, 0));
        assert!(!again.repeats(), "the program's state says that it was sent");
        assert_eq!(again.save(Clone::clone).events, [came]);
    }
}
