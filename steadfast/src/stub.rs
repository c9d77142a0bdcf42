//! The functions that the generated clients call: from the trait's arguments to a request's bytes
//! and back.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, DEFAULT_DEADLINE, Reading};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use crate::CallError;
use crate::encoding::Encoding;
use crate::returned::Returned;

#[cfg(feature = "async")]
mod asynchronous;
mod attempt;
#[cfg(feature = "node")]
mod nested;

use attempt::{Attempt, Spoken, other_encoding};

#[cfg(feature = "async")]
pub use asynchronous::AsyncStub;
#[cfg(feature = "node")]
pub use nested::NestedStub;

/// One group, over a connection to the cluster, with a deadline.
#[derive(Clone)]
pub struct Over<C> {
    client: C,
    group: Arc<str>,
    deadline: Duration,
    reading: Reading,
    spoken: Arc<Spoken>,
}

/// Behind a sync client.
pub type Stub = Over<Client>;

impl<C: Clone> Over<C> {
    /// With [`DEFAULT_DEADLINE`].
    pub fn new(client: &C, group: String) -> Self {
        Over {
            client: client.clone(),
            group: group.into(),
            deadline: DEFAULT_DEADLINE,
            reading: Reading::default(),
            spoken: Arc::default(),
        }
    }

    /// The same with another deadline.
    pub fn within(&self, deadline: Duration) -> Self {
        Over { deadline, ..self.clone() }
    }

    /// The same with another way to answer what changes nothing.
    pub fn reading(&self, reading: Reading) -> Self {
        Over { reading, ..self.clone() }
    }

    /// The same in JSON from the first call on, for replicas in other languages.
    pub fn in_json(&self) -> Self {
        Over { spoken: Arc::new(Spoken::of(Encoding::Json)), ..self.clone() }
    }

    fn ordered<'a, A>(&'a self, method: MethodId, arguments: &'a A) -> Attempt<'a, A> {
        Attempt::new(&self.group, method, arguments, self.deadline, &self.spoken)
    }

    fn reads<'a, A>(&'a self, method: MethodId, arguments: &'a A) -> Attempt<'a, A> {
        self.ordered(method, arguments).read(self.reading)
    }
}

impl<C> fmt::Debug for Over<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("group", &self.group)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Stub {
    /// Calls a method that cannot fail.
    pub fn call<A: Serialize + DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.ordered(method, arguments), no_error)
    }

    /// Calls a method that returns a `Result`.
    pub fn call_fallible<
        A: Serialize + DeserializeOwned,
        T: DeserializeOwned,
        E: DeserializeOwned,
    >(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.ordered(method, arguments), own_error)
    }

    /// Calls a method that changes nothing and cannot fail.
    pub fn read<A: Serialize + DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.reads(method, arguments), no_error)
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub fn read_fallible<
        A: Serialize + DeserializeOwned,
        T: DeserializeOwned,
        E: DeserializeOwned,
    >(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.reads(method, arguments), own_error)
    }

    /// Calls a method whose result may be a `Result` by another name.
    pub fn call_returned<A, R, const IS_RESULT: bool>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<R::Ok, CallError<R::Error>>
    where
        A: Serialize + DeserializeOwned,
        R: Returned<IS_RESULT>,
        R::Ok: DeserializeOwned,
    {
        self.ask(self.ordered(method, arguments), R::read_error)
    }

    /// The same for one that changes nothing.
    pub fn read_returned<A, R, const IS_RESULT: bool>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<R::Ok, CallError<R::Error>>
    where
        A: Serialize + DeserializeOwned,
        R: Returned<IS_RESULT>,
        R::Ok: DeserializeOwned,
    {
        self.ask(self.reads(method, arguments), R::read_error)
    }

    fn ask<A: Serialize + DeserializeOwned, T: DeserializeOwned, E>(
        &self,
        attempt: Attempt<'_, A>,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let encoding = attempt.encoding();
        let answer = self.client.call(attempt.invocation(encoding)?);
        if !attempt.is_refused_in(encoding, &answer) {
            return decoded(encoding, answer, service_error);
        }
        let Some(other) = other_encoding(&self.client.call(attempt.description())) else {
            return decoded(encoding, answer, service_error);
        };
        let answer = self.client.call(attempt.invocation(other)?);
        attempt.learn(other, &answer);
        decoded(other, answer, service_error)
    }
}

/// Reads the service's own error.
type ReadError<E> = fn(Encoding, &[u8]) -> Result<E, String>;

fn decoded<T: DeserializeOwned, E>(
    encoding: Encoding,
    answer: Result<Bytes, client::CallError>,
    service_error: ReadError<E>,
) -> Result<T, CallError<E>> {
    match answer {
        Ok(bytes) => encoding.decode(&bytes).map_err(CallError::Answer),
        Err(error) => Err(CallError::from_bytes(error, |bytes| service_error(encoding, bytes))),
    }
}

fn own_error<E: DeserializeOwned>(encoding: Encoding, bytes: &[u8]) -> Result<E, String> {
    encoding.decode(bytes)
}

fn no_error(_: Encoding, _: &[u8]) -> Result<Infallible, String> {
    Err("an error from a method that returns none".to_owned())
}
