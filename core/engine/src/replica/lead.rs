//! One replica executes a call before the others do (`docs/protocol/poison.md`).
//!
//! A call may kill the service that executes it. So a group's primary *leads*: it executes each
//! call first. A *follower* executes a call when the order says that a replica has done so and
//! lives. When the leader is lost, the calls that it may have died of are *suspects*. The next
//! leader tries them one by one, and announces each trial in the order first. A call of which two
//! services died is answered without being executed.
//!
//! This file keeps a replica's knowledge of that, and decides. `lead/blame.rs` keeps the suspects,
//! `replica/gate.rs` holds back calls that may not be executed yet.

mod blame;
mod handed;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wire::limits::{MAX_CONDEMNED, MAX_DEATHS, MAX_REPLICAS};
use wire::ordered::{Died, Trial};
use wire::{ClientId, Member, NodeId};

use crate::bug::{Bug, Planted};
pub(crate) use blame::Blame;
use blame::Suspects;

/// The verdict on the next call to be executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be executed.
    Go,
    /// Not yet: a message that must come first will be delivered.
    Wait,
    /// Others may have died of it: the order must first say whether it is tried.
    Suspect(Blame),
}

/// The progress of this replica's last announcement as a leader.
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

/// The last call that the order says was executed.
#[derive(Clone, Copy, Debug, Default)]
struct Announced {
    /// By any message.
    last: u64,
    /// By a message that disks keep: votes are not kept.
    recorded: u64,
}

/// The leader and the group's progress. Calls are numbered from 1 in the group's history, alike at
/// all replicas. Each replica counts their arrivals for itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead {
    /// The member whose replica this is.
    me: Option<Member>,
    /// The leader of calls that arrive from here on.
    leader: Option<Member>,
    /// Leaders of calls that arrived up to the number, in order: primaries that have handed over.
    former: VecDeque<(u64, Member)>,
    /// Requests that were delivered here.
    arrived: u64,
    /// The last call that the service was given.
    last: u64,
    /// The arrival numbers of the given calls that are not proven.
    unproven: VecDeque<u64>,
    /// The last call that some replica has executed, and those that the order says so of.
    proven: u64,
    told: Announced,
    /// The leader has begun this call, and waits until the others begin it, too.
    allowed: u64,
    suspects: Suspects,
    /// The first member's service died, and its node has reported the calls that it had. The second
    /// member's replica leaves, and its service did not die.
    confessed: Option<Member>,
    parts: Option<Member>,
    /// The call that is being tried, and the life of a node that tries it.
    trial: Option<(u64, Trial)>,
    tried_by: Option<Member>,
    /// The last call that this replica was to try. Others may believe that it does not try it any
    /// more, because it has left or was silent.
    tried: u64,
    /// This replica has asked that nobody executes this call.
    given_up: Option<u64>,
    word: Word,
    /// Calls that are answered without being executed, and the nodes whose services died of them.
    pub(super) poisoned: BTreeMap<u64, Vec<NodeId>>,
    /// Calls that services had before a place in the history, the nodes where these died, and
    /// whether one of the services had no other call.
    ahead: VecDeque<((ClientId, u64), Vec<NodeId>, bool)>,
    /// Suspects that were executed elsewhere: their answers wait until this place of the order is
    /// held.
    cautious: BTreeMap<u64, u64>,
}

impl Lead {
    /// The replica's state is of no use any more.
    pub(super) fn forget(&mut self) {
        let Lead { me, leader, arrived, .. } = core::mem::take(self);
        (self.me, self.leader, self.arrived) = (me, leader, arrived);
    }

    /// It goes on with the other's leader.
    pub(super) fn follow(&mut self, other: &Lead) {
        (self.me, self.leader, self.arrived) = (other.me, other.leader, other.arrived);
    }

