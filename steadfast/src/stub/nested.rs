//! Behind a client of a handler.

use std::time::Duration;

use bytes::Bytes;
use client::Invocation;
use node::{Context, NestedError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;
use wire::limits::MAX_DEADLINE;

use super::{ReadError, encoded, no_error, own_error};
use crate::CallError;
use crate::encoding::Encoding::Postcard;

/// One group, from within a handler.
#[derive(Debug)]
pub struct NestedStub<'c> {
    context: &'c Context,
    group: String,
    timeout: Duration,
}

impl<'c> NestedStub<'c> {
    /// With as much time as the handler has.
    pub fn new(context: &'c Context, group: String) -> Self {
        NestedStub { context, group, timeout: MAX_DEADLINE }
    }

    /// The same with less time.
    pub fn within(&self, timeout: Duration) -> Self {
        NestedStub { context: self.context, group: self.group.clone(), timeout }
    }

    fn ask<E>(
        &self,
        method: MethodId,
        body: Bytes,
        read: ReadError<E>,
    ) -> Result<Bytes, CallError<E>> {
        let invocation = Invocation::new(&self.group, method).body(body).within(self.timeout);
        let answer = self.context.call(invocation);
        answer.map_err(|error: NestedError| CallError::from_nested(error, &self.group, read))
    }

    /// Calls a method that cannot fail.
    pub fn call<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        let bytes = self.ask(method, encoded(arguments)?, no_error)?;
        Postcard.decode(&bytes).map_err(CallError::Answer)
    }

    /// Calls a method that returns a `Result`.
    pub fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        let bytes = self.ask(method, encoded(arguments)?, own_error)?;
        Postcard.decode(&bytes).map_err(CallError::Answer)
    }
}
