//! Votes that are cast, counted and settled.

use crate::replica::CallQuorum;
use alloc::vec::Vec;

use wire::ClientId;
use wire::client::Refusal;
use wire::limits::{MAX_BALLOT, MAX_UNSETTLED};
use wire::ordered::{Digest, KeptReply, StateHead, Style};

use super::{Answerable, Cast, Matter, Purpose, SPLIT, Slip, Stands, Unsettled, Voting, digest};
use crate::api::ServiceOutcome;
use crate::bug::Bug;
use crate::replica::transfer::store_whole;
use crate::replica::{Effect, Replica, answer};
use crate::tally::Verdict;

impl Replica {
    /// The replica has the state, and votes on what it is given from here on.
    pub(in crate::replica) fn begin_to_vote(&mut self, effects: &mut Vec<Effect>) {
        if self.ballots.cast && !self.style_will_change() {
            // Earlier calls are executed without a vote.
            self.history.votes_from = self.position();
            self.history.changed_at = self.history.votes_from;
            self.ballots.voting = Some(Voting::from(self.history.votes_from));
            self.open_votes(true, effects);
        }
    }

    /// The replica is no voter of its group: the others' verdicts are on calls that it has not got.
    pub(crate) fn close_votes(&mut self) {
        if let Some(voting) = &mut self.ballots.voting {
            voting.opened = false;
        }
    }

    /// A component has begun, or this replica's execution has. The replica orders the position from
    /// which it votes, and its votes that are not settled. Its votes on settled calls are void: if
    /// it deviates, it has to leave by itself. If it is `alone`, no other vote can show that.
    pub(crate) fn open_votes(&mut self, alone: bool, effects: &mut Vec<Effect>) {
        let silent = self.style_will_change();
        let Some(voting) = self.ballots.voting.as_mut() else { return };
        if voting.deviates && !alone {
            effects.push(Effect::Overflow);
            return self.idle(effects);
        }
        voting.deviates = false;
        if silent {
            return;
        }
        let settled = voting.settled;
        voting.open.retain(|_, position| *position > settled);
        if let Some((child, _)) = voting.awaited.take_if(|(_, position)| *position <= settled) {
            effects.push(Effect::CallQuorum(child, CallQuorum::Given));
        }
        voting.told = voting.first - 1;
        let digests: Vec<Digest> =
            voting.cast.iter().take(MAX_BALLOT).map(|cast| cast.digest).collect();
        voting.told += digests.len() as u64;
        (voting.in_flight, voting.opened) = (true, false);
        let (opening, first) = (Some(voting.settled), voting.first);
        effects.push(Effect::Vote(Slip { opening, first, digests }));
    }

    /// Its last ballot has its place in the order; an `opening` has this replica's first position.
    pub(crate) fn ballot_delivered(&mut self, opening: bool) {
        if let Some(voting) = &mut self.ballots.voting {
            voting.in_flight = false;
            voting.opened |= opening;
        }
    }

    /// The votes to send now. While a ballot is on its way the next one gathers: so many calls
    /// share one message.
    pub(crate) fn take_ballot(&mut self) -> Option<Slip> {
        if self.style_will_change() {
            return None;
        }
        let voting = self.ballots.voting.as_mut().filter(|voting| !voting.in_flight)?;
        let last = voting.first - 1 + voting.cast.len() as u64;
        let upto = last.min(voting.settled + MAX_UNSETTLED).min(voting.told + MAX_BALLOT as u64);
        if upto <= voting.told {
            return None;
        }
        let first = voting.told + 1;
        let tell = (first..=upto).filter_map(|position| Some(voting.digest(position)?.digest));
        let digests = tell.collect();
        voting.told = upto;
        voting.in_flight = true;
        Some(Slip { opening: None, first, digests })
    }

    /// The call that has just been executed has this outcome. True if it is to be answered now.
    pub(in crate::replica) fn vote(
        &mut self,
        client: ClientId,
        number: u64,
        outcome: &ServiceOutcome,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let position = self.reached();
        let Some(voting) = self.ballots.voting.as_mut() else {
            return self.ballots.verdicts.is_empty()
                || self.judged_before((position, client, number), digest(outcome), effects);
        };
        if position < voting.first {
            return true; // it was ordered before the group voted
        }
        let digest = digest(outcome);
        let call = Answerable { client, call: number, number: self.history.executed };
        let stands = voting.cast(position, digest, Matter::Outcome(call), self.planted);
        effects.push(Effect::Cast);
        if matches!(stands, Stands::Open | Stands::Apart) {
            voting.open.insert((client, number), position);
        }
        match stands {
            Stands::Open => self.planted.is(Bug::AnswerBeforeVotes),
            Stands::Alike => true,
            Stands::Apart => false,
            Stands::Split => {
                self.answer_split(client, number, effects);
                false
            }
        }
    }

