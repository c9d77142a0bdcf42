//! One call by a generated client, which may learn that the replicas take another encoding.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use client::{CallError as BytesError, Invocation, Reading};
use serde::Serialize;
use serde::de::DeserializeOwned;
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
    spoken: &'a Spoken,
}

impl<'a, A> Attempt<'a, A> {
    pub(super) fn new(
        group: &'a str,
        method: MethodId,
        arguments: &'a A,
        deadline: Duration,
        spoken: &'a Spoken,
    ) -> Self {
        let began = Instant::now();
        Attempt { group, method, arguments, reading: None, began, deadline, spoken }
    }

    /// It changes nothing, and is answered so.
    pub(super) fn read(self, reading: Reading) -> Self {
        Attempt { reading: Some(reading), ..self }
    }

    /// The encoding that the group is known to take.
    pub(super) fn encoding(&self) -> Encoding {
        self.spoken.get()
    }

    pub(super) fn invocation<E>(&self, encoding: Encoding) -> Result<Invocation<'a>, CallError<E>>
    where
        A: Serialize + DeserializeOwned,
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

    /// A replica could not read this: the call was not executed, and it may read something else.
    pub(super) fn is_refused_in(
        &self,
        encoding: Encoding,
        answer: &Result<Bytes, BytesError>,
    ) -> bool {
        let is_refused =
            matches!(answer, Err(BytesError::Refused { refusal: Refusal::BadArguments, .. }));
        encoding == Encoding::Named && is_refused
    }

    /// Calls after one that this encoding served begin with it.
    pub(super) fn learn(&self, encoding: Encoding, answer: &Result<Bytes, BytesError>) {
        if matches!(answer, Ok(_) | Err(BytesError::Service(_))) {
            self.spoken.set(encoding);
        }
    }
}

/// The encoding of a group whose replicas did not take named arguments, by its contract: programs
/// that were built before read postcard, those in other languages JSON. None: they take these, and
/// the arguments themselves are wrong.
pub(super) fn other_encoding(answer: &Result<Bytes, BytesError>) -> Option<Encoding> {
    let contract = answer.as_ref().ok().and_then(|bytes| Contract::from_json(bytes).ok())?;
    let has = |name| contract.encodings.iter().any(|encoding| encoding == name);
    match () {
        () if has("named") => None,
        () if has("postcard") => Some(Encoding::Postcard),
        () if has("json") => Some(Encoding::Json),
        () => None,
    }
}

/// The encoding in which a group is called: the caller says so, or the group has refused another.
#[derive(Debug, Default)]
pub(super) struct Spoken(AtomicU8);

const KNOWN: [Encoding; 3] = [Encoding::Named, Encoding::Postcard, Encoding::Json];

impl Spoken {
    pub(super) fn of(encoding: Encoding) -> Spoken {
        let spoken = Spoken::default();
        spoken.set(encoding);
        spoken
    }

    fn get(&self) -> Encoding {
        KNOWN[usize::from(self.0.load(Ordering::Relaxed))]
    }

    fn set(&self, encoding: Encoding) {
        let at = KNOWN.iter().position(|known| *known == encoding).unwrap_or(0);
        self.0.store(at as u8, Ordering::Relaxed);
    }
}

/// The call of a method with these arguments.
pub(super) fn invocation<'g, A: Serialize + DeserializeOwned, E>(
    group: &'g str,
    method: MethodId,
    encoding: Encoding,
    arguments: &A,
) -> Result<Invocation<'g>, CallError<E>> {
    let body = encoding.encode(arguments).map_err(CallError::Arguments)?;
    let invocation = Invocation::new(group, method).body(body);
    Ok(match encoding {
        Encoding::Named | Encoding::Postcard => invocation,
        Encoding::Json => invocation.json(),
    })
}
