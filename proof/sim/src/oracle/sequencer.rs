//! Ordering a second time: a sequencer that never fails, and what it would have handed out.
//!
//! It is given the log of every life after a run: what it sent, was delivered, and in which
//! configurations. For each ring it makes the one list of messages that a central sequencer would
//! have given numbers to, which is the union of all logs, and then works out from the list and the
//! configurations alone what each life must have been handed:
//!
//! - in a regular configuration, the beginning of the list;
//! - by the time it goes on with others to the next ring, of the list whatever any of them has, in
//!   order: up to the first message that none of them has this is again the beginning of the list;
//! - of its own messages, the first, the second, and so on, over all rings;
//! - of what any member of a configuration was handed there as safe, all, unless it failed.
//!
//! There are no windows, tokens, timers or retransmissions here, and nothing of the checkers in
//! `check/evs`: a mistake would have to be made twice.

use std::collections::{BTreeMap, BTreeSet};

use ring::{Configuration, ConfigurationKind};
use wire::{Member, RingId};

use crate::check::evs::{Delivered, Level, MessageId};
use crate::check::{Verdict, demand};

const PROPERTY: &str = "the oracle's order";

/// The deliveries to one life in one ring.
#[derive(Clone, Debug, Default)]
struct Term {
    ring: RingId,
    /// Delivered in the regular configuration, then in the transitional one.
    delivered: Vec<MessageId>,
    regular: usize,
    safe: BTreeSet<MessageId>,
    members: Vec<Member>,
    together: Vec<Member>,
    next: Option<RingId>,
}

/// The logs of all lives.
#[derive(Default)]
pub struct Sequencer {
    /// Where messages are in the list of their ring.
    lists: BTreeMap<RingId, BTreeSet<(u64, u64, Member)>>,
    terms: BTreeMap<Member, Vec<Term>>,
    sent: BTreeMap<Member, u64>,
    failed: BTreeSet<Member>,
}

impl Sequencer {
    /// A life has sent its next message: so many are sent now.
    pub fn multicast(&mut self, (sender, count): MessageId) {
        self.sent.insert(sender, count);
    }

    /// A life was handed a message.
    pub fn delivered(&mut self, delivered: &Delivered) {
        let Delivered { by, message, ring, sequence, level, .. } = *delivered;
        self.lists.entry(ring).or_default().insert((sequence, message.1, message.0));
        let Some(term) = self.terms.entry(by).or_default().last_mut() else { return };
        term.delivered.push(message);
        if term.together.is_empty() {
            term.regular = term.delivered.len();
        }
        if level == Level::Safe {
            term.safe.insert(message);
        }
    }

    /// A life was told of a configuration.
    pub fn configured(&mut self, by: Member, configuration: &Configuration) {
        let terms = self.terms.entry(by).or_default();
        match (configuration.kind, terms.last_mut()) {
            (ConfigurationKind::Transitional, Some(term)) => {
                term.together = configuration.members.clone();
            }
            (ConfigurationKind::Transitional, None) => {}
            (ConfigurationKind::Regular, last) => {
                if let Some(term) = last {
                    term.next = Some(configuration.ring);
                }
                let members = configuration.members.clone();
                terms.push(Term { ring: configuration.ring, members, ..Term::default() });
            }
        }
    }

    /// A life has failed.
    pub fn died(&mut self, member: Member) {
        self.failed.insert(member);
    }

    /// Compares. `alive`: lives that have come to the end, all being well.
    pub fn judge(&self, alive: &[Member]) -> Verdict {
        let mut given = BTreeSet::new();
        for (ring, list) in &self.lists {
            for &(_, count, sender) in list {
                demand(given.insert((sender, count)), PROPERTY, || {
                    format!("{sender}'s message {count} has two places, one of them in {ring}")
                })?;
            }
        }
        let had =
            |terms: &Vec<Term>| terms.iter().flat_map(|term| term.delivered.clone()).collect();
        let had = self.terms.iter().map(|(&by, terms)| (by, had(terms))).collect();
        for (&by, terms) in &self.terms {
            for term in terms {
                self.judge_term(by, term)?;
                self.judge_safe(by, term, &had)?;
            }
            self.judge_own(by, terms, alive.contains(&by))?;
        }
        Ok(())
    }

    fn judge_term(&self, by: Member, term: &Term) -> Verdict {
        let ring = term.ring;
        let list: Vec<MessageId> = self
            .lists
            .get(&ring)
            .map(|list| list.iter().map(|&(_, count, sender)| (sender, count)).collect())
            .unwrap_or_default();
        let regular = &term.delivered[..term.regular];
        demand(list.starts_with(regular), PROPERTY, || {
            let at = list.iter().zip(regular).take_while(|(due, was)| due == was).count();
            format!("{by} in {ring}: {at} as they should be, then not {:?}", list.get(at))
        })?;
        let Some(next) = term.next else { return Ok(()) };
        let known: BTreeSet<MessageId> = self
            .companions(term, next)
            .flat_map(|companion| companion.delivered.iter().copied())
            .collect();
        let due = list.iter().filter(|message| known.contains(message));
        demand(due.clone().eq(&term.delivered), PROPERTY, || {
            let at = due.clone().zip(&term.delivered).take_while(|(due, was)| due == was).count();
            let due = due.clone().nth(at);
            format!("{by} goes from {ring} to {next}: {at} as they should be, then not {due:?}")
        })
    }

