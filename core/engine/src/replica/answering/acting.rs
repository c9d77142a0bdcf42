//! Answers of the service, taken in their order.

use alloc::vec::Vec;

use wire::ClientId;
use wire::client::Refusal;
use wire::ordered::End;

use super::{answer, fitting};
use crate::api::{Event, ServiceOutcome};
use crate::bug::Bug;
use crate::replica::{Effect, Replica};
use crate::session::{Asked, Decision, FORGOTTEN, REUSED};

impl Replica {
    /// A request has been executed: its session keeps the outcome, which is told when it may be.
    pub(in crate::replica) fn finish(
        &mut self,
        place: u64,
        (client, number, asked): (ClientId, u64, Asked),
        outcome: ServiceOutcome,
        effects: &mut Vec<Effect>,
    ) {
        let outcome = fitting(outcome);
        self.history.sessions.finish(place, client, number, outcome.clone());
        self.count(client, number, effects);
        // A vote may be what it waits for besides.
        if let Some(sequence) = self.lead.caution(self.history.executed) {
            effects.push(Effect::Settled { client, number, sequence });
        }
        if self.vote(client, number, &outcome, effects) {
            self.answer_executed(self.history.executed, (client, number, asked), outcome, effects);
        }
        self.note_executed(effects);
    }

    /// The history has one more call.
    pub(in crate::replica) fn count(
        &mut self,
        client: ClientId,
        number: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.history.executed += 1;
        if self.lead.last() < self.history.executed {
            self.lead.skip(1);
        }
        let mut last = self.history.poisons.iter().rev().map(|poison| poison.number);
        if last.find(|number| *number <= self.history.executed) == Some(self.history.executed) {
            return; // nobody executes it
        }
        let (group, position) = (self.group, self.history.executed);
        effects.push(Effect::Event(Event::Executed { group, client, number, position }));
    }

    /// Answers a request that is not to be executed (again), as far as that can be done now.
    pub(in crate::replica) fn answer_at_once(
        &self,
        (client, number, asked): (ClientId, u64, Asked),
        decision: Decision,
        effects: &mut Vec<Effect>,
    ) {
        match decision {
            Decision::Execute(_) => unreachable!("it is executed"),
            // The answer comes with the result.
            Decision::Running => effects.push(self.copy(client, number)),
            Decision::Done(_)
                if asked.of_group().is_some() && self.planted.is(Bug::NestedReplyNotRepeated) => {}
            Decision::Done(outcome) => {
                effects.push(self.copy(client, number));
                if !self.is_unsettled(client, number) && !self.is_withheld(client, number) {
                    answer(client, number, asked, outcome, effects);
                }
            }
            Decision::Diverged => match asked {
                Asked::Group(asked) => {
                    effects.push(Effect::Owe { client, number, asked, end: End::Diverged });
                }
                asked => {
                    let outcome = ServiceOutcome::Refused(Refusal::KeyReused, REUSED.into());
                    answer(client, number, asked, outcome, effects);
                }
            },
            Decision::Forgotten => {
                let outcome = ServiceOutcome::Refused(Refusal::Stale, FORGOTTEN.into());
                answer(client, number, asked, outcome, effects);
            }
            Decision::Stale => {
                let reason = "the call's number is outside the session's window: a client must not \
                              reuse the number of a call that it gave up";
                let outcome = ServiceOutcome::Refused(Refusal::Stale, reason.into());
                answer(client, number, asked, outcome, effects);
            }
            Decision::Full => {
                let reason = "the group serves as many clients as it can: try again later";
                let outcome = ServiceOutcome::Refused(Refusal::Busy, reason.into());
                answer(client, number, asked, outcome, effects);
            }
        }
    }

    pub(in crate::replica) fn copy(&self, client: ClientId, number: u64) -> Effect {
        Effect::Event(Event::Copy { group: self.group, client, number })
    }
}
