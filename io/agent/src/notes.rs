//! Choices of ranks, for their next starts.

use std::collections::{BTreeMap, VecDeque};

use wire::rank::{Choice, Choices, MAX_CHOICES};

use crate::exchange::RankId;

/// The choices of one rank.
#[derive(Debug, Default)]
struct Noted {
    /// The start that makes them.
    start: u64,
    /// Those up to this one are needed no more.
    after: u64,
    choices: VecDeque<Choice>,
}

/// All choices that are noted here.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<RankId, Noted>);

impl Notes {
    /// A rank's start has made these. Returns the last one that is noted; `None`: a later start has
    /// read the notes by now, or some are missing.
    pub fn note(&mut self, rank: RankId, start: u64, said: Choices) -> Option<u64> {
        let noted = self.0.entry(rank).or_default();
        if start < noted.start {
            return None;
        }
        noted.start = start;
        let last = noted.after + noted.choices.len() as u64;
        if noted.choices.is_empty() && said.after > last {
            noted.after = said.after;
        }
        let last = noted.after + noted.choices.len() as u64;
        let known = usize::try_from(last.checked_sub(said.after)?).ok()?;
        noted.choices.extend(said.choices.into_iter().skip(known));
        Some(noted.after + noted.choices.len() as u64)
    }

    /// A later start of a rank begins: its earlier ones note nothing any more. It gets what is noted,
    /// in pieces.
    pub fn begin(&mut self, rank: RankId, start: u64) -> (u64, Vec<Choices>) {
        let noted = self.0.entry(rank).or_default();
        noted.start = noted.start.max(start);
        let mut after = noted.after;
        let choices = noted.choices.make_contiguous();
        let pieces = choices.chunks(MAX_CHOICES).map(|piece| {
            let choices = Choices { after, choices: piece.to_vec() };
            after += piece.len() as u64;
            choices
        });
        (choices.len() as u64, pieces.collect())
    }

    /// No start will need those up to this one.
    pub fn forget(&mut self, rank: RankId, until: u64) {
        let Some(noted) = self.0.get_mut(&rank) else { return };
        let many = until.saturating_sub(noted.after).min(noted.choices.len() as u64);
        noted.choices.drain(..many as usize);
        noted.after += many;
    }

    /// Only these jobs go on.
    pub fn keep(&mut self, jobs: impl Fn(u64) -> bool) {
        self.0.retain(|(job, _), _| jobs(*job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(after: u64, to: u64) -> Choices {
        Choices { after, choices: (after + 1..=to).map(Choice::Number).collect() }
    }

    #[test]
    fn a_later_start_gets_what_earlier_ones_have_noted() {
        let (mut notes, rank) = (Notes::default(), (7, 0));
        assert_eq!(notes.begin(rank, 1), (0, vec![]));
        assert_eq!(notes.note(rank, 1, choices(0, 3)), Some(3));
        assert_eq!(notes.note(rank, 1, choices(2, 5)), Some(5), "some are said twice");
        assert_eq!(notes.note(rank, 1, choices(7, 9)), None, "some are missing");
        notes.forget(rank, 2);
        assert_eq!(notes.begin(rank, 2), (3, vec![choices(2, 5)]));
        assert_eq!(notes.note(rank, 1, choices(5, 6)), None, "that start is over");
        assert_eq!(notes.note(rank, 2, choices(5, 6)), Some(6));
        notes.keep(|job| job != 7);
        assert_eq!(notes.note(rank, 3, choices(6, 8)), Some(8), "it has moved here");
        assert_eq!(notes.begin(rank, 4), (2, vec![choices(6, 8)]));
    }
}
