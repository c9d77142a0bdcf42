//! Hello, Welcome and the contract.

use steadfast::Contract;
use wire::attach::Outcome;

use super::super::check::{Check, Trial};
use super::super::plan::Call;
use super::super::session::{How, Session, Start, told};
use super::super::verdict::{Flaw, same};

pub const HELLO: Check = Check {
    name: "hello",
    promise: "the program connects and says Hello, with its token and group",
    section: "Attaching",
    run: |trial| trial.session().map(drop),
};

pub const CHECKS: &[Check] = &[
    Check {
        name: "welcome-extension",
        promise: "the program skips an extension of Welcome",
        section: "Attaching",
        run: extension,
    },
    Check {
        name: "stateless",
        promise: "the program serves without flag 1 of Welcome: a stateless group",
        section: "Serving",
        run: stateless,
    },
    Check {
        name: "contract",
        promise: "the program tells its contract, as a read, and always the same",
        section: "Contract",
        run: contract,
    },
];

fn extension(trial: &Trial) -> Result<(), Flaw> {
    let mut session = Session::open(Start { extension: b"of a newer node", ..trial.start() })?;
    session.execute(&trial.any_call(), How::Ordered).map(drop)
}

fn stateless(trial: &Trial) -> Result<(), Flaw> {
    let mut session = Session::open(Start { ordered: false, ..trial.start() })?;
    session.execute_all(trial.plan.calls()?).map(drop)
}

fn contract(trial: &Trial) -> Result<(), Flaw> {
    trial.plan.contract()?;
    let mut session = trial.session()?;
    let describe = Call::describe();
    let first = session.execute(&describe, How::Read)?;
    let Outcome::Ok(bytes) = &first else {
        return Err(Flaw::wrong("the contract", told(&first)));
    };
    Contract::from_json(bytes).map_err(|why| Flaw::wrong("a contract", why.to_string()))?;
    session.execute_all(&trial.plan.calls)?;
    let again = session.execute(&describe, How::Read)?;
    same(&first, &again, told, "the contract after some calls")
}
