//! Frames from and for what a replica executes in a program.

use bytes::Bytes;
use engine::{Command, Executed, NestedCall, NestedError, ServiceOutcome, Ticket};
use wire::attach::{Answer, Ask, Execute, Failed, Frame, Outcome, Piece, Told};
use wire::limits::{ATTACH_PIECE, MAX_BODY, MAX_STATE};

use crate::executor::{Done, cut};
use crate::nested::error_of;

/// A call as the replica executes it.
pub(super) fn command_of(execute: Execute) -> Command {
    let Execute { number, now, seed, client, call, method, json, read, lane, body } = execute;
    let ticket = Ticket(number);
    Command::Execute { ticket, method, json, read, body, now, seed, client, number: call, lane }
}

/// Puts the answer to a command.
pub(super) fn answer(number: u64, done: Done, mut put: impl FnMut(Frame)) {
    let Done { executed, panicked, .. } = done;
    match executed {
        Executed::Reply(outcome) => {
            let outcome = match outcome {
                ServiceOutcome::Ok(body) => Outcome::Ok(body),
                ServiceOutcome::Error(body) => Outcome::Error(body),
                ServiceOutcome::Refused(refusal, reason) => Outcome::Refused(refusal, reason),
            };
            put(Frame::Answer(Answer { number, panicked, outcome }));
        }
        Executed::Snapshot(Ok(state)) => give_state(number, state, put),
        Executed::Restored(Ok(())) => put(Frame::Restored(number)),
        Executed::Change(_) | Executed::Applied(_) => {
            unreachable!("a node gives and takes a program's whole states")
        }
        Executed::Snapshot(Err(reason)) | Executed::Restored(Err(reason)) => {
            put(failed(number, reason));
        }
    }
}

fn give_state(number: u64, mut left: Bytes, mut put: impl FnMut(Frame)) {
    if left.len() > MAX_STATE {
        let reason = format!("the state has {} bytes, at most {MAX_STATE} fit", left.len());
        return put(failed(number, reason));
    }
    let total = left.len() as u64;
    loop {
        let bytes = left.split_to(left.len().min(ATTACH_PIECE));
        put(Frame::State(Piece { number, total, bytes }));
        if left.is_empty() {
            return;
        }
    }
}

fn failed(number: u64, reason: String) -> Frame {
    Frame::Failed(Failed { number, reason: cut(reason) })
}

/// A handler's call of another group, as the node is asked.
pub(super) fn ask_of(call: NestedCall) -> Result<Ask, NestedError> {
    let timeout_us = u32::try_from(call.timeout.as_micros()).unwrap_or(u32::MAX);
    let NestedCall { ticket, callee, method, json, body, .. } = call;
    if body.len() > MAX_BODY {
        return Err(NestedError::TooLarge(body.len()));
    }
    Ok(Ask { number: ticket.0, method, timeout_us, json, group: callee, body })
}

/// The node's word of what came of it.
pub(super) fn outcome_of(told: Told) -> Result<Bytes, NestedError> {
    match (told.error, told.outcome) {
        (0, Outcome::Ok(body)) => Ok(body),
        (0, Outcome::Error(body)) => Err(NestedError::Service(body)),
        (0, Outcome::Refused(refusal, reason)) => Err(NestedError::Refused(refusal, reason)),
        (error, _) => Err(error_of(error)),
    }
}
