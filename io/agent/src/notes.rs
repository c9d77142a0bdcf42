//! Choices of ranks, for their next starts.

use std::collections::{BTreeMap, VecDeque};

use wire::Member;
use wire::agents::Start;
use wire::rank::{Choice, Choices, MAX_CHOICES};

use crate::exchange::RankId;

/// The choices of one rank.
#[derive(Debug, Default)]
struct Noted {
    /// The start that makes them, and the first one that counts.
    start: u64,
    since: u64,
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
    /// The choices of a rank. Those of starts that count no more are nothing.
    fn entry(&mut self, rank: RankId, since: u64) -> &mut Noted {
        let noted = self.0.entry(rank).or_default();
        if since > noted.since {
            *noted = Noted { start: noted.start, since, ..Noted::default() };
        }
        noted
    }

    /// A rank's start has made these. `oldest`: no earlier ones are needed than these and those that are
    /// here behind them. Returns the last one that is noted; `None`: a later start has read the notes
    /// by now, or some are missing.
    pub fn note(
        &mut self,
        rank: RankId,
        (start, since): (u64, u64),
        (said, oldest): (Choices, bool),
    ) -> Option<u64> {
        let noted = self.entry(rank, since);
        // Words of a start that is over may come after all ranks have gone back.
        if start < noted.start.max(noted.since) {
            return None;
        }
        noted.start = start;
        let end = said.after + said.choices.len() as u64;
        let (after, last) = (noted.after, noted.last());
        let between = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(0);
        if end < after || said.after > last && !oldest {
            return None;
        }
        if said.after > last {
            (noted.after, noted.choices) = (said.after, said.choices.into());
        } else if said.after < after && oldest {
            let known = between(after, end).min(noted.choices.len());
            let behind = noted.choices.split_off(known);
            (noted.after, noted.choices) = (said.after, said.choices.into());
            noted.choices.extend(behind);
        } else {
            noted.choices.extend(said.choices.into_iter().skip(between(said.after, last)));
        }
        Some(noted.last())
    }

    /// The choice before the first one that is here.
    pub fn after(&self, rank: RankId) -> u64 {
        self.0.get(&rank).map_or(0, |noted| noted.after)
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
        let start = |(rank, noted): (&RankId, &Noted)| (start(*rank, noted), noted.last());
        its.map(start).collect()
    }

    /// This agent is to have the choices of a rank here, or none is. True: it is another one than
    /// before.
    pub fn set_partner(&mut self, rank: RankId, partner: Option<Member>) -> bool {
        let Some(noted) = self.0.get_mut(&rank) else { return false };
        noted.of = None;
        std::mem::replace(&mut noted.partner, partner) != partner
    }

    /// All ranks of which something is noted, each with the agent that is to have it as well.
    pub fn ranks(&self) -> Vec<(RankId, Option<Member>)> {
        self.0.iter().map(|(rank, noted)| (*rank, noted.partner)).collect()
    }

    /// The last choice of a rank that is noted here.
    pub fn last(&self, rank: RankId) -> u64 {
        self.0.get(&rank).map_or(0, Noted::last)
    }

    /// All that is noted of a rank, in pieces, and by which start.
    pub fn of(&mut self, rank: RankId) -> Option<(Start, Vec<Choices>)> {
        let noted = self.0.get_mut(&rank)?;
        let mut after = noted.after;
        let choices = noted.choices.make_contiguous();
        let pieces = choices.chunks(MAX_CHOICES / 2).map(|piece| {
            let choices = Choices { after, choices: piece.to_vec() };
            after += piece.len() as u64;
            choices
        });
        let pieces = pieces.collect();
        Some((start(rank, noted), pieces))
    }

    /// Whether this is the start that makes choices.
    pub fn is_by(&self, rank: RankId, start: u64) -> bool {
        self.0.get(&rank).is_some_and(|noted| noted.start == start)
    }

    /// A later start of a rank begins: its earlier ones note nothing any more. It gets the number
    /// before the first that is noted, how many are, and they, in pieces.
    pub fn begin(&mut self, rank: RankId, (start, since): (u64, u64)) -> (u64, u64, Vec<Choices>) {
        let noted = self.entry(rank, since);
        noted.start = noted.start.max(start);
        let (after, many) = (noted.after, noted.choices.len() as u64);
        (after, many, self.of(rank).map_or_else(Vec::new, |(_, pieces)| pieces))
    }

