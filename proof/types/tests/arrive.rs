//! Values of random types are states, arguments and results: they arrive as they were, or are
//! refused where they are written. Another value arrives never.
#![allow(missing_docs, unused_parens, clippy::all)]

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast::__private::answer;
use steadfast::{Call, MethodId, ServiceOutcome, State};

#[derive(Default)]
struct Tally {
    types: u32,
    values: u32,
    refused: u32,
    wrong: Vec<String>,
}

/// `is_sure`: nothing in the type is beyond serde, so each value must arrive.
fn try_type<T: Debug + Clone + Serialize + DeserializeOwned>(
    name: &str,
    is_sure: bool,
    values: Vec<T>,
    tally: &mut Tally,
) {
    tally.types += 1;
    for value in &values {
        tally.values += 1;
        let (state, argument) = (as_state(value, values[0].clone()), as_argument(value));
        for (what, arrived) in [("state", state), ("argument", argument)] {
            match arrived {
                Ok(other) if format!("{other:?}") == format!("{value:?}") => {}
                Ok(other) => {
                    tally.wrong.push(format!("{name}: {what} {value:?} arrived as {other:?}"))
                }
                Err(error) if is_sure => {
                    tally.wrong.push(format!("{name}: {what} {value:?} is refused: {error}"));
                }
                Err(_) => tally.refused += 1,
            }
        }
    }
    // All of them in one state, where neighbours share tags and shapes.
    if is_sure {
        match as_state(&values, Vec::new()) {
            Ok(other) if format!("{other:?}") == format!("{values:?}") => {}
            other => tally.wrong.push(format!("{name}: {values:?} arrived as {other:?}")),
        }
    }
}

fn as_state<T: State>(value: &T, mut other: T) -> Result<T, String> {
    let state = value.snapshot().map_err(|error| error.to_string())?;
    other.restore(&state).map_err(|error| format!("after it was written: {error}"))?;
    Ok(other)
}

/// As a client writes it, a service takes and returns it, and a client reads the result.
fn as_argument<T: Clone + Serialize + DeserializeOwned>(value: &T) -> Result<T, String> {
    let arguments = (value.clone(),);
    let body = named::tried(&arguments, named::Bounds::CALL).map_err(|error| error.to_string())?;
    let call = Call { method: MethodId::of("echo"), json: false, body: &body };
    match answer(&call, "echo", |(value,): (T,)| value) {
        ServiceOutcome::Ok(result) => named::from_slice(&result).map_err(|error| error.to_string()),
        other => Err(format!("{other:?}")),
    }
}

include!(concat!(env!("OUT_DIR"), "/types.rs"));

#[test]
fn values_arrive_as_they_were() {
    let mut tally = Tally::default();
    ALL.iter().for_each(|try_types| try_types(&mut tally));
    println!(
        "seed {SEED}: {} types, {} values, {} refused where they are written, {} wrong",
        tally.types,
        tally.values,
        tally.refused,
        tally.wrong.len()
    );
    assert!(tally.wrong.is_empty(), "seed {SEED}:\n{}", tally.wrong.join("\n"));
    assert!(tally.refused < tally.values, "too much of it is beyond serde: {}", tally.refused);
}
