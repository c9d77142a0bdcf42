//! Merge: the state of another history.

use bytes::Bytes;
use wire::attach::Outcome;
use wire::client::Refusal;

use super::super::check::{Check, Trial};
use super::super::plan::Call;
use super::super::session::{How, told};
use super::super::verdict::{Flaw, same_state};

pub const CHECKS: &[Check] = &[Check {
    name: "merge",
    promise: "a service takes in what it says that it merges, and refuses the rest",
    section: "Serving",
    run: merge,
}];

/// A state that no service can read.
const UNREADABLE: [u8; 100] = [0xff; 100];

fn merge(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    if !session.merges() {
        let call = Call::new("steadfast.merge", "[]");
        return match session.execute(&call, How::Ordered)? {
            Outcome::Refused(Refusal::NoSuchMethod, _) => Ok(()),
            other => Err(Flaw::wrong("steadfast.merge refused by 3", told(&other))),
        };
    }
    session.execute_all(&trial.plan.calls)?;
    let state = session.snapshot()?;
    match session.merge(&UNREADABLE)? {
        Outcome::Refused(Refusal::Failed, _) => {}
        other => {
            let expected = "an unreadable state of another history refused by 5";
            return Err(Flaw::wrong(expected, told(&other)));
        }
    }
    same_state(&state, &session.snapshot()?, "the state after a merge that was refused")?;
    let other = trial.session()?.snapshot()?;
    for state in [&state, &other] {
        match session.merge(state)? {
            Outcome::Ok(bytes) if bytes == Bytes::new() => {}
            other => return Err(Flaw::wrong("a merge answered by 1 without bytes", told(&other))),
        }
    }
    let merged = session.snapshot()?;
    let mut next = trial.session()?;
    next.restore_own(&merged)?;
    same_state(&merged, &next.snapshot()?, "the merged state in another program")
}
