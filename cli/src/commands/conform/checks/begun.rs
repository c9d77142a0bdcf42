//! The file in which a program tells the command that it begins.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use wire::attach::Frame;

use super::super::check::{Check, Trial};
use super::super::session::{How, Session};
use super::super::verdict::Flaw;

pub const CHECKS: &[Check] = &[Check {
    name: "begun",
    promise: "each command's number stands in $STEADFAST_BEGINS before its answer leaves",
    section: "Begun",
    run: begun,
}];

/// Commands whose answers nobody reads: more than a program may keep from blocking.
const FLOOD: usize = 20_000;

/// A program that does nothing for so long waits.
const AT_REST: Duration = Duration::from_millis(300);
const LOOK: Duration = Duration::from_millis(10);

fn begun(trial: &Trial) -> Result<(), Flaw> {
    let calls = trial.plan.calls()?;
    let mut session = trial.session()?;
    for call in calls {
        session.execute(call, How::Ordered)?;
        after(&session, &format!("the answer to {call}"))?;
    }
    session.snapshot()?;
    after(&session, "the state")?;
    flood(trial, session)
}

/// One command was given, and its answer is here.
fn after(session: &Session, answer: &str) -> Result<(), Flaw> {
    let number = session.number();
    match session.begun()? {
        Some(begun) if begun == number => Ok(()),
        None => Err(Flaw::not_tried(
            "the program writes nothing there: if it dies, all its unanswered calls are blamed",
        )),
        Some(other) => {
            let expected = format!("{number} in $STEADFAST_BEGINS after {answer}");
            Err(Flaw::wrong(expected, other.to_string()))
        }
    }
}

/// Lets the program block in an answer that nobody reads. It has begun the command of that answer,
/// so the file must be ahead of the last whole answer: whichever of the two is faster.
fn flood(trial: &Trial, mut session: Session) -> Result<(), Flaw> {
    let calls = trial.plan.calls()?;
    let call = calls.iter().find(|call| call.reads == Some(true)).unwrap_or(&calls[0]);
    let (mut commands, mut left) = (BytesMut::new(), FLOOD);
    let mut last = (0, 0, None);
    let (mut since, deadline) = (Instant::now(), Instant::now() + 2 * trial.wait);
    while since.elapsed() < AT_REST {
        if Instant::now() > deadline {
            let why = format!("the program did not come to rest within {:?}", 2 * trial.wait);
            return Err(Flaw::not_tried(why));
        }
        while commands.len() < 64 << 10 && left > 0 {
            commands.extend_from_slice(&session.command(call, How::Ordered));
            left -= 1;
        }
        let offered = session.link().offer(&commands);
        let offered =
            offered.map_err(|error| Flaw::wrong("the program reads", error.to_string()))?;
        let _ = commands.split_to(offered);
        let answered = answered(&mut session)?;
        let now = (commands.len() + left, answered, session.begun()?);
        if now != last || offered > 0 || !session.sleeps() {
            (last, since) = (now, Instant::now());
        }
        std::thread::sleep(LOOK);
    }
    let (unsent, answered, begun) = last;
    let begun = begun.unwrap_or(0);
    let all = unsent == 0 && answered == session.number();
    let least = if all { answered } else { answered + 1 };
    if begun < least {
        let expected = format!(
            "at least {least} in $STEADFAST_BEGINS, while the answer to command {least} is on \
             its way"
        );
        return Err(Flaw::wrong(expected, begun.to_string()));
    }
    Ok(())
}

/// The last command whose answer has left whole.
fn answered(session: &mut Session) -> Result<u64, Flaw> {
    let unread = session.link().unread();
    let frames = unread.map_err(|error| Flaw::wrong("whole frames", error.to_string()))?;
    let answers = frames.iter().rev().filter_map(|frame| match frame {
        Frame::Answer(answer) => Some(answer.number),
        _ => None,
    });
    Ok(answers.max().unwrap_or(0))
}