    /// The service goes on from a state with so many calls in it. Earlier commands count no more.
    pub(super) fn go_on_from(&mut self, executed: u64) {
        self.last = executed;
        self.unproven.truncate(usize::try_from(executed.saturating_sub(self.proven)).unwrap_or(0));
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

    /// The next call of the history is to be executed. Returns its number.
    pub(super) fn give(&mut self, arrived: u64) -> u64 {
        self.last += 1;
        if self.last > self.proven {
            self.unproven.push_back(arrived);
            self.forget_past();
        }
        self.last
    }

    /// So many further calls have a place in the history. All replicas receive them with their
    /// changes.
    pub(super) fn skip(&mut self, calls: u64) {
        // Calls before them may still have to be announced for other replicas.
        let all_told = self.told.last >= self.last;
        self.last += calls;
        self.prove_here(self.last, None);
        if all_told {
            self.told.last = self.told.last.max(self.last);
        }
    }

    /// The arrival number of the first call that was given and is not proven.
    pub(super) fn first_unproven(&self) -> Option<u64> {
        self.unproven.front().copied()
    }

    /// Calls of the history that were given to the service here, or executed elsewhere.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Calls that some replica is known to have executed.
    pub(super) fn proven(&self) -> u64 {
        self.proven
    }

    /// Calls that the order says were executed.
    pub(super) fn told(&self) -> u64 {
        self.told.last
    }

    /// The same, by messages that disks keep.
    pub(super) fn recorded(&self) -> u64 {
        self.told.recorded
    }

    /// This replica executes what arrives before the others do.
    pub(super) fn leads(&self) -> bool {
        self.me.is_some() && self.leader == self.me
    }

    /// This replica executes the call with this arrival number before the others do. A former leader
    /// keeps the calls that it has.
    pub(super) fn leads_call(&self, arrived: u64) -> bool {
        self.me.is_some() && self.leader_of(arrived) == self.me
    }

    /// The order says at this place that a replica has executed so many calls. A message of a
    /// former component needs no place.
    pub(super) fn prove(&mut self, executed: u64, sequence: Option<u64>) {
        self.told.recorded = self.told.recorded.max(executed);
        self.prove_by_vote(executed, sequence);
    }

    /// A vote says so.
    pub(super) fn prove_by_vote(&mut self, executed: u64, sequence: Option<u64>) {
        self.told.last = self.told.last.max(executed);
        self.prove_here(executed, sequence);
    }

    /// A received state contains so many calls, and others may not know.
    pub(super) fn prove_by_state(&mut self, executed: u64) {
        self.prove_here(executed, None);
    }

    fn prove_here(&mut self, executed: u64, sequence: Option<u64>) {
        while self.proven < executed {
            let number = self.proven + 1;
            if number > self.last {
                self.proven = executed; // not given here yet
                break;
            }
            let arrived = self.unproven.pop_front().unwrap_or_default();
            let tried = self.trial.as_ref().is_some_and(|(tried, _)| *tried == number);
            if let Some(sequence) = sequence
                && (tried || self.suspects.blame(number, arrived).is_some())
            {
                self.cautious.insert(number, sequence);
            }
            self.proven = number;
        }
        self.trial.take_if(|(number, _)| *number <= executed);
        self.suspects.clear_upto(executed);
        self.forget_past();
    }

    /// The leader has come so far in this call that the others are to execute it with it.
    pub(super) fn allow(&mut self, number: u64) {
        self.allowed = self.allowed.max(number);
    }

    /// Forgets leaders and suspects of settled calls.
    fn forget_past(&mut self) {
        let Some(&first) = self.unproven.front() else { return };
        while self.former.front().is_some_and(|(upto, _)| *upto < first) {
            self.former.pop_front();
        }
        self.suspects.clear_before(first);
    }

    /// The answer to this call waits until this place of the order is held.
    pub(super) fn caution(&mut self, number: u64) -> Option<u64> {
        self.cautious.remove(&number).filter(|sequence| *sequence > 0)
    }

    /// The leader of the call with this arrival number.
    fn leader_of(&self, arrived: u64) -> Option<Member> {
        let former = self.former.iter().find(|(upto, _)| arrived <= *upto);
        former.map_or(self.leader, |(_, member)| Some(*member))
    }

    /// The verdict on this call. All calls before it, but for the first `executed`, are being
    /// executed.
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
        if self.tries(number) {
            return if self.word == Word::None { Verdict::Go } else { Verdict::Wait };
        }
        if !self.leads_call(arrived) || self.word != Word::None {
            return Verdict::Wait;
        }
        // The other replica announced its trial before this one led. Otherwise both would announce
        // for ever.
        if self.is_tried_elsewhere(number) {
            return Verdict::Wait;
        }
        match self.suspects.blame(number, arrived) {
            // It runs alone: a service that dies then has died of it.
            Some(_) if executed + 1 < number || self.trial.is_some() => Verdict::Wait,
            Some(blame) => Verdict::Suspect(blame.clone()),
            None if self.trial.is_some() => Verdict::Wait,
            None => Verdict::Go,
        }
    }

