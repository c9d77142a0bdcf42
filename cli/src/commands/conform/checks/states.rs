//! Snapshot, Restore and Reset.

use wire::limits::ATTACH_PIECE;

use super::super::check::{Check, Trial};
use super::super::plan::Call;
use super::super::session::{How, Session, told};
use super::super::verdict::{Flaw, same, same_state};

pub const CHECKS: &[Check] = &[
    Check {
        name: "snapshot",
        promise: "the state comes in pieces with its total, and again the same",
        section: "Serving",
        run: snapshot,
    },
    Check {
        name: "many-pieces",
        promise: "a state of more than 256 KiB comes in several pieces, and is taken so",
        section: "Serving",
        run: many_pieces,
    },
    Check {
        name: "restore",
        promise: "a restored state replaces the old one",
        section: "Serving",
        run: restore,
    },
    Check {
        name: "restore-elsewhere",
        promise: "another program goes on from the state as the first one does",
        section: "Serving",
        run: restore_elsewhere,
    },
    Check {
        name: "restore-unreadable",
        promise: "an unreadable state is told by Failed, and the old one stays",
        section: "Serving",
        run: restore_unreadable,
    },
    Check {
        name: "reset",
        promise: "Reset gives the initial state, and has no answer",
        section: "Serving",
        run: reset,
    },
];

/// A state that no service can read: neither text nor a number that ends.
const UNREADABLE: [u8; 100] = [0xff; 100];

/// The two halves of the calls.
fn halves(trial: &Trial) -> Result<(&[Call], &[Call]), Flaw> {
    let calls = trial.plan.calls()?;
    Ok(calls.split_at(calls.len().div_ceil(2)))
}

/// A program after the first half of the calls, and the state then.
fn halfway(trial: &Trial) -> Result<(Session, Vec<u8>), Flaw> {
    let mut session = trial.session()?;
    session.execute_all(halves(trial)?.0)?;
    let state = session.snapshot()?;
    Ok((session, state))
}

fn unchanged() -> Flaw {
    Flaw::not_tried("no call changed the state: give one that does, by --call")
}

fn snapshot(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    session.snapshot()?;
    session.execute_all(&trial.plan.calls)?;
    let state = session.snapshot()?;
    same_state(&state, &session.snapshot()?, "the state once more, without a call between")
}

/// Makes the state large by the longest arguments that some method keeps.
fn many_pieces(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    for call in trial.plan.one_of_each(false)? {
        let Some(call) = trial.plan.with_long_texts(call, ATTACH_PIECE) else { continue };
        session.execute(&call, How::Ordered)?;
        let state = session.snapshot()?;
        if state.len() > ATTACH_PIECE {
            session.reset()?;
            session.restore_own(&state)?;
            return same_state(&state, &session.snapshot()?, "the state after Restore");
        }
    }
    Err(Flaw::not_tried("no call with a long text made the state that large"))
}

fn restore(trial: &Trial) -> Result<(), Flaw> {
    let (mut session, state) = halfway(trial)?;
    session.execute_all(halves(trial)?.1)?;
    let other = session.snapshot()?;
    if state == other {
        return Err(unchanged());
    }
    session.restore_own(&state)?;
    same_state(&state, &session.snapshot()?, "the state after Restore")
}

fn restore_elsewhere(trial: &Trial) -> Result<(), Flaw> {
    let (mut first, state) = halfway(trial)?;
    let mut second = trial.session()?;
    second.restore_own(&state)?;
    same_state(&state, &second.snapshot()?, "the state after Restore in another program")?;
    second.set_stamp(first.stamp());
    for call in halves(trial)?.1 {
        let expected = first.execute(call, How::Ordered)?;
        let seen = second.execute(call, How::Ordered)?;
        same(&expected, &seen, told, &format!("{call} after Restore"))?;
    }
    let expected = first.snapshot()?;
    same_state(&expected, &second.snapshot()?, "the state after the same further calls")
}

fn restore_unreadable(trial: &Trial) -> Result<(), Flaw> {
    let (mut session, state) = halfway(trial)?;
    if session.restore(&UNREADABLE)?.is_ok() {
        let seen = session.snapshot()?;
        if seen == UNREADABLE || state.is_empty() {
            return Err(Flaw::not_tried("the service takes any bytes as its state"));
        }
        let expected = format!("Failed for {} bytes 255, which are no state", UNREADABLE.len());
        return Err(Flaw::wrong(expected, "Restored"));
    }
    same_state(&state, &session.snapshot()?, "the state after Failed")?;
    // Nothing of the unreadable state may lie before the next.
    session.restore_own(&state)?;
    same_state(&state, &session.snapshot()?, "the state after a Restore behind Failed")
}

fn reset(trial: &Trial) -> Result<(), Flaw> {
    let (mut session, mut fresh) = (trial.session()?, trial.session()?);
    let initial = session.snapshot()?;
    let calls = trial.plan.calls()?;
    session.execute_all(calls)?;
    if session.snapshot()? == initial {
        return Err(unchanged());
    }
    session.reset()?;
    same_state(&initial, &session.snapshot()?, "the state after Reset")?;
    fresh.set_stamp(session.stamp());
    for call in calls {
        let expected = fresh.execute(call, How::Ordered)?;
        let seen = session.execute(call, How::Ordered)?;
        same(&expected, &seen, told, &format!("{call} after Reset, as in a new program"))?;
    }
    Ok(())
}
