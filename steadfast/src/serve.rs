//! The functions that the generated adapters call: from a request's bytes to the trait's method and
//! back.

use std::any::Any;
use std::convert::Infallible;

use bytes::Bytes;
use node::{BoxError, Call, Service, ServiceOutcome};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::client::Refusal;
use wire::limits::MAX_REASON;

use crate::encoding::Encoding;
use crate::returned::Returned;

/// Another service of this kind: the factory that made this one made it.
pub fn same_service<S: Service>(other: Box<dyn Service>) -> Result<Box<S>, BoxError> {
    let other: Box<dyn Any> = other;
    other.downcast().map_err(|_| "the factory has made services of two kinds".into())
}

/// Executes a method that cannot fail.
pub fn answer<A: DeserializeOwned, T: Serialize + DeserializeOwned>(
    call: &Call<'_>,
    signature: &str,
    run: impl FnOnce(A) -> T,
) -> ServiceOutcome {
    match arguments(call, signature) {
        Ok(arguments) => encoded(call, signature, &run(arguments), ServiceOutcome::Ok),
        Err(refused) => refused,
    }
}

/// Executes a method that returns a `Result`.
pub fn answer_fallible<A, T, E>(
    call: &Call<'_>,
    signature: &str,
    run: impl FnOnce(A) -> Result<T, E>,
) -> ServiceOutcome
where
    A: DeserializeOwned,
    T: Serialize + DeserializeOwned,
    E: Serialize + DeserializeOwned,
{
    match arguments(call, signature).map(run) {
        Ok(Ok(result)) => encoded(call, signature, &result, ServiceOutcome::Ok),
        Ok(Err(error)) => encoded(call, signature, &error, ServiceOutcome::Error),
        Err(refused) => refused,
    }
}

/// Executes a method whose result has a name that may stand for a `Result`.
pub fn answer_returned<A, R, const IS_RESULT: bool>(
    call: &Call<'_>,
    signature: &str,
    run: impl FnOnce(A) -> R,
) -> ServiceOutcome
where
    A: DeserializeOwned,
    R: Returned<IS_RESULT>,
    R::Ok: Serialize + DeserializeOwned,
    R: Failure<IS_RESULT>,
{
    match arguments(call, signature).map(run).map(R::split) {
        Ok(Ok(result)) => encoded(call, signature, &result, ServiceOutcome::Ok),
        Ok(Err(error)) => R::failed(call, signature, &error),
        Err(refused) => refused,
    }
}

/// How the own error of a service is told.
pub trait Failure<const IS_RESULT: bool>: Returned<IS_RESULT> {
    /// The outcome of a call with this error.
    fn failed(call: &Call<'_>, signature: &str, error: &Self::Error) -> ServiceOutcome;
}

impl<T, E: Serialize + DeserializeOwned> Failure<true> for Result<T, E> {
    fn failed(call: &Call<'_>, signature: &str, error: &E) -> ServiceOutcome {
        encoded(call, signature, error, ServiceOutcome::Error)
    }
}

impl<T> Failure<false> for T {
    fn failed(_: &Call<'_>, _: &str, error: &Infallible) -> ServiceOutcome {
        match *error {}
    }
}

/// `known` is a sentence that lists the methods.
pub fn no_such_method(known: &str) -> ServiceOutcome {
    refused(Refusal::NoSuchMethod, format!("no such method: {known}"))
}

/// The error of a method that takes `&mut self` and is called as a read.
pub fn not_read_only(signature: &str) -> ServiceOutcome {
    let reason = format!(
        "{signature} may change the state (it takes `&mut self`): do not call it as a read"
    );
    refused(Refusal::NotReadOnly, reason)
}

fn arguments<A: DeserializeOwned>(call: &Call<'_>, signature: &str) -> Result<A, ServiceOutcome> {
    Encoding::of_call(call.json, call.body).decode(call.body).map_err(|error| {
        let remedy = if call.json {
            "give an array of exactly these arguments in order, or an object by their names"
        } else {
            "build the client from the same trait as the service"
        };
        refused(Refusal::BadArguments, format!("{signature}: {error}; {remedy}"))
    })
}

fn encoded<T: Serialize + DeserializeOwned>(
    call: &Call<'_>,
    signature: &str,
    value: &T,
    outcome: fn(Bytes) -> ServiceOutcome,
) -> ServiceOutcome {
    match Encoding::of_call(call.json, call.body).encode(value) {
        Ok(bytes) => outcome(bytes.into()),
        Err(error) => refused(
            Refusal::Failed,
            format!("{signature}: executed, but its result cannot be written: {error}"),
        ),
    }
}

/// Cuts the reason where the wire would refuse it.
pub(crate) fn refused(refusal: Refusal, mut reason: String) -> ServiceOutcome {
    let end = (0..=reason.len().min(MAX_REASON)).rev().find(|&end| reason.is_char_boundary(end));
    reason.truncate(end.unwrap_or(0));
    ServiceOutcome::Refused(refusal, reason)
}

#[cfg(test)]
mod tests {
    use wire::MethodId;

    use super::*;

    fn call(json: bool, body: &[u8]) -> Call<'_> {
        Call { method: MethodId::of("double"), json, body }
    }

    fn double(json: bool, body: &[u8]) -> ServiceOutcome {
        answer(&call(json, body), "double(n: u64) -> u64", |(n,): (u64,)| n * 2)
    }

    #[test]
    fn a_call_by_hand_is_answered_by_hand() {
        assert_eq!(double(true, b"[21]"), ServiceOutcome::Ok("42".into()));
        let named = |n: u64| named::to_vec(&(n,)).expect("plain data");
        let doubled = named::to_vec(&42u64).expect("plain data");
        assert_eq!(double(false, &named(21)), ServiceOutcome::Ok(doubled.into()));
        // From a client that was built before.
        assert_eq!(double(false, &[21]), ServiceOutcome::Ok(Bytes::from_static(&[42])));
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_signature_and_the_remedy() {
        for (json, body) in
            [(true, &b"[\"x\"]"[..]), (true, b"[1,2]"), (false, &[]), (false, &[1, 2])]
        {
            let ServiceOutcome::Refused(Refusal::BadArguments, reason) = double(json, body) else {
                panic!("{body:?} was taken");
            };
            assert!(reason.starts_with("double(n: u64) -> u64: "), "{reason}");
            let remedy = if json { "exactly these arguments" } else { "from the same trait" };
            assert!(reason.contains(remedy), "{reason}");
        }
    }

    #[test]
    fn an_error_of_the_service_is_not_a_refusal() {
        let outcome = answer_fallible(&call(true, b"[]"), "fail()", |_: [u8; 0]| {
            Err::<(), _>("full".to_owned())
        });
        assert_eq!(outcome, ServiceOutcome::Error("\"full\"".into()));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let ServiceOutcome::Refused(_, reason) = no_such_method(&"é".repeat(MAX_REASON)) else {
            panic!("it is a refusal");
        };
        assert!(reason.len() <= MAX_REASON && reason.ends_with('é'), "{reason}");
    }
}
