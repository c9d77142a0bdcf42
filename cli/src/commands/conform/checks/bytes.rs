//! Frames in any portion, of unknown kinds, and of hostile nodes.

use wire::NodeId;
use wire::attach::{FIRST_OPTIONAL_FRAME, Frame, View};
use wire::limits::MAX_FRAME;

use super::super::check::{Check, Trial};
use super::super::link::raw;
use super::super::session::{How, Session};
use super::super::verdict::Flaw;

/// An optional frame that there is not, far behind those that there are.
const UNKNOWN: u8 = FIRST_OPTIONAL_FRAME + 40;

pub const CHECKS: &[Check] = &[
    Check {
        name: "single-bytes",
        promise: "a command that comes in single bytes is answered",
        section: "Attaching",
        run: single_bytes,
    },
    Check {
        name: "optional-frames",
        promise: "frames of kinds from 128 on are skipped",
        section: "Attaching",
        run: optional_frames,
    },
    Check {
        name: "unknown-frame",
        promise: "a frame of an unknown kind below 128 ends the program, with an error",
        section: "Serving",
        run: |trial| hostile(trial, "a frame of kind 99", &raw(99, b"")),
    },
    Check {
        name: "overlong-frame",
        promise: "a header that announces more than the largest body ends the program",
        section: "Serving",
        run: overlong_frame,
    },
    Check {
        name: "short-command",
        promise: "a command that is too short ends the program, with an error",
        section: "Serving",
        run: |trial| hostile(trial, "an Execute of 5 bytes", &raw(3, b"short")),
    },
    Check {
        name: "half-frame",
        promise: "the end of the connection within a frame ends the program",
        section: "Serving",
        run: half_frame,
    },
];

fn single_bytes(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    let call = trial.any_call();
    for byte in session.command(&call, How::Ordered).chunks(1) {
        session.write(byte)?;
    }
    session.answer(session.number(), &call).map(drop)
}

fn optional_frames(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    let call = trial.any_call();
    // A view has no answer, whether the program knows the frame or not.
    let view = View { number: 7, members: vec![NodeId(2), NodeId(1)], joining: vec![NodeId(3)] };
    session.write(&Frame::View(view).encode())?;
    session.execute(&call, How::Ordered)?;
    for (kind, body) in [(UNKNOWN, &b""[..]), (200, b"of a newer node"), (255, b"x")] {
        session.write(&raw(kind, body))?;
        session.execute(&call, How::Ordered)?;
    }
    Ok(())
}

/// The program is to end by itself: the connection stays open.
fn hostile(trial: &Trial, words: &str, bytes: &[u8]) -> Result<(), Flaw> {
    let mut session = served(trial)?;
    session.write(bytes)?;
    session.end_in_error(words)
}

/// A program that has answered, so that nothing but what comes now can end it.
fn served(trial: &Trial) -> Result<Session, Flaw> {
    let mut session = trial.session()?;
    session.execute(&trial.any_call(), How::Ordered)?;
    Ok(session)
}

fn overlong_frame(trial: &Trial) -> Result<(), Flaw> {
    let length = u32::try_from(MAX_FRAME + 1).expect("a frame's length");
    let header = [&length.to_le_bytes()[..], &[3, 0, 0, 0]].concat();
    hostile(trial, &format!("a header with the length {length}"), &header)
}

fn half_frame(trial: &Trial) -> Result<(), Flaw> {
    let mut session = served(trial)?;
    let frame = Frame::Snapshot(session.number() + 1).encode();
    session.write(&frame[..frame.len() / 2 + 1])?;
    session.close();
    session.end("half a frame, and then the end of the connection", trial.wait).map(drop)
}
