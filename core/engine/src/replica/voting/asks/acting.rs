//! Votes on the replicas' calls of other groups.

use alloc::vec::Vec;

use super::digest_of_ask;
use crate::bug::Bug;
use crate::replica::CallQuorum;
use crate::replica::voting::{Matter, Stands};
use crate::replica::{Ask, Effect, Replica};
use crate::tally::Verdict;

impl Replica {
    /// A handler asks for this call. Whether it may be ordered now: a parent that was ordered
    /// before the group voted, or is executed when it does no more, asks as in any other group.
    pub(in crate::replica) fn vote_on_ask(
        &mut self,
        ask: &Ask,
        effects: &mut Vec<Effect>,
    ) -> CallQuorum {
        let position = self.reached() + 1;
        let before = position <= self.history.votes_from;
        if before || (self.ballots.voting.is_none() && self.ballots.verdicts.is_empty()) {
            return CallQuorum::Given;
        }
        self.history.asks += 1;
        self.history.changed_at += 1; // so are all positions behind it
        let (digest, planted) = (digest_of_ask(ask), self.planted);
        let ended = self.ballots.voting.is_none() || self.style_will_change();
        let stands = match (&mut self.ballots.voting, self.ballots.verdicts.remove(&position)) {
            (Some(voting), _) => voting.cast(position, digest, Matter::Ask(ask.child), planted),
            (None, Some(Verdict::Agreed(agreed))) if agreed != digest => Stands::Apart,
            (None, Some(Verdict::Split(_))) => Stands::Split,
            (None, _) => Stands::Alike,
        };
        effects.push(Effect::Cast);
        match stands {
            Stands::Open if ended || planted.is(Bug::FirstAskWins) => CallQuorum::Given,
            Stands::Apart if ended => {
                effects.push(Effect::Unfit);
                CallQuorum::Given // unless it goes it is alone
            }
            Stands::Open | Stands::Apart => {
                let voting = self.ballots.voting.as_mut().expect("votes have not ended");
                voting.awaited = Some((ask.child, position));
                CallQuorum::Awaited
            }
            Stands::Alike => CallQuorum::Given,
            Stands::Split => CallQuorum::Refused,
        }
    }

    /// The group ceases to vote: no vote will come for a handler's call. False if this replica
    /// deviates and leaves, which it does unless it is `alone`.
    pub(in crate::replica) fn await_no_votes(
        &mut self,
        alone: bool,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let planted = self.planted.is(Bug::AwaitOldCallQuorum);
        let Some(voting) = self.ballots.voting.as_mut().filter(|_| !planted) else { return true };
        if voting.deviates && !alone {
            effects.push(Effect::Overflow);
            self.idle(effects);
            return false;
        }
        if let Some((child, _)) = voting.awaited.take() {
            effects.push(Effect::CallQuorum(child, CallQuorum::Given));
        }
        true
    }
}

#[cfg(test)]
mod tests;
