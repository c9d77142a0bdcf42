//! The functions that the generated clients call: from the trait's arguments to a request's bytes
//! and back.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client::{Client, DEFAULT_DEADLINE, Invocation, Reading};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use crate::CallError;
use crate::encoding::Encoding::Postcard;

#[cfg(feature = "async")]
mod asynchronous;
#[cfg(feature = "node")]
mod nested;

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
}

/// Behind a sync client.
pub type Stub = Over<Client>;

impl<C: Clone> Over<C> {
    /// With [`DEFAULT_DEADLINE`].
    pub fn new(client: &C, group: String) -> Self {
        let (group, reading) = (group.into(), Reading::default());
        Over { client: client.clone(), group, deadline: DEFAULT_DEADLINE, reading }
    }

    /// The same with another deadline.
    pub fn within(&self, deadline: Duration) -> Self {
        Over { deadline, ..self.clone() }
    }

    /// The same with another way to answer what changes nothing.
    pub fn reading(&self, reading: Reading) -> Self {
        Over { reading, ..self.clone() }
    }

    fn to_call(&self, method: MethodId, body: Bytes) -> Invocation<'_> {
        Invocation::new(&*self.group, method).body(body).within(self.deadline)
    }

    fn to_read(&self, method: MethodId, body: Bytes) -> Invocation<'_> {
        self.to_call(method, body).reading(self.reading)
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
    pub fn call<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        decoded(self.client.call(self.to_call(method, encoded(arguments)?)), no_error)
    }

    /// Calls a method that returns a `Result`.
    pub fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        decoded(self.client.call(self.to_call(method, encoded(arguments)?)), own_error)
    }

    /// Calls a method that changes nothing and cannot fail.
    pub fn read<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        decoded(self.client.call(self.to_read(method, encoded(arguments)?)), no_error)
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub fn read_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        decoded(self.client.call(self.to_read(method, encoded(arguments)?)), own_error)
    }
}

/// Reads the service's own error.
type ReadError<E> = fn(&[u8]) -> Result<E, String>;

fn encoded<A: Serialize, E>(arguments: &A) -> Result<Bytes, CallError<E>> {
    Postcard.encode(arguments).map(Bytes::from).map_err(CallError::Arguments)
}

fn decoded<T: DeserializeOwned, E>(
    answer: Result<Bytes, client::CallError>,
    service_error: ReadError<E>,
) -> Result<T, CallError<E>> {
    match answer {
        Ok(bytes) => Postcard.decode(&bytes).map_err(CallError::Answer),
        Err(error) => Err(CallError::from_bytes(error, service_error)),
    }
}

fn own_error<E: DeserializeOwned>(bytes: &[u8]) -> Result<E, String> {
    Postcard.decode(bytes)
}

fn no_error(_: &[u8]) -> Result<Infallible, String> {
    Err("an error from a method that returns none".to_owned())
}
