//! Choices of ranks, for their next starts.

use std::collections::{BTreeMap, VecDeque};

use wire::Member;
use wire::agents::Start;
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
    /// The rank runs here, and this agent is to have its choices as well.
    partner: Option<Member>,
    /// The rank runs there.
    of: Option<Member>,
}

impl Noted {
    fn last(&self) -> u64 {
        self.after + self.choices.len() as u64
    }
}

/// All choices that are noted here.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeMap<RankId, Noted>);

impl Notes {
    /// A rank's start has made these. `oldest`: earlier ones are not needed. Returns the last one that
    /// is noted; `None`: a later start has read the notes by now, or some are missing.
    pub fn note(
        &mut self,
        rank: RankId,
        start: u64,
        (said, oldest): (Choices, bool),
    ) -> Option<u64> {
        let noted = self.0.entry(rank).or_default();
        if start < noted.start {
            return None;
        }
        if said.after > noted.last() && (oldest || noted.choices.is_empty()) {
            noted.choices.clear();
            noted.after = said.after;
        }
        noted.start = start;
        let known = usize::try_from(noted.last().checked_sub(said.after)?).ok()?;
        noted.choices.extend(said.choices.into_iter().skip(known));
        Some(noted.last())
    }

    /// The rank runs at that agent, which is to hear how far its choices are noted.
    pub fn set_of(&mut self, rank: RankId, of: Member) {
        if let Some(noted) = self.0.get_mut(&rank) {
            (noted.of, noted.partner) = (Some(of), None);
        }
    }

    /// The ranks of that agent: how far their choices are noted.
    pub fn noted_of(&self, of: Member) -> Vec<(Start, u64)> {
        let its = self.0.iter().filter(|(_, noted)| noted.of == Some(of));
        let start = |(rank, noted): (&RankId, &Noted)| (start(*rank, noted.start), noted.last());
        its.map(start).collect()
    }

    /// This agent is to have the choices of a rank here. True: it is another one than before.
    pub fn set_partner(&mut self, rank: RankId, partner: Member) -> bool {
        let Some(noted) = self.0.get_mut(&rank) else { return false };
        noted.partner.replace(partner) != Some(partner)
    }

    /// The ranks here whose choices another agent is to have, each with that agent.
    pub fn own(&self) -> Vec<(RankId, Member)> {
        self.0.iter().filter_map(|(rank, noted)| Some((*rank, noted.partner?))).collect()
    }

    /// All that is noted of a rank, in pieces, and by which start.
    pub fn of(&mut self, rank: RankId) -> (u64, Vec<Choices>) {
        let Some(noted) = self.0.get_mut(&rank) else { return (0, Vec::new()) };
        let mut after = noted.after;
        let choices = noted.choices.make_contiguous();
        let pieces = choices.chunks(MAX_CHOICES / 2).map(|piece| {
            let choices = Choices { after, choices: piece.to_vec() };
            after += piece.len() as u64;
            choices
        });
        (noted.start, pieces.collect())
    }

    /// Whether this is the start that makes choices.
    pub fn is_by(&self, rank: RankId, start: u64) -> bool {
        self.0.get(&rank).is_some_and(|noted| noted.start == start)
    }

    /// A later start of a rank begins: its earlier ones note nothing any more. It gets the number
    /// before the first that is noted, how many are, and they, in pieces.
    pub fn begin(&mut self, rank: RankId, start: u64) -> (u64, u64, Vec<Choices>) {
        let noted = self.0.entry(rank).or_default();
        noted.start = noted.start.max(start);
        let (after, many) = (noted.after, noted.choices.len() as u64);
        (after, many, self.of(rank).1)
    }

    /// Another agent has these, which may be more than there are here.
    pub fn adopt(&mut self, rank: RankId, others: Choices) {
        let noted = self.0.entry(rank).or_default();
        if others.after + others.choices.len() as u64 > noted.last() {
            (noted.after, noted.choices) = (others.after, others.choices.into());
        }
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

fn start((job, rank): RankId, start: u64) -> Start {
    Start { job, rank, start }
}

#[cfg(test)]
mod tests {
    use wire::{Incarnation, NodeId};

    use super::*;

    fn choices(after: u64, to: u64) -> Choices {
        Choices { after, choices: (after + 1..=to).map(Choice::Number).collect() }
    }

    #[test]
    fn a_later_start_gets_what_earlier_ones_have_noted() {
        let (mut notes, rank) = (Notes::default(), (7, 0));
        assert_eq!(notes.begin(rank, 1), (0, 0, vec![]));
        let note = |notes: &mut Notes, start, after, to| {
            notes.note(rank, start, (choices(after, to), false))
        };
        assert_eq!(note(&mut notes, 1, 0, 3), Some(3));
        assert_eq!(note(&mut notes, 1, 2, 5), Some(5), "some are said twice");
        assert_eq!(note(&mut notes, 1, 7, 9), None, "some are missing");
        notes.forget(rank, 2);
        assert_eq!(notes.begin(rank, 2), (2, 3, vec![choices(2, 5)]));
        assert_eq!(note(&mut notes, 1, 5, 6), None, "that start is over");
        assert_eq!(note(&mut notes, 2, 5, 6), Some(6));
        assert!(notes.is_by(rank, 2) && !notes.is_by(rank, 1));
        assert_eq!(notes.note(rank, 2, (choices(8, 9), true)), Some(9), "7 and 8 are needless");
        notes.keep(|job| job != 7);
        assert_eq!(note(&mut notes, 3, 6, 8), Some(8), "it has moved here");
        notes.adopt(rank, choices(5, 7));
        assert_eq!(notes.begin(rank, 4), (6, 2, vec![choices(6, 8)]));
        notes.adopt(rank, choices(5, 9));
        assert_eq!(notes.begin(rank, 5), (5, 4, vec![choices(5, 9)]));
        notes.forget(rank, 9);
        assert_eq!(notes.begin(rank, 6), (9, 0, vec![]), "none is needed, and that is told");
    }

    #[test]
    fn a_partner_that_is_another_one_gets_all() {
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        let (mut notes, rank) = (Notes::default(), (7, 0));
        assert!(!notes.set_partner(rank, member(2)), "there is nothing yet");
        notes.note(rank, 1, (choices(0, 3), false));
        assert!(notes.set_partner(rank, member(2)) && !notes.set_partner(rank, member(2)));
        assert_eq!((notes.own(), notes.of(rank)), (vec![(rank, member(2))], (1, vec![choices(0, 3)])));
        assert!(notes.set_partner(rank, member(3)));
        notes.set_of(rank, member(4));
        assert!(notes.own().is_empty());
        let start = Start { job: 7, rank: 0, start: 1 };
        assert_eq!(notes.noted_of(member(4)), [(start, 3)]);
    }
}
