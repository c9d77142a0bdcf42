//! A replica's answers and their receivers.

mod acting;

use alloc::vec::Vec;

use wire::ClientId;
use wire::client::Refusal;
use wire::limits::MAX_BODY;

use super::Effect;
use super::calls::end_of;
use crate::api::ServiceOutcome;
use crate::session::Asked;

/// A reply that fits into a frame.
pub(super) fn fitting(outcome: ServiceOutcome) -> ServiceOutcome {
    match outcome {
        ServiceOutcome::Ok(bytes) | ServiceOutcome::Error(bytes) if bytes.len() > MAX_BODY => {
            let reason = alloc::format!(
                "the reply has {} bytes, the limit is {MAX_BODY}: ask for less at a time",
                bytes.len()
            );
            ServiceOutcome::Refused(Refusal::ReplyTooLarge, reason)
        }
        outcome => outcome,
    }
}

/// Sends the answer to a client, or to the calling group, whose call asked this.
pub(super) fn answer(
    client: ClientId,
    number: u64,
    asked: Asked,
    outcome: ServiceOutcome,
    effects: &mut Vec<Effect>,
) {
    effects.push(match asked {
        Asked::Group(asked) => Effect::Owe { client, number, asked, end: end_of(&outcome) },
        asked => Effect::Answer { client, number, asked, outcome },
    });
}
