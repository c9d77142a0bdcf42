//! One call by a generated client, which may learn that the replicas take JSON alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{CallError as BytesError, Invocation, Reading};
use serde::Serialize;
use wire::MethodId;
use wire::client::Refusal;

use crate::CallError;
use crate::contract::Contract;
use crate::encoding::Encoding;

/// A call: its parts, and the time that it has.
pub(super) struct Attempt<'a, A> {
    group: &'a str,
    method: MethodId,
    arguments: &'a A,
    /// How it is answered if it changes nothing; `None`: it may change something.
    reading: Option<Reading>,
    began: Instant,
    deadline: Duration,
    in_json: &'a AtomicBool,
}

impl<'a, A> Attempt<'a, A> {
    pub(super) fn new(
        group: &'a str,
        method: MethodId,
        arguments: &'a A,
        deadline: Duration,
        in_json: &'a AtomicBool,
    ) -> Self {
        let began = Instant::now();
        Attempt { group, method, arguments, reading: None, began, deadline, in_json }
    }

    /// It changes nothing, and is answered so.
    pub(super) fn read(self, reading: Reading) -> Self {
        Attempt { reading: Some(reading), ..self }
    }

    /// The encoding that the group is known to take.
    pub(super) fn encoding(&self) -> Encoding {
        if self.in_json.load(Ordering::Relaxed) { Encoding::Json } else { Encoding::Postcard }
    }

    pub(super) fn invocation<E>(&self, encoding: Encoding) -> Result<Invocation<'a>, CallError<E>>
    where
        A: Serialize,
    {
        let made = invocation(self.group, self.method, encoding, self.arguments)?;
        let made = made.within(self.left());
        Ok(match self.reading {
            Some(reading) => made.reading(reading),
            None => made,
        })
    }

    /// The question for the contract.
    pub(super) fn description(&self) -> Invocation<'a> {
        Contract::ask(self.group).within(self.left())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_sub(self.began.elapsed())
    }

    /// A replica could not read postcard: the call was not executed, and JSON may be what it reads.
    pub(super) fn is_refused_in(
        &self,
        encoding: Encoding,
        answer: &Result<Bytes, BytesError>,
    ) -> bool {
        let is_refused =
            matches!(answer, Err(BytesError::Refused { refusal: Refusal::BadArguments, .. }));
        encoding == Encoding::Postcard && is_refused
    }

    /// Calls after one that JSON served begin with it.
    pub(super) fn learn(&self, answer: &Result<Bytes, BytesError>) {
        if matches!(answer, Ok(_) | Err(BytesError::Service(_))) {
            self.in_json.store(true, Ordering::Relaxed);
        }
    }
}

/// The group's contract says that its service reads and writes JSON.
pub(super) fn offers_json(answer: &Result<Bytes, BytesError>) -> bool {
    let contract = answer.as_ref().ok().and_then(|bytes| Contract::from_json(bytes).ok());
    contract.is_some_and(|contract| contract.encodings.iter().any(|encoding| encoding == "json"))
}

/// The call of a method with these arguments.
pub(super) fn invocation<'g, A: Serialize, E>(
    group: &'g str,
    method: MethodId,
    encoding: Encoding,
    arguments: &A,
) -> Result<Invocation<'g>, CallError<E>> {
    let body = encoding.encode(arguments).map_err(CallError::Arguments)?;
    let invocation = Invocation::new(group, method).body(body);
    Ok(match encoding {
        Encoding::Postcard => invocation,
        Encoding::Json => invocation.json(),
    })
}
