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
    /// What was chosen, but for the sender of a message.
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
    /// What was kept where the state was saved.
    restored: Vec<bool>,
}

/// A journal in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saved {
    events: Vec<Event<Vec<u8>>>,
    kept: Vec<bool>,
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
            restored: Vec::new(),
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
        let outside = saved.kept.first().copied().unwrap_or(true);
        Journal {
            events: saved.events.into_iter().map(own).collect(),
            next: 0,
            marks: Vec::new(),
            kept: vec![outside],
            restored: saved.kept,
        }
    }

    /// What happens now has happened before.
    pub fn repeats(&self) -> bool {
        self.next < self.events.len()
    }

    /// The next event, which happens again.
    pub fn repeat(&mut self) -> Option<&Event<B>> {
        self.next += 1;
        self.events.get(self.next - 1)
    }

    /// Something has happened for the first time.
    pub fn happened(&mut self, event: Event<B>) {
        if self.kept.last() == Some(&true) {
            self.events.push(event);
            self.next = self.events.len();
        }
    }

    /// A loop begins, or goes on.
    pub fn begin_loop(&mut self) {
        self.marks.push(self.next);
        let kept = self.restored.get(self.kept.len()).copied();
        self.kept.push(kept.unwrap_or(true));
    }

    /// The loop of this depth is at a turn: those within are over, and, if it is another turn than
    /// before, so is all that happened in it.
    pub fn turn(&mut self, depth: usize, another: bool) {
        self.marks.truncate(depth + 1);
        self.kept.truncate(depth + 2);
        if another {
            self.drop_from(depth);
            self.kept[depth + 1] = true;
            self.restored.clear();
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

    /// A safe point of the program's own.
    pub fn point(&mut self) {
        self.next = self.events.len();
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
        Saved { events, kept: self.kept.clone() }
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
        /// What is saved at each safe point.
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
            self.image =
                (self.turns.encode(), self.journal.save(Clone::clone), self.log.len());
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
                self.event(1_000 * round)?;
            }
            Some(())
        }
    }

    #[test]
    fn nobody_sees_anything_twice_wherever_a_start_ends() {
        let run = |budget: u32| {
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
                    Program { turns, journal, log: &mut log, budget, image: image_now };
                if program.run().is_some() {
                    return log;
                }
                image = Some(program.image).filter(|image| image.2 > 0);
            }
            panic!("it never ends with {budget} events at a time");
        };
        let undisturbed = run(1_000);
        assert_eq!(undisturbed.len(), 27);
        for budget in 3..27 {
            assert_eq!(run(budget), undisturbed, "{budget} events at a time");
        }
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