    /// This replica may try the next call although another leads: the leader is silent, and no
    /// service is known to have died of the call. `late`: the replica that tries it beside the
    /// leader is silent, too.
    pub(super) fn may_take_over(&self, number: u64, arrived: u64, late: bool) -> bool {
        number == self.proven + 1
            && self.me.is_some()
            && (self.leader_of(arrived) != self.me || self.is_tried_elsewhere(number))
            && self.word == Word::None
            && (late || self.trial.is_none() && self.suspects.blame(number, arrived).is_none())
    }

    /// The blame for a call that is tried although another leads.
    pub(super) fn blame_of_silence(&self, number: u64, arrived: u64, beside: bool) -> Blame {
        let mut blame = self.suspects.blame(number, arrived).cloned().unwrap_or_default();
        blame.beside = beside;
        blame
    }

    /// Another replica tries this call.
    pub(super) fn is_tried_elsewhere(&self, number: u64) -> bool {
        self.trial.as_ref().is_some_and(|(tried, _)| *tried == number) && !self.tries(number)
    }

    /// This replica has handed in an announcement, and goes on when that is held.
    pub(super) fn speaks(&mut self) {
        self.word = Word::Asked;
    }

    /// This replica tries this call.
    pub(super) fn tries(&self, number: u64) -> bool {
        self.trial.as_ref().is_some_and(|(tried, _)| *tried == number) && self.tries_any()
    }

    /// This replica was to try the call, and the order does not say yet that it lives. If the others
    /// give its trial up, or all nodes are lost, they may refuse the call.
    pub(super) fn owes_word_of(&self, number: u64) -> bool {
        self.tried == number && self.told.recorded < number
    }

    /// This replica's trial, present or past, is not known to all yet.
    pub(super) fn is_trying(&self) -> bool {
        self.word != Word::None || self.tries_any()
    }

    fn tries_any(&self) -> bool {
        self.trial.is_some() && self.me.is_some() && self.tried_by == self.me
    }

    /// This replica tries the call no more.
    pub(super) fn try_no_more(&mut self, number: u64) {
        self.given_up = Some(number);
        if self.tries(number) {
            self.trial = None;
        }
    }

    /// This replica tries the call after all: that nobody executes it was lost with its ring, and its
    /// client asks no more (seed 4055 of the world of disks).
    pub(super) fn try_again(&mut self, number: u64) {
        self.given_up.take_if(|given_up| *given_up == number);
    }

    /// This replica is a former leader whose progress the next one waits for.
    pub(super) fn is_awaited(&self) -> bool {
        self.former.front().is_some_and(|(_, member)| Some(*member) == self.me)
    }

    /// A replica reports its progress, and the next call that it tries.
    pub(super) fn progress(
        &mut self,
        executed: u64,
        trial: Option<Trial>,
        by: Option<Member>,
        sequence: u64,
    ) {
        let own = by.is_some() && by == self.me;
        self.prove(executed, Some(sequence));
        // It was handed in before another died, and gets its place in the next component.
        let given_up = own && self.given_up == Some(executed + 1);
        // It was asked for before so many services died that nobody executes the call any more.
        let late = |trial: &Trial| {
            let blame = self.suspects.blame(executed + 1, self.next_unproven());
            let deaths = blame.map_or(0, |blame| blame.deaths.len());
            deaths >= ENOUGH && deaths > trial.deaths.len()
        };
        let trial = trial.filter(|trial| !given_up && !late(trial));
        if let Some(trial) = trial
            && executed + 1 > self.proven
            && (self.trial.is_none() || trial.beside)
        {
            self.trial = Some((executed + 1, trial));
            self.tried_by = by;
            if own {
                self.tried = executed + 1;
            }
        }
        if own && self.word == Word::Asked {
            self.word = Word::Delivered(sequence);
        }
    }

