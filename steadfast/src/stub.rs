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
use crate::encoding::Encoding;

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
    encoding: Encoding,
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
            encoding: Encoding::Postcard,
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

    /// The same in JSON, for replicas in other languages.
    pub fn in_json(&self) -> Self {
        Over { encoding: Encoding::Json, ..self.clone() }
    }

    fn to_call<A: Serialize, E>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<Invocation<'_>, CallError<E>> {
        Ok(invocation(&self.group, method, self.encoding, arguments)?.within(self.deadline))
    }

    fn to_read<A: Serialize, E>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<Invocation<'_>, CallError<E>> {
        Ok(self.to_call(method, arguments)?.reading(self.reading))
    }

    fn decoded<T: DeserializeOwned, E>(
        &self,
        answer: Result<Bytes, client::CallError>,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let encoding = self.encoding;
        match answer {
            Ok(bytes) => encoding.decode(&bytes).map_err(CallError::Answer),
            Err(error) => Err(CallError::from_bytes(error, |bytes| service_error(encoding, bytes))),
        }
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
        self.decoded(self.client.call(self.to_call(method, arguments)?), no_error)
    }

    /// Calls a method that returns a `Result`.
    pub fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.decoded(self.client.call(self.to_call(method, arguments)?), own_error)
    }

    /// Calls a method that changes nothing and cannot fail.
    pub fn read<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.decoded(self.client.call(self.to_read(method, arguments)?), no_error)
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub fn read_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.decoded(self.client.call(self.to_read(method, arguments)?), own_error)
    }
}

/// Reads the service's own error.
type ReadError<E> = fn(Encoding, &[u8]) -> Result<E, String>;

/// The call of a method with these arguments.
fn invocation<'g, A: Serialize, E>(
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

fn own_error<E: DeserializeOwned>(encoding: Encoding, bytes: &[u8]) -> Result<E, String> {
    encoding.decode(bytes)
}

fn no_error(_: Encoding, _: &[u8]) -> Result<Infallible, String> {
    Err("an error from a method that returns none".to_owned())
}