    /// A message that was safe for one life is delivered by all.
    fn judge_safe(
        &self,
        by: Member,
        term: &Term,
        had: &BTreeMap<Member, BTreeSet<MessageId>>,
    ) -> Verdict {
        for (index, message) in term.delivered.iter().enumerate() {
            let to = if index < term.regular { &term.members } else { &term.together };
            let lacks = |member: &&Member| {
                let has = had.get(*member).is_some_and(|had| had.contains(message));
                !has && !self.failed.contains(*member)
            };
            let safe = term.safe.contains(message);
            let missing = to.iter().filter(|_| safe).find(lacks);
            demand(missing.is_none(), PROPERTY, || {
                format!("{by} was handed {message:?} as safe, and {missing:?} never")
            })?;
        }
        Ok(())
    }

    /// The terms in the same ring of those who go on with this one.
    fn companions<'a>(&'a self, term: &'a Term, next: RingId) -> impl Iterator<Item = &'a Term> {
        let same = move |other: &&Term| other.ring == term.ring && other.next == Some(next);
        term.together.iter().filter_map(move |member| self.terms.get(member)?.iter().find(same))
    }

    /// A life's own messages come back to it one after the other, and all of them in the end.
    fn judge_own(&self, by: Member, terms: &[Term], alive: bool) -> Verdict {
        let all = terms.iter().flat_map(|term| &term.delivered);
        let own: Vec<u64> =
            all.filter(|message| message.0 == by).map(|message| message.1).collect();
        let sent = self.sent.get(&by).copied().unwrap_or_default();
        let due = if alive { sent } else { own.len() as u64 };
        demand(own.iter().copied().eq(1..=due), PROPERTY, || {
            format!("{by} sent {sent} messages and was handed of them {own:?}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::evs::samples::{configuration, delivered, member};
    use ConfigurationKind::{Regular, Transitional};

    /// Three members in one ring, the first of which has sent three messages.
    fn three() -> Sequencer {
        let mut sequencer = Sequencer::default();
        for node in 1..=3 {
            sequencer.configured(member(node), &configuration(Regular, 4, &[1, 2, 3]));
        }
        for count in 1..=3 {
            sequencer.multicast((member(1), count));
        }
        sequencer
    }

    fn go_on(sequencer: &mut Sequencer, node: u32, together: &[u32]) {
        sequencer.configured(member(node), &configuration(Transitional, 4, together));
        sequencer.configured(member(node), &configuration(Regular, 5, together));
    }

    #[test]
    fn a_hole_in_a_regular_configuration_is_seen() {
        let mut sequencer = three();
        for count in 1..=3 {
            sequencer.delivered(&delivered(1, (1, count), count));
        }
        sequencer.delivered(&delivered(2, (1, 1), 1));
        assert!(sequencer.judge(&[member(1)]).is_ok());
        sequencer.delivered(&delivered(2, (1, 3), 3));
        assert!(sequencer.judge(&[member(1)]).is_err());
    }

    #[test]
    fn companions_hand_each_other_what_they_have() {
        let mut sequencer = three();
        for count in 1..=3 {
            sequencer.delivered(&delivered(1, (1, count), count));
        }
        sequencer.delivered(&delivered(2, (1, 1), 1));
        go_on(&mut sequencer, 2, &[2]);
        assert!(sequencer.judge(&[]).is_ok(), "alone it has nobody to have more from");
        let mut sequencer = three();
        for (node, count) in [(1, 1), (1, 2), (2, 1)] {
            sequencer.delivered(&delivered(node, (1, count), count));
        }
        go_on(&mut sequencer, 1, &[1, 2]);
        go_on(&mut sequencer, 2, &[1, 2]);
        assert!(sequencer.judge(&[]).is_err(), "the other had the second");
    }

    #[test]
    fn own_messages_come_back_all_and_in_order() {
        let mut sequencer = three();
        for count in 1..=2 {
            sequencer.delivered(&delivered(1, (1, count), count));
        }
        assert!(sequencer.judge(&[]).is_ok());
        assert!(sequencer.judge(&[member(1)]).is_err(), "the third is missing");
        sequencer.delivered(&delivered(1, (1, 3), 9));
        assert!(sequencer.judge(&[member(1)]).is_ok());
    }

    #[test]
    fn what_was_safe_for_one_is_there_for_all() {
        let mut sequencer = three();
        let safe = |by| Delivered { level: Level::Safe, ..delivered(by, (1, 1), 1) };
        sequencer.delivered(&safe(1));
        sequencer.delivered(&safe(2));
        assert!(sequencer.judge(&[]).is_err());
        sequencer.died(member(3));
        assert!(sequencer.judge(&[]).is_ok());
    }

    #[test]
    fn a_message_has_one_place() {
        let mut sequencer = three();
        sequencer.delivered(&delivered(1, (1, 1), 1));
        sequencer.delivered(&delivered(2, (1, 1), 2));
        assert!(sequencer.judge(&[]).is_err());
    }
}
