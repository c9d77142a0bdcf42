//! One replica executes a call before the others do (`docs/protocol/poison.md`).
//!
//! A call may kill the service that executes it. So a group's primary *leads*: it executes each call first. A *follower* executes a call when
//! the order has told that a replica did so and lives. When the leader is lost, the calls that it may have died of are *suspects*: the
//! next leader tries them one by one, each after it has said so in the order. A call of which two services died is answered without
//! being executed.
//!
//! This file keeps what a replica knows of that, and decides. `replica/gate.rs` keeps back what may not be executed yet.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::limits::{MAX_COMMANDS, MAX_DEATHS, MAX_REPLICAS};
use wire::ordered::{Death, Died, Trial};
use wire::{Member, NodeId};

use crate::bug::{Bug, Planted};

/// What may be done with a call that is the next to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be executed.
    Go,
    /// Not yet: what is to come first will be delivered.
    Wait,
    /// These may have died of it: the order is to say first whether it is tried.
    Suspect(Vec<Death>),
}

/// Calls that arrived up to here were given to a leader that is gone, and to nobody else.
#[derive(Clone, Debug)]
struct Suspicion {
    upto: u64,
    deaths: Vec<Death>,
}

/// How far the order is with the last word that this replica has to say as a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Word {
    /// There is none to wait for.
    #[default]
    None,
    /// It was handed in.
    Asked,
    /// It was delivered at this place, and is not held yet.
    Delivered(u64),
}

/// Who leads, and how far the group is. All fields are about calls in the group's history, numbered from 1, which is alike at all
/// replicas; or about the order of arrival, which each replica counts for itself.
#[derive(Debug, Default)]
pub(super) struct Lead {
    /// Whose replica this is.
    me: Option<Member>,
    /// Who leads what arrives from here on.
    leader: Option<Member>,
    /// Who leads what arrived up to there, in order: primaries that have handed over.
    former: VecDeque<(u64, Member)>,
    /// Requests that were delivered here.
    arrived: u64,
    /// The last call that was given to be executed.
    last: u64,
    /// Those of them that are not proven: when each arrived.
    unproven: VecDeque<u64>,
    /// A replica has executed all calls up to this one.
    proven: u64,
    /// The leader has begun this call, and waits for the others to do so, too.
    allowed: u64,
    suspicions: VecDeque<Suspicion>,
    /// Calls that a service was given and had not answered when it died.
    accused: BTreeMap<u64, Vec<Death>>,
    /// What this member's service had been given when it died is known.
    confessed: Option<Member>,
    /// This call is being tried.
    trial: Option<(u64, Trial)>,
    word: Word,
    /// Calls that are answered without being executed, and where services died of them.
    pub(super) poisoned: BTreeMap<u64, Vec<NodeId>>,
    /// Suspects that were executed elsewhere: their answers wait until this place of the order is held.
    cautious: BTreeMap<u64, u64>,
}

impl Lead {
    /// The replica's state is of no use any more.
    pub(super) fn forget(&mut self) {
        let Lead { me, leader, arrived, .. } = core::mem::take(self);
        (self.me, self.leader, self.arrived) = (me, leader, arrived);
    }

    /// The service goes on from a state with so many calls in it, and nothing that was given to it counts.
    pub(super) fn go_on_from(&mut self, executed: u64) {
        self.last = executed;
        self.unproven.clear();
        self.poisoned.retain(|number, _| *number > executed);
    }

    /// A request is delivered.
    pub(super) fn arrive(&mut self) -> u64 {
        self.arrived += 1;
        self.arrived
    }

    /// Requests that arrived so far.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// The next call of the history is to be executed: its number.
    pub(super) fn give(&mut self, arrived: u64) -> u64 {
        self.last += 1;
        if self.last > self.proven {
            self.unproven.push_back(arrived);
            self.forget_former();
        }
        self.last
    }

    /// So many further calls have a place in the history, executed elsewhere.
    pub(super) fn skip(&mut self, calls: u64) {
        self.last += calls;
        self.prove(self.last, None);
    }

    /// When the first call arrived that was given and is not proven.
    pub(super) fn first_unproven(&self) -> Option<u64> {
        self.unproven.front().copied()
    }

    /// Calls of the history that were given to be executed, or executed elsewhere.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Calls that some replica is known to have executed.
    pub(super) fn proven(&self) -> u64 {
        self.proven
    }

    /// This replica executes what arrives before the others do.
    pub(super) fn leads(&self) -> bool {
        self.me.is_some() && self.leader == self.me
    }

