//! Calls that may have killed the services that executed them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::limits::MAX_DEATHS;
use wire::ordered::{Blamed, Trial};
use wire::{Member, NodeId};

/// The evidence against a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blame {
    /// The nodes where services died that had the call, in order.
    pub(crate) deaths: Vec<NodeId>,
    /// A service that is gone with its node may have executed and answered the call.
    pub(crate) answered: bool,
    /// Another replica tries the call, and has been silent for long.
    pub(crate) beside: bool,
    /// The leader when the call was blamed.
    leader: Option<Member>,
}

/// The calls that are suspected.
#[derive(Clone, Debug, Default)]
pub(super) struct Suspects {
    /// Calls that arrived up to the number were given to a leader that is gone with its node.
    ranges: VecDeque<(u64, Blame)>,
    /// Calls that services had, and did not answer before they died.
    calls: BTreeMap<u64, Blame>,
}

impl Suspects {
    /// The evidence against this call.
    pub(super) fn blame(&self, number: u64, arrived: u64) -> Option<&Blame> {
        let range = || self.ranges.iter().find(|(upto, _)| arrived <= *upto);
        self.calls.get(&number).or_else(|| Some(&range()?.1))
    }

    /// The evidence for another replica. It counts arrivals for itself, so ranges of them say
    /// nothing to it.
    pub(super) fn blamed(&self) -> impl Iterator<Item = Blamed> {
        self.calls.iter().map(|(number, blame)| {
            let Blame { deaths, answered, .. } = blame.clone();
            Blamed { number: *number, deaths, answered, tried_at: None }
        })
    }

    /// Takes another replica's evidence against a call, if it is more than is known here.
    pub(super) fn take(&mut self, number: u64, deaths: Vec<NodeId>, answered: bool) {
        let known = self.calls.get(&number).map_or(0, |known| known.deaths.len());
        if deaths.len() > known {
            self.calls.insert(number, Blame { deaths, answered, ..Blame::default() });
        }
    }

    /// All calls up to this one were executed, and their executor lives.
    pub(super) fn clear_upto(&mut self, number: u64) {
        while self.calls.first_entry().is_some_and(|first| *first.key() <= number) {
            self.calls.pop_first();
        }
    }

    /// Calls that arrived earlier are settled.
    pub(super) fn clear_before(&mut self, arrived: u64) {
        while self.ranges.front().is_some_and(|(upto, _)| *upto < arrived) {
            self.ranges.pop_front();
        }
    }

    /// A service that had this call died here; its node lives and reports it.
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

    /// A service died while it tried this call, alone. `arrived`: the call's arrival number.
    pub(super) fn died_in_trial(
        &mut self,
        (number, arrived): (u64, u64),
        trial: Trial,
        leader: Option<Member>,
    ) {
        let Trial { node, mut deaths, mut answered, .. } = trial;
        // Blame from after the trial was asked for counts as well. A leader that left by itself
        // adds no death: it may have answered the call on its way out.
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

    /// The replica that tried this call, which arrived then, has given up.
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

    /// The leader of calls that arrived up to `upto` is gone, with its node if it has `died`.
    /// `first` is the first that is not proven.
    pub(super) fn suspect(&mut self, upto: u64, first: u64, member: Member, died: bool) {
        // It may have answered a call that another replica tried beside it.
        for blame in self.calls.values_mut().chain(self.ranges.iter_mut().map(|(_, blame)| blame)) {
            if blame.leader == Some(member) {
                blame.answered = true;
            }
        }
        // Otherwise it had to try those first, and had no other calls.
        let pending = self.calls.values().any(|blame| blame.leader != Some(member))
            || self.ranges.back().is_some_and(|(last, _)| *last >= first);
        if !pending {
            let deaths = died.then_some(member.node).into_iter().collect();
            let blame = Blame { deaths, answered: true, ..Blame::default() };
            self.ranges.push_back((upto, blame));
        }
    }

    /// All calls that arrived up to `upto` were executed by services of which nothing is known.
    pub(super) fn suspect_all(&mut self, upto: u64) {
        if self.ranges.is_empty() {
            self.ranges.push_back((upto, Blame { answered: true, ..Blame::default() }));
        }
    }
}
