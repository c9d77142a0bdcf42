//! The state machine a second time, so plainly that it can be seen to be right.
//!
//! It shares with `service.rs` only the entry's type, the hash and how a register's call is packed.
//! For each reply it looks at nothing but the list of calls up to there, and at what the client
//! sent.

use std::collections::BTreeMap;

use history::Model;
use history::models::Register;
use wire::client::{Outcome, Refusal};

use crate::registers::unpack;
use crate::service::{APPEND, Entry, FAIL, FAILED, RELAY, extend};

/// Returns the required answer to the call at this place of the history (from 1).
pub fn reply(history: &[Entry], place: usize) -> Outcome {
    replies(&history[..place]).pop().expect("the history has this place")
}

/// All answers of a history, in order.
pub fn replies(history: &[Entry]) -> Vec<Outcome> {
    let mut hash = 0;
    let mut registers = BTreeMap::new();
    let mut answers = Vec::new();
    for (index, entry) in history.iter().enumerate() {
        hash = extend(hash, entry);
        let held = unpack(entry.method, entry.body).map(|call| {
            let register = registers.entry(Register.key(&call)).or_default();
            let held = *register;
            Register.execute(register, &call);
            held
        });
        answers.push(answer(entry, index + 1, hash, held));
    }
    answers
}

fn answer(entry: &Entry, place: usize, hash: u64, held: Option<u64>) -> Outcome {
    let mut bytes = Vec::new();
    bytes.extend((place as u64).to_le_bytes());
    bytes.extend(hash.to_le_bytes());
    bytes.extend(entry.random.to_le_bytes());
    if let Some(held) = held {
        bytes.extend(held.to_le_bytes());
        return Outcome::Ok(bytes.into());
    }
    for _ in 0..entry.filling {
        bytes.push(hash as u8);
    }
    if entry.method == APPEND || (entry.method == RELAY && entry.came > FAILED) {
        Outcome::Ok(bytes.into())
    } else if entry.method == FAIL || entry.method == RELAY {
        Outcome::Service(bytes.into())
    } else {
        Outcome::Refused(Refusal::NoSuchMethod, format!("{place} {hash:016x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::{READ, SWAP, WRITE, pack};
    use crate::service::{Call, Log, MISSING};
    use engine::ServiceOutcome;
    use history::models::RegisterCall;
    use wire::{ClientId, Time};

    #[test]
    fn service_and_oracle_agree() {
        let mut log = Log::new(0);
        let mut seen = Vec::new();
        let word = |call| pack(&call).1.to_le_bytes().to_vec();
        let calls = [
            (APPEND, vec![1, 0, 0, 0, 7]),
            (FAIL, vec![2, 0, 0, 0, 7]),
            (MISSING, vec![3, 0, 0, 0, 7]),
            (WRITE, word(RegisterCall::Write(1, 77))),
            (SWAP, word(RegisterCall::Swap { key: 1, old: 77, new: 78 })),
            (SWAP, word(RegisterCall::Swap { key: 1, old: 77, new: 79 })),
            (READ, word(RegisterCall::Read(1))),
            (READ, word(RegisterCall::Read(2))),
            (APPEND, vec![4, 0, 0, 0, 7]),
        ];
        for (number, (method, body)) in (1..).zip(&calls) {
            let method = *method;
            let now = Time(number * 5);
            let call =
                Call { client: ClientId(3), number, now, seed: number, method, body, came: 0 };
            seen.push(match log.execute(&call) {
                ServiceOutcome::Ok(bytes) => Outcome::Ok(bytes),
                ServiceOutcome::Error(bytes) => Outcome::Service(bytes),
                ServiceOutcome::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
            });
        }
        assert_eq!(replies(&log.entries), seen);
        assert_eq!(reply(&log.entries, 3), seen[2]);
        let held = |place: usize| match &seen[place] {
            Outcome::Ok(bytes) => bytes[24..].to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!((held(6), held(7)), (78_u64.to_le_bytes().to_vec(), vec![0; 8]));
        let mut restored = Log::new(0);
        log.told();
        restored.restore(&log.snapshot()).unwrap();
        assert_eq!(restored, log, "what the registers hold travels with the history");
    }
}