    /// The order says that a replica has executed so many calls, at this place of it. What a former component said needs no place.
    pub(super) fn prove(&mut self, executed: u64, sequence: Option<u64>) {
        while self.proven < executed {
            let next = self.proven + 1;
            let arrived = self.unproven.front().copied().filter(|_| next <= self.last);
            if arrived.is_none() && next > self.last {
                self.proven = executed; // not given here yet
                break;
            }
            if let (Some(arrived), Some(sequence)) = (arrived, sequence)
                && self.suspicion(next, arrived).is_some()
            {
                self.cautious.insert(next, sequence);
            }
            self.unproven.pop_front();
            self.proven = next;
        }
        self.trial.take_if(|(number, _)| *number <= executed);
        while self.accused.first_entry().is_some_and(|first| *first.key() <= executed) {
            self.accused.pop_first();
        }
        self.forget_former();
    }

    /// The leader has come so far in this call that the others are to execute it with it.
    pub(super) fn allow(&mut self, number: u64) {
        self.allowed = self.allowed.max(number);
    }

    /// What is settled of the past is not kept.
    fn forget_former(&mut self) {
        let Some(&first) = self.unproven.front() else { return };
        while self.former.front().is_some_and(|(upto, _)| *upto < first) {
            self.former.pop_front();
        }
        while self.suspicions.front().is_some_and(|suspicion| suspicion.upto < first) {
            self.suspicions.pop_front();
        }
    }

    /// The answer to this call waits until this place of the order is held.
    pub(super) fn caution(&mut self, number: u64) -> Option<u64> {
        self.cautious.remove(&number).filter(|sequence| *sequence > 0)
    }

    /// Who executes what arrived then before the others do.
    fn leader_of(&self, arrived: u64) -> Option<Member> {
        let former = self.former.iter().find(|(upto, _)| arrived <= *upto);
        former.map_or(self.leader, |(_, member)| Some(*member))
    }

    /// Who may have died of this call.
    fn suspicion(&self, number: u64, arrived: u64) -> Option<&Vec<Death>> {
        let suspicion = || self.suspicions.iter().find(|suspicion| arrived <= suspicion.upto);
        self.accused.get(&number).or_else(|| Some(&suspicion()?.deaths))
    }

    /// When this call arrived, if it was given to be executed and is not proven.
    fn arrival_of(&self, number: u64) -> Option<u64> {
        let place = number.checked_sub(self.proven + 1)?;
        self.unproven.get(usize::try_from(place).ok()?).copied()
    }

    fn accuse(&mut self, number: u64, death: Death) {
        if number <= self.proven {
            return;
        }
        let arrived = self.arrival_of(number).unwrap_or(u64::MAX);
        let mut deaths = self.suspicion(number, arrived).cloned().unwrap_or_default();
        if deaths.len() < MAX_DEATHS {
            deaths.push(death);
        }
        self.accused.insert(number, deaths);
    }

    /// What may be done with this call, after which no other has been executed than the first `executed`.
    pub(super) fn verdict(
        &self,
        number: u64,
        arrived: u64,
        executed: u64,
        planted: Planted,
    ) -> Verdict {
        if number <= self.proven.max(self.allowed) || planted.is(Bug::ExecuteEverywhere) {
            return Verdict::Go;
        }
        let me = self.me.map(|me| me.node);
        let tried = self.trial.as_ref().filter(|(tried, _)| *tried == number);
        if let Some((_, trial)) = tried
            && Some(trial.node) == me
        {
            return if self.word == Word::None { Verdict::Go } else { Verdict::Wait };
        }
        if self.me.is_none() || self.leader_of(arrived) != self.me || self.word != Word::None {
            return Verdict::Wait;
        }
        match self.suspicion(number, arrived) {
            // It runs alone: whoever dies then has died of it.
            Some(_) if executed + 1 < number => Verdict::Wait,
            Some(deaths) => Verdict::Suspect(deaths.clone()),
            None if self.trial.is_some() => Verdict::Wait,
            None => Verdict::Go,
        }
    }

    /// This replica may try the next call although another leads: the leader is silent, and nobody has died of it.
    pub(super) fn may_take_over(&self, number: u64, arrived: u64) -> bool {
        number > self.proven
            && number == self.proven + 1
            && self.me.is_some()
            && self.leader_of(arrived) != self.me
            && self.trial.is_none()
            && self.word == Word::None
            && self.suspicion(number, arrived).is_none()
    }

    /// This replica has handed in a word of its own, and goes on when it is held.
    pub(super) fn speaks(&mut self) {
        self.word = Word::Asked;
    }

    /// This replica tries a call: it is to say so when the answer is there.
    pub(super) fn tries(&self, number: u64) -> bool {
        let mine = |(tried, trial): &(u64, Trial)| {
            *tried == number && self.me.is_some_and(|me| me.node == trial.node)
        };
        self.trial.as_ref().is_some_and(mine)
    }

    /// A former leader is to tell how far it is: the next one waits for that.
    pub(super) fn is_awaited(&self) -> bool {
        self.former.front().is_some_and(|(_, member)| Some(*member) == self.me)
    }

    /// A replica says how far it is, and what it tries next.
    pub(super) fn progress(
        &mut self,
        executed: u64,
        trial: Option<Trial>,
        own: bool,
        sequence: u64,
    ) {
        self.prove(executed, Some(sequence));
        if let Some(trial) = trial
            && executed + 1 > self.proven
        {
            self.trial = Some((executed + 1, trial));
        }
        if own && self.word == Word::Asked {
            self.word = Word::Delivered(sequence);
        }
    }

