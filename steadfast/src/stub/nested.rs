//! Behind a client of a handler.

use std::time::Duration;

use node::{Context, NestedError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;
use wire::limits::MAX_DEADLINE;

use super::attempt::invocation;
use super::{ReadError, no_error, own_error};
use crate::CallError;
use crate::encoding::Encoding;

/// One group, from within a handler.
#[derive(Clone, Debug)]
pub struct NestedStub<'c> {
    context: &'c Context,
    group: String,
    timeout: Duration,
    encoding: Encoding,
}

impl<'c> NestedStub<'c> {
    /// With as much time as the handler has.
    pub fn new(context: &'c Context, group: String) -> Self {
        NestedStub { context, group, timeout: MAX_DEADLINE, encoding: Encoding::Postcard }
    }

    /// The same with less time.
    pub fn within(&self, timeout: Duration) -> Self {
        NestedStub { timeout, ..self.clone() }
    }

    /// The same in JSON, for replicas in other languages.
    pub fn in_json(&self) -> Self {
        NestedStub { encoding: Encoding::Json, ..self.clone() }
    }

    fn ask<A: Serialize, T: DeserializeOwned, E>(
        &self,
        method: MethodId,
        arguments: &A,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let encoding = self.encoding;
        let invocation = invocation(&self.group, method, encoding, arguments)?;
        let answer = self.context.call(invocation.within(self.timeout));
        let bytes = answer.map_err(|error: NestedError| {
            CallError::from_nested(error, &self.group, |bytes| service_error(encoding, bytes))
        })?;
        encoding.decode(&bytes).map_err(CallError::Answer)
    }

    /// Calls a method that cannot fail.
    pub fn call<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(method, arguments, no_error)
    }

    /// Calls a method that returns a `Result`.
    pub fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(method, arguments, own_error)
    }
}
