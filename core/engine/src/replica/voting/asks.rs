//! What a voting replica's handlers ask of other groups is voted on, too (`docs/protocol/nested.md`, "Voting groups").

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};
use wire::ordered::Digest;

use super::{Matter, Stands};
use crate::bug::Bug;
use crate::replica::{Ask, Effect, Replica};
use crate::tally::Verdict;

/// Whether a call of another group may be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mandate {
    /// Nobody knows yet what a majority of the replicas asks; or it is something else than is asked here.
    Awaited,
    /// A majority asks the same, or the group does not vote on it.
    Given,
    /// No majority asks the same.
    Refused,
}

/// What stands for that a handler asks this. The name of the call is in it, and so is its patience: who gives up sooner than the
/// others asks for something else.
fn digest_of_ask(ask: &Ask) -> Digest {
    let request = &ask.request;
    let mut hash = Sha256::new();
    hash.update([3, u8::from(request.json)]);
    hash.update(request.client.0.to_le_bytes());
    hash.update(request.number.to_le_bytes());
    hash.update(ask.patience.as_micros().to_le_bytes());
    hash.update(request.group.0.to_le_bytes());
    hash.update(request.method.0.to_le_bytes());
    hash.update(&request.body);
    Digest(hash.finalize()[..16].try_into().expect("a hash of 32 bytes has 16"))
}

impl Replica {
    /// A handler asks for this call. Whether it may be ordered now: a parent that was ordered before the group voted, or is
    /// executed when it does no more, asks as in any other group.
    pub(in crate::replica) fn vote_on_ask(
        &mut self,
        ask: &Ask,
        effects: &mut Vec<Effect>,
    ) -> Mandate {
        let position = self.reached() + 1;
        let before = position <= self.history.votes_from;
        if before || (self.ballots.voting.is_none() && self.ballots.verdicts.is_empty()) {
            return Mandate::Given;
        }
        self.history.asks += 1;
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
            Stands::Open if ended || planted.is(Bug::FirstAskWins) => Mandate::Given,
            Stands::Apart if ended => {
                effects.push(Effect::Unfit);
                Mandate::Given // unless it goes it is alone
            }
            Stands::Open | Stands::Apart => {
                let voting = self.ballots.voting.as_mut().expect("votes have not ended");
                voting.awaited = Some((ask.child, position));
                Mandate::Awaited
            }
            Stands::Alike => Mandate::Given,
            Stands::Split => Mandate::Refused,
        }
    }

    /// The group ceases to vote: what a handler waits for is told by nobody any more. False if this replica deviates, unless it
    /// is `alone`: then it leaves.
    pub(in crate::replica) fn await_no_votes(
        &mut self,
        alone: bool,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let planted = self.planted.is(Bug::AwaitOldMandate);
        let Some(voting) = self.ballots.voting.as_mut().filter(|_| !planted) else { return true };
        if voting.deviates && !alone {
            effects.push(Effect::Overflow);
            self.idle(effects);
            return false;
        }
        if let Some((child, _)) = voting.awaited.take() {
            effects.push(Effect::Mandate(child, Mandate::Given));
        }
        true
    }
}

#[cfg(test)]
mod tests;