    /// This replica's announcement is held.
    pub(super) fn held(&mut self) {
        if matches!(self.word, Word::Delivered(_)) {
            self.word = Word::None;
        }
    }

    /// The place of the order that must be held before this replica goes on.
    pub(super) fn waits_for_hold(&self) -> Option<u64> {
        match self.word {
            Word::Delivered(sequence) => Some(sequence),
            Word::None | Word::Asked => None,
        }
    }

    /// The order says that nobody is to execute this call, unless a replica has executed it.
    pub(super) fn condemn(&mut self, number: u64, nodes: Vec<NodeId>, own: bool, sequence: u64) {
        if own && self.word == Word::Asked {
            self.word = Word::None;
        }
        if number > self.proven && !self.poisoned.contains_key(&number) {
            self.poisoned.insert(number, nodes);
            if self.poisoned.len() > MAX_CONDEMNED {
                self.poisoned.pop_first();
            }
            self.cautious.insert(number, sequence);
            self.trial.take_if(|(tried, _)| *tried == number);
        }
    }

    /// A log condemns this call, and says before that so many calls were executed.
    pub(super) fn condemn_again(&mut self, number: u64, nodes: Vec<NodeId>, proven: u64) {
        if number > proven {
            self.poisoned.entry(number).or_insert(nodes);
        }
    }

    /// A view is installed: these members have the state, and the first of them leads. The former
    /// leader goes on to lead the calls that it has. `first_unproven`: the arrival number of the
    /// first call that is not proven.
    pub(super) fn view(&mut self, me: Member, synced: &[Member], first_unproven: Option<u64>) {
        self.me = Some(me);
        let leads: Vec<Member> =
            self.former.iter().map(|(_, member)| *member).chain(self.leader).collect();
        for member in leads.into_iter().filter(|member| !synced.contains(member)) {
            self.lose(member, first_unproven.unwrap_or(u64::MAX));
        }
        (self.confessed, self.parts) = (None, None);
        let by = self.tried_by;
        self.end_trial(|node| match by {
            Some(by) => !synced.contains(&by),
            None => synced.iter().all(|it| it.node != node),
        });
        let leader = synced.first().copied();
        if let Some(before) = self.leader.filter(|before| Some(*before) != leader) {
            self.former.push_back((self.arrived, before));
            if self.former.len() > MAX_REPLICAS {
                self.former.pop_front();
            }
        }
        if self.leader != leader {
            self.leader = leader;
            self.forget_past();
        }
    }

    /// A component begins: earlier messages have their place, or are lost. `anew`: no former leader
    /// goes on. `retells`: others may be back from disks that lack some announcements.
    pub(super) fn in_new_component(&mut self, anew: bool, retells: bool) {
        if anew {
            self.former.clear();
        }
        if retells {
            self.told = Announced::default();
        }
        self.word = Word::None;
        self.cautious.values_mut().for_each(|sequence| *sequence = 0);
    }

    /// The service of this member's replica has died, or is hung. Its node reports its progress.
    pub(super) fn die(&mut self, member: Member, died: Died) {
        self.prove(died.executed, None);
        // The service died before it had the call that it was to try.
        let unbegun =
            |(number, trial): &mut (u64, Trial)| trial.node == member.node && died.given < *number;
        if let Some((number, trial)) = self.trial.take_if(unbegun) {
            self.suspects.give_up((number, self.next_unproven()), trial, self.leader);
        }
        let tried = self.end_trial(|node| node == member.node);
        let next = self.proven + 1;
        for number in died.executed + 1..=died.given.min(died.executed + MAX_REPORTED) {
            let place = number.checked_sub(next).and_then(|place| usize::try_from(place).ok());
            let arrived = place.and_then(|place| self.unproven.get(place)).copied();
            if number >= next && Some(number) != tried {
                self.suspects.accuse(number, arrived, member.node, self.leader);
            }
        }
        let alone = died.ahead.len() == 1;
        died.ahead.into_iter().for_each(|call| self.blame_ahead(call, member.node, alone));
        self.confessed = Some(member);
    }

