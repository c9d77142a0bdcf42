//! The state machine a second time, so plainly that it can be seen to be right.
//!
//! It shares with `service.rs` only the entry's type and the hash. For each reply it looks at nothing
//! but the list of calls up to there, and at what the client sent.

use wire::client::{Outcome, Refusal};

use crate::service::{APPEND, Entry, FAIL, extend};

/// What the call at this place of the history (from 1) must have answered.
pub fn reply(history: &[Entry], place: usize) -> Outcome {
    let mut hash = 0;
    for entry in &history[..place] {
        hash = extend(hash, entry);
    }
    answer(&history[place - 1], place, hash)
}

/// All answers of a history, in order: as [`reply`] for each place, without starting over.
pub fn replies(history: &[Entry]) -> Vec<Outcome> {
    let mut hash = 0;
    let mut answers = Vec::new();
    for (index, entry) in history.iter().enumerate() {
        hash = extend(hash, entry);
        answers.push(answer(entry, index + 1, hash));
    }
    answers
}

fn answer(entry: &Entry, place: usize, hash: u64) -> Outcome {
    let mut bytes = Vec::new();
    bytes.extend((place as u64).to_le_bytes());
    bytes.extend(hash.to_le_bytes());
    bytes.extend(entry.random.to_le_bytes());
    for _ in 0..entry.filling {
        bytes.push(hash as u8);
    }
    if entry.method == APPEND {
        Outcome::Ok(bytes.into())
    } else if entry.method == FAIL {
        Outcome::Service(bytes.into())
    } else {
        Outcome::Refused(Refusal::NoSuchMethod, format!("{hash:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Call, Log, MISSING};
    use engine::ServiceOutcome;
    use wire::{ClientId, Time};

    #[test]
    fn service_and_oracle_agree() {
        let mut log = Log::new(0);
        let mut seen = Vec::new();
        for (number, method) in (1..).zip([APPEND, FAIL, MISSING, APPEND]) {
            let body = &[number as u8, 0, 0, 0, 7];
            let now = Time(number * 5);
            let call = Call { client: ClientId(3), number, now, seed: number, method, body };
            seen.push(match log.execute(&call) {
                ServiceOutcome::Ok(bytes) => Outcome::Ok(bytes),
                ServiceOutcome::Error(bytes) => Outcome::Service(bytes),
                ServiceOutcome::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
            });
        }
        assert_eq!(replies(&log.entries), seen);
        assert_eq!(reply(&log.entries, 3), seen[2]);
    }
}