    /// Another agent has these, which may be more than there are here.
    pub fn adopt(&mut self, rank: RankId, since: u64, others: Choices) {
        let noted = self.entry(rank, since);
        if others.after + others.choices.len() as u64 > noted.last() {
            (noted.after, noted.choices) = (others.after, others.choices.into());
        }
    }

    /// No start will need those up to this one, of those that count since then.
    pub fn forget(&mut self, rank: RankId, since: u64, until: u64) {
        let noted = self.0.get_mut(&rank).filter(|noted| noted.since == since);
        let Some(noted) = noted else { return };
        let many = until.saturating_sub(noted.after).min(noted.choices.len() as u64);
        noted.choices.drain(..many as usize);
        noted.after += many;
    }

    /// Only these jobs go on.
    pub fn keep(&mut self, jobs: impl Fn(u64) -> bool) {
        self.0.retain(|(job, _), _| jobs(*job));
    }
}

fn start((job, rank): RankId, noted: &Noted) -> Start {
    Start { job, rank, start: noted.start, since: noted.since }
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
        assert_eq!(notes.begin(rank, (1, 0)), (0, 0, vec![]));
        let note = |notes: &mut Notes, start, after, to| {
            notes.note(rank, (start, 0), (choices(after, to), false))
        };
        assert_eq!(note(&mut notes, 1, 0, 3), Some(3));
        assert_eq!(note(&mut notes, 1, 2, 5), Some(5), "some are said twice");
        assert_eq!(note(&mut notes, 1, 7, 9), None, "some are missing");
        notes.forget(rank, 0, 2);
        assert_eq!(notes.begin(rank, (2, 0)), (2, 3, vec![choices(2, 5)]));
        assert_eq!(note(&mut notes, 1, 5, 6), None, "that start is over");
        assert_eq!(note(&mut notes, 2, 5, 6), Some(6));
        assert!(notes.is_by(rank, 2) && !notes.is_by(rank, 1));
        assert_eq!(
            notes.note(rank, (2, 0), (choices(8, 9), true)),
            Some(9),
            "7 and 8 are needless"
        );
        notes.keep(|job| job != 7);
        assert_eq!(note(&mut notes, 3, 6, 8), None, "only the oldest begin");
        assert_eq!(notes.note(rank, (3, 0), (choices(6, 8), true)), Some(8), "it has moved here");
        assert_eq!(notes.note(rank, (3, 0), (choices(4, 7), true)), Some(8), "two were missing");
        assert_eq!(notes.begin(rank, (3, 0)), (4, 4, vec![choices(4, 8)]));
        notes.forget(rank, 0, 6);
        notes.adopt(rank, 0, choices(5, 7));
        assert_eq!(notes.begin(rank, (4, 0)), (6, 2, vec![choices(6, 8)]));
        notes.adopt(rank, 0, choices(5, 9));
        assert_eq!(notes.begin(rank, (5, 0)), (5, 4, vec![choices(5, 9)]));
        notes.forget(rank, 0, 9);
        assert_eq!(notes.begin(rank, (6, 0)), (9, 0, vec![]), "none is needed, and that is told");
        // All have gone back: late words of the start before that are nothing.
        assert_eq!(notes.note(rank, (6, 7), (choices(9, 12), true)), None);
        assert_eq!(notes.note(rank, (7, 7), (choices(3, 5), true)), Some(5));
    }

    #[test]
    fn a_partner_that_is_another_one_gets_all() {
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        let (mut notes, rank) = (Notes::default(), (7, 0));
        let set = |notes: &mut Notes, node| notes.set_partner(rank, Some(member(node)));
        assert!(!set(&mut notes, 2), "there is nothing yet");
        notes.note(rank, (1, 0), (choices(0, 3), true));
        assert!(set(&mut notes, 2) && !set(&mut notes, 2));
        assert_eq!((notes.ranks(), notes.last(rank)), (vec![(rank, Some(member(2)))], 3));
        let start = Start { job: 7, rank: 0, start: 1, since: 0 };
        assert_eq!(notes.of(rank), Some((start, vec![choices(0, 3)])));
        assert!(set(&mut notes, 3));
        notes.set_of(rank, member(4));
        assert_eq!(notes.ranks(), [(rank, None)]);
        assert_eq!(notes.noted_of(member(4)), [(start, 3)]);
        // All ranks have gone back.
        assert_eq!(notes.begin(rank, (2, 2)), (0, 0, vec![]));
        assert_eq!(notes.note(rank, (2, 2), (choices(1, 2), true)), Some(2));
    }
}
