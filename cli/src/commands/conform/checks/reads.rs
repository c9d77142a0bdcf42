//! Calls that change nothing.

use wire::attach::Outcome;
use wire::client::Refusal;

use super::super::check::{Check, Trial};
use super::super::session::{How, refused, told};
use super::super::verdict::{Flaw, same, same_state};

pub const CHECKS: &[Check] = &[
    Check {
        name: "reads",
        promise: "a method that reads changes no state, and answers a read as a call",
        section: "Serving",
        run: reads,
    },
    Check {
        name: "reads-refused",
        promise: "a method that may change the state is refused as a read",
        section: "Serving",
        run: reads_refused,
    },
];

fn reads(trial: &Trial) -> Result<(), Flaw> {
    let reading = trial.plan.one_of_each(true)?;
    if reading.is_empty() {
        return Err(Flaw::not_tried("no method reads, as the contract says"));
    }
    let mut session = trial.session()?;
    session.execute_all(&trial.plan.calls)?;
    let before = session.snapshot()?;
    for call in reading {
        let read = session.execute(call, How::Read)?;
        if let Outcome::Refused(..) = read {
            return Err(Flaw::wrong(format!("{call} as a read: a result"), told(&read)));
        }
        let place = format!("the state after {call} as a read");
        same_state(&before, &session.snapshot()?, &place)?;
        // Both at one time: an answer may depend on it.
        session.set_stamp(session.stamp() - 1);
        let ordered = session.execute(call, How::Ordered)?;
        same(&read, &ordered, told, &format!("{call}, ordered"))?;
        same_state(&before, &session.snapshot()?, &format!("the state after {call}"))?;
    }
    Ok(())
}

fn reads_refused(trial: &Trial) -> Result<(), Flaw> {
    let changing = trial.plan.one_of_each(false)?;
    if changing.is_empty() {
        return Err(Flaw::not_tried("all methods read, as the contract says"));
    }
    let mut session = trial.session()?;
    let before = session.snapshot()?;
    for call in changing {
        let outcome = session.execute(call, How::Read)?;
        refused(&outcome, Refusal::NotReadOnly, format!("{call} as a read"))?;
        same_state(&before, &session.snapshot()?, "the state after a refused read")?;
    }
    Ok(())
}