    /// A call has its verdict.
    pub(crate) fn settled(&mut self, position: u64, verdict: Verdict, effects: &mut Vec<Effect>) {
        let is_next = |voting: &&mut Voting| voting.opened && position > voting.settled;
        let Some(voting) = self.ballots.voting.as_mut().filter(is_next) else { return };
        voting.settled = position;
        match voting.digest(position) {
            None => {
                voting.ahead.insert(position, verdict);
            }
            Some(&Cast { digest: own, matter }) => match (verdict, matter) {
                (Verdict::Agreed(agreed), _)
                    if agreed != own && !self.planted.is(Bug::AnswerMinority) =>
                {
                    voting.deviates = true;
                }
                (verdict, Matter::Outcome(Answerable { client, call, number })) => {
                    voting.open.remove(&(client, call));
                    if let Some(sequence) = self.lead.caution(number) {
                        effects.push(Effect::Settled { client, number: call, sequence });
                    }
                    match verdict {
                        Verdict::Agreed(_) => self.answer_agreed((client, call), number, effects),
                        Verdict::Split(_) => self.answer_split(client, call, effects),
                    }
                }
                (verdict, Matter::Ask(child)) => {
                    voting.awaited = None;
                    let agreed = matches!(verdict, Verdict::Agreed(_));
                    let call_quorum = if agreed { CallQuorum::Given } else { CallQuorum::Refused };
                    effects.push(Effect::CallQuorum(child, call_quorum));
                }
            },
        }
        self.give_settled(effects);
        effects.push(Effect::Cast); // there may be room for more votes
    }

    /// A majority has this replica's outcome of the call.
    fn answer_agreed(
        &mut self,
        (client, call): (ClientId, u64),
        number: u64,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(Some(outcome)) = self.history.sessions.known(client, call) {
            let asked = self.history.sessions.asked(client, call);
            self.answer_executed(number, (client, call, asked), outcome, effects);
        }
    }

    /// Every replica keeps the same error for a call on whose outcome there is no agreement.
    pub(in crate::replica) fn answer_split(
        &mut self,
        client: ClientId,
        number: u64,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = ServiceOutcome::Refused(Refusal::Split, SPLIT.into());
        self.history.sessions.amend(client, number, outcome.clone());
        for state in self.ballots.voting.iter_mut().flat_map(|voting| &mut voting.unsettled) {
            let session = state.head.sessions.iter_mut().find(|session| session.client == client);
            let replies = session.into_iter().flat_map(|session| &mut session.replies);
            for (_, kept) in replies.filter(|(kept, _)| *kept == number) {
                *kept = KeptReply::Refused(Refusal::Split, SPLIT.into());
            }
        }
        let asked = self.history.sessions.asked(client, number);
        answer(client, number, asked, outcome, effects);
    }

    /// Nobody waits any more for votes on calls up to here.
    pub(crate) fn forget_votes(&mut self, upto: u64) {
        let Some(voting) = &mut self.ballots.voting else { return };
        let upto = upto.min(voting.settled).min(voting.told);
        while voting.first <= upto && voting.cast.pop_front().is_some() {
            voting.first += 1;
        }
    }

    /// This call was executed, and the others' outcome is unknown yet, or differs: a retry is not
    /// answered here.
    pub(in crate::replica) fn is_unsettled(&self, client: ClientId, number: u64) -> bool {
        let voting =
            self.ballots.voting.as_ref().filter(|_| !self.planted.is(Bug::AnswerBeforeVotes));
        voting.is_some_and(|voting| voting.open.contains_key(&(client, number)))
    }

    /// A state for other replicas or for the disk must not be that of a deviating replica. True if
    /// it waits until that is known.
    pub(in crate::replica) fn keep_until_settled(
        &mut self,
        purpose: Purpose,
        head: &mut StateHead,
        service: &bytes::Bytes,
    ) -> bool {
        let position = self.reached();
        let planted = self.planted.is(Bug::GiveUnsettled);
        let Some(voting) = self.ballots.voting.as_mut().filter(|_| !planted) else { return false };
        if voting.settled >= position && !voting.deviates {
            return false;
        }
        let (head, service) = (core::mem::take(head), service.clone());
        voting.unsettled.push(Unsettled { purpose, position, head, service });
        true
    }

    fn give_settled(&mut self, effects: &mut Vec<Effect>) {
        let Some(voting) = self.ballots.voting.as_mut().filter(|voting| !voting.deviates) else {
            return;
        };
        let settled = voting.settled;
        let (ready, waiting) = core::mem::take(&mut voting.unsettled)
            .into_iter()
            .partition::<Vec<_>, _>(|state| state.position <= settled);
        voting.unsettled = waiting;
        ready.into_iter().for_each(|state| self.use_settled(state, effects));
    }

    /// All calls in this state are settled.
    pub(in crate::replica) fn use_settled(&mut self, state: Unsettled, effects: &mut Vec<Effect>) {
        let Unsettled { purpose, head, service, .. } = state;
        match purpose {
            // The group may have another style since it was taken.
            Purpose::Keep => store_whole(Style::Voting, head, service, effects),
            Purpose::Give(transfer) if self.transfers.given.contains(&transfer) => {
                self.send_state(transfer, head, service, effects);
            }
            Purpose::Give(_) => {} // those who waited for it may be gone
        }
    }

    /// A state waits to be settled before it is kept.
    pub(in crate::replica) fn waits_to_keep(&self) -> bool {
        let waits = |state: &Unsettled| matches!(state.purpose, Purpose::Keep);
        self.ballots.voting.as_ref().is_some_and(|voting| voting.unsettled.iter().any(waits))
    }
}
