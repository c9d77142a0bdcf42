//! Loops, and how far they are. A program that starts again runs from its beginning; its loops go on
//! where they were, by their order, which is the same each time.

use std::collections::BTreeMap;

use wire::rank::Step;

/// A loop's place: its number among the loops of its turn of the loop around it, and so on up to the
/// outermost. As text: "0", or "0.17.1" for the second loop in turn 17 of the first.
type Place = String;

/// Loops of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turns {
    /// The next turn of each loop, and its turns.
    at: BTreeMap<Place, (u64, u64)>,
    /// The loops that run now, the outermost first, each with the number of the next loop within.
    open: Vec<(Place, u64)>,
    /// The next loop outside all.
    outermost: u64,
    /// Turns that were begun, in all loops and all starts from which this one goes on.
    count: u64,
}

impl Turns {
    /// A loop of so many turns begins, or goes on: its depth, and its next turn.
    pub fn begin(&mut self, turns: u64) -> (usize, u64) {
        let place = match self.open.last_mut() {
            None => {
                self.outermost += 1;
                format!("{}", self.outermost - 1)
            }
            Some((outer, inner)) => {
                *inner += 1;
                let turn = self.at.get(outer).map_or(0, |(next, _)| *next);
                format!("{outer}.{turn}.{}", *inner - 1)
            }
        };
        let at = self.at.entry(place.clone()).or_insert((0, turns));
        // It may be longer or shorter this time.
        at.1 = turns;
        let next = at.0.min(turns);
        self.open.push((place, 0));
        (self.open.len() - 1, next)
    }

    /// The loop of this depth is about to do a turn: all before are done. False: it is the turn at
    /// which it was.
    pub fn turn(&mut self, depth: usize, turn: u64) -> bool {
        // Loops within, which were left, are over with their turn.
        self.open.truncate(depth + 1);
        let Some((place, inner)) = self.open.last_mut() else { return false };
        *inner = 0;
        let at = self.at.get_mut(place).filter(|at| at.0 != turn);
        let Some(at) = at else { return false };
        at.0 = turn;
        self.count += 1;
        let within = format!("{place}.");
        self.at.retain(|other, _| !other.starts_with(&within));
        true
    }

    /// The loop of this depth is over, whether it was left or has done all its turns.
    pub fn end(&mut self, depth: usize) {
        let Some((place, _)) = self.open.get(depth) else { return };
        let place = place.clone();
        self.open.truncate(depth);
        if let Some(at) = self.at.get_mut(&place) {
            at.0 = at.1;
        }
        let within = format!("{place}.");
        self.at.retain(|other, _| !other.starts_with(&within));
    }

    /// How far the rank is: by the outermost loop that runs.
    pub fn step(&self) -> Step {
        let place = self.open.first().map(|(place, _)| place);
        let at = place.and_then(|place| self.at.get(place));
        at.map_or(Step::default(), |(step, steps)| Step { step: *step, steps: *steps })
    }

    /// Loops that run now.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// A safe point outside all loops.
    pub fn point(&mut self) {
        self.count += 1;
    }

    /// Turns of all loops, and other safe points: the number grows as the rank comes further.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A line with the count, and one for each loop: place, next turn, turns.
    pub fn encode(&self) -> Vec<u8> {
        let line =
            |(place, (next, turns)): (&Place, &(u64, u64))| format!("{place} {next} {turns}\n");
        let count = format!("{}\n", self.count);
        std::iter::once(count).chain(self.at.iter().map(line)).collect::<String>().into_bytes()
    }

    /// The loops of a start that goes on from what was encoded; `None`: it was not.
    pub fn decode(bytes: &[u8]) -> Option<Turns> {
        let text = std::str::from_utf8(bytes).ok()?;
        let line = |line: &str| {
            let mut words = line.split(' ');
            let place = words.next()?.to_owned();
            let (next, turns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            words.next().is_none().then_some((place, (next, turns)))
        };
        let mut lines = text.lines();
        let count = lines.next()?.parse().ok()?;
        Some(Turns { at: lines.map(line).collect::<Option<_>>()?, count, ..Turns::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of two loops, the first with a loop within; it is stopped at each place where it may
    /// be, and started again.
    fn run(turns: &mut Turns, seen: &mut Vec<String>, mut budget: u32) -> bool {
        for (number, count) in [3, 2].into_iter().enumerate() {
            let (outer, from) = turns.begin(count);
            for turn in from..count {
                turns.turn(outer, turn);
                let (inner, from) = turns.begin(2);
                for within in from..2 {
                    turns.turn(inner, within);
                    if budget == 0 {
                        return false;
                    }
                    budget -= 1;
                    seen.push(format!("{number} {turn} {within}"));
                }
                turns.end(inner);
            }
            turns.end(outer);
        }
        true
    }

    #[test]
    fn no_turn_is_done_twice_or_left_out_wherever_a_start_ends() {
        let mut undisturbed = Vec::new();
        assert!(run(&mut Turns::default(), &mut undisturbed, 100));
        assert_eq!(undisturbed.len(), 10);
        for budget in 1..10 {
            let (mut turns, mut seen) = (Turns::default(), Vec::new());
            while !run(&mut turns, &mut seen, budget) {
                turns = Turns::decode(&turns.encode()).unwrap();
            }
            assert_eq!(seen, undisturbed, "{budget} turns at a time");
        }
    }

    #[test]
    fn a_loop_that_is_left_is_over() {
        let mut turns = Turns::default();
        let (outer, _) = turns.begin(10);
        turns.turn(outer, 0);
        turns.begin(5);
        turns.turn(outer, 3);
        assert_eq!(turns.step(), Step { step: 3, steps: 10 });
        turns.end(outer);
        assert_eq!((turns.step(), turns.count()), (Step::default(), 1));
        let mut again = Turns::decode(&turns.encode()).unwrap();
        assert_eq!(again.begin(10), (0, 10), "it is passed over");
        assert_eq!(Turns::decode(b"0 1"), None);
    }
}