    /// A service died that had this call, which has no place yet. `alone`: it had no other.
    fn blame_ahead(&mut self, call: (ClientId, u64), node: NodeId, alone: bool) {
        let known = self.ahead.iter().position(|(blamed, ..)| *blamed == call);
        let place = known.unwrap_or_else(|| {
            if self.ahead.len() >= MAX_CONDEMNED {
                self.ahead.pop_front();
            }
            self.ahead.push_back((call, Vec::new(), false));
            self.ahead.len() - 1
        });
        let (_, deaths, certain) = &mut self.ahead[place];
        *certain |= alone;
        if deaths.len() < MAX_DEATHS {
            deaths.push(node);
        }
    }

    /// Some call without a place is blamed.
    pub(super) fn suspects_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// A service died that had this call.
    pub(super) fn is_blamed_ahead(&self, call: (ClientId, u64)) -> bool {
        self.ahead.iter().any(|(blamed, ..)| *blamed == call)
    }

    /// The nodes where services died of this call, if so many did that nobody is to execute it. A
    /// service that had other calls, too, may have died of those: a primary may not know the blamed
    /// ones.
    pub(super) fn condemned_ahead(&self, call: (ClientId, u64)) -> Option<&[NodeId]> {
        let (_, deaths, certain) = self.ahead.iter().find(|(blamed, ..)| *blamed == call)?;
        (*certain && deaths.len() >= ENOUGH).then_some(deaths)
    }

    /// This call has its place.
    pub(super) fn settle_ahead(&mut self, call: (ClientId, u64)) {
        if !self.ahead.is_empty() {
            self.ahead.retain(|(blamed, ..)| *blamed != call);
        }
    }

    /// This member's replica leaves, and its service has not died of a call.
    pub(super) fn part(&mut self, member: Member) {
        let tries = |(_, trial): &mut (u64, Trial)| trial.node == member.node;
        if let Some((number, trial)) = self.trial.take_if(tries) {
            self.suspects.give_up((number, self.next_unproven()), trial, self.leader);
        }
        self.parts = Some(member);
    }

    /// Ends a trial whose node is gone: the call has killed its service, which would have announced
    /// its success before it answered anybody.
    fn end_trial(&mut self, is_gone: impl Fn(NodeId) -> bool) -> Option<u64> {
        let (number, trial) = self.trial.take_if(|(_, trial)| is_gone(trial.node))?;
        self.suspects.died_in_trial((number, self.next_unproven()), trial, self.leader);
        Some(number)
    }

    /// The arrival number of the first call that is not proven.
    fn next_unproven(&self) -> u64 {
        self.unproven.front().copied().unwrap_or(u64::MAX)
    }

    /// This member is gone. Nobody knows which calls it has executed and answered, from the `first`
    /// one that is not proven.
    fn lose(&mut self, member: Member, first: u64) {
        let tries = self.trial.as_ref().is_some_and(|(_, trial)| trial.node == member.node);
        let leads = self.leader_of(first) == Some(member);
        if leads && self.confessed != Some(member) && !tries {
            let former = self.former.iter().find(|(_, former)| *former == member);
            let upto = former.map_or(self.arrived, |(upto, _)| *upto);
            self.suspects.suspect(upto, first, member, self.parts != Some(member));
        }
        self.former.retain(|(_, former)| *former != member);
        self.leader.take_if(|leader| *leader == member);
    }

    /// The services that had the calls so far are gone, and the calls may have killed them.
    pub(super) fn suspect_all(&mut self) {
        self.end_trial(|_| true);
        self.suspects.suspect_all(self.arrived);
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.unproven.len() as u64 <= self.last, "what is not proven was given");
        assert!(
            self.proven >= self.last || self.proven + self.unproven.len() as u64 == self.last,
            "all calls that are not proven are counted"
        );
    }
}

/// The number of services that die of a call before it is executed no more.
pub(crate) const ENOUGH: usize = 2;

/// So many, all but the first of them in a trial, show that no service can have answered the call:
/// those of a group execute it alike. Otherwise it would end nodes for ever once its client has
/// given it up (seed 840 of the world of interruptions: 70 in two seconds).
pub(crate) const CERTAIN: usize = 5;

/// The number of calls for which a node's report on its dead service counts.
const MAX_REPORTED: u64 = wire::limits::MAX_COMMANDS as u64;

#[cfg(test)]
mod tests;
