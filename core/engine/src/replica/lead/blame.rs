//! Which calls may have killed whoever executed them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::limits::MAX_DEATHS;
use wire::ordered::Trial;
use wire::{Member, NodeId};

/// What is held against a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// Where services died that had been given it, in order.
    pub(crate) deaths: Vec<NodeId>,
    /// One of them may have executed and answered it: it is gone with its node.
    pub(crate) answered: bool,
    /// Another tries it, and has been silent for long.
    pub(crate) beside: bool,
    /// Who led when that was found.
    leader: Option<Member>,
}

/// The calls that are suspected.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// What arrived up to there was given to a leader that is gone with its node.
    ranges: VecDeque<(u64, Blame)>,
    /// Calls that services were given, and did not answer before they died.
    calls: BTreeMap<u64, Blame>,
}

impl Suspects {
    /// What is held against this call.
    pub(super) fn blame(&self, number: u64, arrived: u64) -> Option<&Blame> {
        let range = || self.ranges.iter().find(|(upto, _)| arrived <= *upto);
        self.calls.get(&number).or_else(|| Some(&range()?.1))
    }

    /// All up to this one were executed, and whoever did so lives.
    pub(super) fn clear_upto(&mut self, number: u64) {
        while self.calls.first_entry().is_some_and(|first| *first.key() <= number) {
            self.calls.pop_first();
        }
    }

    /// What arrived before is settled.
    pub(super) fn clear_before(&mut self, arrived: u64) {
        while self.ranges.front().is_some_and(|(upto, _)| *upto < arrived) {
            self.ranges.pop_front();
        }
    }

    /// A service died here that had been given this call, and its node lives and says so.
    pub(super) fn accuse(
        &mut self,
        number: u64,
        arrived: Option<u64>,
        node: NodeId,
        leader: Option<Member>,
    ) {
        let before = self.blame(number, arrived.unwrap_or(u64::MAX)).cloned();
        let mut blame = before.unwrap_or(Blame { leader, ..Blame::default() });
        if blame.deaths.len() < MAX_DEATHS {
            blame.deaths.push(node);
        }
        self.calls.insert(number, blame);
    }

    /// A service died while it tried this call, alone.
    /// `arrived`: when the call did.
    pub(super) fn died_in_trial(
        &mut self,
        (number, arrived): (u64, u64),
        trial: Trial,
        leader: Option<Member>,
    ) {
        let Trial { node, mut deaths, mut answered, .. } = trial;
        // What was found out since the trial was asked for counts as well. Of a leader that went by
        // its own will there is no death (simulator world `poison`, seed 3934: it answered the call
        // on its way out).
        if let Some(blame) = self.blame(number, arrived) {
            answered |= blame.answered && (deaths.is_empty() || blame.deaths.len() > deaths.len());
            if blame.deaths.len() > deaths.len() {
                deaths = blame.deaths.clone();
            }
        }
        if deaths.len() < MAX_DEATHS {
            deaths.push(node);
        }
        self.calls.insert(number, Blame { deaths, answered, leader, beside: false });
    }

    /// Who tried this call, which arrived then, has given that up.
    pub(super) fn give_up(
        &mut self,
        (number, arrived): (u64, u64),
        trial: Trial,
        leader: Option<Member>,
    ) {
        let Trial { deaths, mut answered, .. } = trial;
        let blamed = |blame: &Blame| blame.answered && deaths.is_empty();
        answered |= self.blame(number, arrived).is_some_and(blamed);
        self.calls.insert(number, Blame { deaths, answered, leader, beside: false });
    }

    /// The leader of what arrived up to there is gone, with its node if it has `died`, `first`
    /// being the first that is not proven.
    pub(super) fn suspect(&mut self, upto: u64, first: u64, member: Member, died: bool) {
        // It may have answered what another tried beside it.
        for blame in self.calls.values_mut().chain(self.ranges.iter_mut().map(|(_, blame)| blame)) {
            if blame.leader == Some(member) {
                blame.answered = true;
            }
        }
        // Else it had to try those first, and was given no other.
        let pending = self.calls.values().any(|blame| blame.leader != Some(member))
            || self.ranges.back().is_some_and(|(last, _)| *last >= first);
        if !pending {
            let deaths = died.then_some(member.node).into_iter().collect();
            let blame = Blame { deaths, answered: true, ..Blame::default() };
            self.ranges.push_back((upto, blame));
        }
    }

    /// All that arrived up to there was executed by services of which nothing is known.
    pub(super) fn suspect_all(&mut self, upto: u64) {
        if self.ranges.is_empty() {
            self.ranges.push_back((upto, Blame { answered: true, ..Blame::default() }));
        }
    }
}
