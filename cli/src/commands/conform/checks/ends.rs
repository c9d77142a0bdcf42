//! How a program ends.

use wire::attach::Frame;

use super::super::check::{Check, Trial};
use super::super::session::Session;
use super::super::verdict::Flaw;

pub const CHECKS: &[Check] = &[
    Check {
        name: "farewell",
        promise: "Farewell without a reason ends the program, without an error",
        section: "Serving",
        run: farewell,
    },
    Check {
        name: "farewell-reason",
        promise: "Farewell with a reason ends the program",
        section: "Serving",
        run: |trial| {
            let mut session = trial.session()?;
            session.write(&Frame::Farewell("tried by conform".into()).encode())?;
            session.end("Farewell with a reason", trial.wait).map(drop)
        },
    },
    Check {
        name: "end",
        promise: "the end of the connection ends the program",
        section: "Serving",
        run: |trial| {
            let mut session = after_calls(trial)?;
            session.close();
            session.end("the end of the connection", trial.wait).map(drop)
        },
    },
];

fn after_calls(trial: &Trial) -> Result<Session, Flaw> {
    let mut session = trial.session()?;
    session.execute_all(&trial.plan.calls)?;
    Ok(session)
}

fn farewell(trial: &Trial) -> Result<(), Flaw> {
    const AFTER: &str = "Farewell without a reason";
    let mut session = after_calls(trial)?;
    session.write(&Frame::Farewell(String::new()).encode())?;
    let status = session.end(AFTER, trial.wait)?;
    if !status.success() {
        return Err(Flaw::wrong(format!("{AFTER}: exit status 0"), status.to_string()));
    }
    Ok(())
}
