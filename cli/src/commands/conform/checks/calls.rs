//! Execute and its answers.

use bytes::BytesMut;
use serde_json::Value;
use wire::attach::Outcome;
use wire::client::Refusal;
use wire::limits::MAX_BODY;

use super::super::check::{Check, Trial};
use super::super::plan::Call;
use super::super::session::{How, refused, told};
use super::super::types::Type;
use super::super::verdict::{Flaw, same, same_state, shown};

pub const CHECKS: &[Check] = &[
    Check {
        name: "numbers",
        promise: "each answer has the number of its command",
        section: "Serving",
        run: numbers,
    },
    Check {
        name: "order",
        promise: "commands that come together are answered in their order",
        section: "Serving",
        run: order,
    },
    Check {
        name: "results",
        promise: "answers are JSON, and of the types in the contract",
        section: "Contract",
        run: results,
    },
    Check {
        name: "unknown-method",
        promise: "a method that the service does not have is refused",
        section: "Serving",
        run: unknown_method,
    },
    Check {
        name: "bad-arguments",
        promise: "wrong arguments are refused, and change nothing",
        section: "Serving",
        run: bad_arguments,
    },
    Check {
        name: "by-name",
        promise: "arguments by name do the same as arguments in order",
        section: "Serving",
        run: by_name,
    },
    Check {
        name: "largest-frame",
        promise: "arguments of 1 MiB are taken",
        section: "Attaching",
        run: largest_frame,
    },
];

fn numbers(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    session.execute(&trial.any_call(), How::Ordered)?;
    session.execute_all(&trial.plan.calls).map(drop)
}

fn order(trial: &Trial) -> Result<(), Flaw> {
    let calls = trial.plan.calls()?;
    let mut session = trial.session()?;
    let mut bytes = BytesMut::new();
    for call in calls {
        bytes.extend_from_slice(&session.command(call, How::Ordered));
    }
    session.write(&bytes)?;
    for (number, call) in (1..).zip(calls) {
        session.answer(number, call)?;
    }
    Ok(())
}

fn results(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    for call in trial.plan.calls()? {
        let outcome = session.execute(call, How::Ordered)?;
        let (bytes, ty) = match &outcome {
            Outcome::Ok(bytes) => (bytes, trial.plan.method(call).map(|it| Some(&it.result))),
            Outcome::Error(bytes) => (bytes, trial.plan.method(call).map(|it| it.error.as_ref())),
            Outcome::Refused(..) => {
                let expected = format!("{call}: a result, or an error of the service");
                return Err(Flaw::wrong(expected, told(&outcome)));
            }
        };
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            Flaw::wrong(format!("{call}: JSON"), format!("{}: {error}", shown(bytes)))
        })?;
        match (ty, &trial.plan.contract) {
            (Some(Some(ty)), Some(contract)) if !Type::of(ty).fits(&contract.types, &value) => {
                return Err(Flaw::wrong(format!("{call}: a value of type {ty}"), told(&outcome)));
            }
            (Some(None), _) => {
                let expected = format!("{call}: a result, since the contract tells no error");
                return Err(Flaw::wrong(expected, told(&outcome)));
            }
            _ => {}
        }
    }
    Ok(())
}

fn unknown_method(trial: &Trial) -> Result<(), Flaw> {
    let mut session = trial.session()?;
    let before = session.snapshot()?;
    let call = Call::new("no such method, asked by conform", "[]");
    let outcome = session.execute(&call, How::Ordered)?;
    refused(&outcome, Refusal::NoSuchMethod, "a method that no service has")?;
    same_state(&before, &session.snapshot()?, "the state after a refused call")
}

fn bad_arguments(trial: &Trial) -> Result<(), Flaw> {
    let contract = trial.plan.contract()?;
    let only_json = contract.encodings.iter().all(|encoding| encoding == "json");
    let mut session = trial.session()?;
    let before = session.snapshot()?;
    let reading = trial.plan.one_of_each(true)?;
    for call in reading.into_iter().chain(trial.plan.one_of_each(false)?) {
        for (wrong, why) in trial.plan.wrong_arguments(call) {
            let outcome = session.execute(&wrong, How::Ordered)?;
            refused(&outcome, Refusal::BadArguments, format!("{wrong}, {why}"))?;
        }
        if only_json {
            let outcome = session.execute(call, How::Postcard)?;
            let place = format!("{call} without flag 1, which is postcard");
            refused(&outcome, Refusal::BadArguments, place)?;
        }
    }
    same_state(&before, &session.snapshot()?, "the state after refused calls")
}

fn by_name(trial: &Trial) -> Result<(), Flaw> {
    trial.plan.contract()?;
    let calls = trial.plan.calls()?;
    let named: Vec<_> =
        calls.iter().filter_map(|call| Some((call, trial.plan.by_name(call)?))).collect();
    if named.is_empty() {
        return Err(Flaw::not_tried("no method has arguments"));
    }
    let (mut in_order, mut by_name) = (trial.session()?, trial.session()?);
    for (call, named) in named {
        let expected = in_order.execute(call, How::Ordered)?;
        let seen = by_name.execute(&named, How::Ordered)?;
        same(&expected, &seen, told, &named.to_string())?;
    }
    Ok(())
}

fn largest_frame(trial: &Trial) -> Result<(), Flaw> {
    let call = trial.plan.calls()?.first().expect("there is one");
    let (mut short, mut long) = (trial.session()?, trial.session()?);
    let expected = short.execute(call, How::Ordered)?;
    // Blanks behind JSON stand for nothing.
    let blanks = " ".repeat(MAX_BODY - call.body.len());
    let padded = Call { body: format!("{}{blanks}", call.body), ..call.clone() };
    let seen = long.execute(&padded, How::Ordered)?;
    same(&expected, &seen, told, &format!("{call} with blanks behind, 1 MiB in all"))
}
