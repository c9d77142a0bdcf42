//! Behind a client of a handler.

use std::time::Duration;

use bytes::Bytes;
use node::{Context, NestedError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;
use wire::client::Refusal;
use wire::limits::MAX_DEADLINE;

use super::attempt::invocation;
use super::{ReadError, no_error, own_error};
use crate::CallError;
use crate::encoding::Encoding;
use crate::returned::Returned;

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
        NestedStub { context, group, timeout: MAX_DEADLINE, encoding: Encoding::Named }
    }

    /// The same with less time.
    pub fn within(&self, timeout: Duration) -> Self {
        NestedStub { timeout, ..self.clone() }
    }

    /// The same in JSON, for replicas in other languages.
    pub fn in_json(&self) -> Self {
        NestedStub { encoding: Encoding::Json, ..self.clone() }
    }

    fn ask<A: Serialize + DeserializeOwned, T: DeserializeOwned, E>(
        &self,
        method: MethodId,
        arguments: &A,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let (mut encoding, mut answer) =
            (self.encoding, self.call_in(self.encoding, method, arguments)?);
        // The replicas of the other group may be of a program that was built before. It did not
        // execute the call, which is the same at every replica of this group.
        let refused = matches!(answer, Err(NestedError::Refused(Refusal::BadArguments, _)));
        if encoding == Encoding::Named && refused {
            encoding = Encoding::Postcard;
            answer = self.call_in(encoding, method, arguments)?;
        }
        let bytes = answer.map_err(|error: NestedError| {
            CallError::from_nested(error, &self.group, |bytes| service_error(encoding, bytes))
        })?;
        encoding.decode(&bytes).map_err(CallError::Answer)
    }

    fn call_in<A: Serialize + DeserializeOwned, E>(
        &self,
        encoding: Encoding,
        method: MethodId,
        arguments: &A,
    ) -> Result<Result<Bytes, NestedError>, CallError<E>> {
        let invocation = invocation(&self.group, method, encoding, arguments)?;
        Ok(self.context.call(invocation.within(self.timeout)))
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
        self.ask(method, arguments, R::read_error)
    }

    /// Calls a method that cannot fail.
    pub fn call<A: Serialize + DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(method, arguments, no_error)
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
        self.ask(method, arguments, own_error)
    }
}