    /// What this replica has said is held.
    pub(super) fn held(&mut self) {
        if matches!(self.word, Word::Delivered(_)) {
            self.word = Word::None;
        }
    }

    /// It goes on when this place of the order is held.
    pub(super) fn waits_for_hold(&self) -> Option<u64> {
        match self.word {
            Word::Delivered(sequence) => Some(sequence),
            Word::None | Word::Asked => None,
        }
    }

    /// The order says that this call is to be executed by nobody, unless somebody has executed it.
    pub(super) fn condemn(&mut self, number: u64, nodes: Vec<NodeId>, own: bool, sequence: u64) {
        if own && self.word == Word::Asked {
            self.word = Word::None;
        }
        if number > self.proven && !self.poisoned.contains_key(&number) {
            self.poisoned.insert(number, nodes);
            self.cautious.insert(number, sequence);
            self.trial.take_if(|(tried, _)| *tried == number);
        }
    }

    /// A log says so, in which as many calls as this were said to be executed before.
    pub(super) fn condemn_again(&mut self, number: u64, nodes: Vec<NodeId>, proven: u64) {
        if number > proven {
            self.poisoned.entry(number).or_insert(nodes);
        }
    }

    /// By the last view these have the state, the first of them leads.
    pub(super) fn view(&mut self, me: Member, synced: &[Member], first_unproven: Option<u64>) {
        self.me = Some(me);
        let leads: Vec<Member> =
            self.former.iter().map(|(_, member)| *member).chain(self.leader).collect();
        for member in leads.into_iter().filter(|member| !synced.contains(member)) {
            self.lose(member, first_unproven);
        }
        self.confessed = None;
        let gone = |(_, trial): &mut (u64, Trial)| synced.iter().all(|it| it.node != trial.node);
        if let Some((number, Trial { node, .. })) = self.trial.take_if(gone) {
            // It said so before it began, and would have said what it answered.
            self.accuse(number, Death { node, unanswered: true });
        }
        let leader = synced.first().copied();
        if let Some(before) = self.leader.filter(|before| Some(*before) != leader) {
            self.former.push_back((self.arrived, before));
            if self.former.len() > MAX_REPLICAS {
                self.former.pop_front();
            }
        }
        if self.leader != leader {
            self.leader = leader;
            self.forget_former();
        }
    }

    /// A component begins: what was handed in before has its place, or is lost.
    pub(super) fn in_new_component(&mut self) {
        self.word = Word::None;
        self.cautious.values_mut().for_each(|sequence| *sequence = 0);
    }

    /// The service of this member's replica has died, or is hung.
    pub(super) fn die(&mut self, member: Member, Died { executed, given }: Died) {
        self.prove(executed, None);
        let node = member.node;
        self.trial.take_if(|(_, trial)| trial.node == node);
        for number in executed + 1..=given.min(executed + MAX_COMMANDS as u64) {
            self.accuse(number, Death { node, unanswered: true });
        }
        self.confessed = Some(member);
    }

    /// This member is gone: nobody knows what it has executed, and answered. `first_unproven`: when the first call arrived that is not
    /// proven.
    fn lose(&mut self, member: Member, first_unproven: Option<u64>) {
        let first = first_unproven.unwrap_or(u64::MAX);
        let tries = self.trial.as_ref().is_some_and(|(_, trial)| trial.node == member.node);
        let pending = !self.accused.is_empty()
            || self.suspicions.back().is_some_and(|last| last.upto >= first);
        // Who tries a call has been given no other.
        if self.leader_of(first) == Some(member)
            && self.confessed != Some(member)
            && !pending
            && !tries
        {
            let former = self.former.iter().find(|(_, former)| *former == member);
            let upto = former.map_or(self.arrived, |(upto, _)| *upto);
            let deaths = [Death { node: member.node, unanswered: false }].to_vec();
            self.suspicions.push_back(Suspicion { upto, deaths });
        }
        self.former.retain(|(_, former)| *former != member);
        self.leader.take_if(|leader| *leader == member);
    }

    /// What arrived so far was given to services that are gone, and may have killed them. Whoever tried one has died of it.
    pub(super) fn suspect_all(&mut self) {
        if let Some((number, Trial { node, mut deaths })) = self.trial.take() {
            deaths.push(Death { node, unanswered: true });
            self.accused.insert(number, deaths);
        }
        if self.suspicions.is_empty() {
            self.suspicions.push_back(Suspicion { upto: self.arrived, deaths: Vec::new() });
        }
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.unproven.len() as u64 <= self.last, "what is not proven was given");
        assert!(
            self.proven >= self.last || self.proven + self.unproven.len() as u64 == self.last,
            "all calls that are not proven are counted"
        );
    }
}
