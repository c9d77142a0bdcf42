//! Behind an async client.

use client::AsyncClient;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use super::{Attempt, Over, ReadError, decoded, no_error, other_encoding, own_error};
use crate::CallError;
use crate::returned::Returned;

/// Behind an async client.
pub type AsyncStub = Over<AsyncClient>;

impl AsyncStub {
    /// Calls a method that cannot fail.
    pub async fn call<A: Serialize + DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.ordered(method, arguments), no_error).await
    }

    /// Calls a method that returns a `Result`.
    pub async fn call_fallible<
        A: Serialize + DeserializeOwned,
        T: DeserializeOwned,
        E: DeserializeOwned,
    >(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.ordered(method, arguments), own_error).await
    }

    /// Calls a method that changes nothing and cannot fail.
    pub async fn read<A: Serialize + DeserializeOwned, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.reads(method, arguments), no_error).await
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub async fn read_fallible<
        A: Serialize + DeserializeOwned,
        T: DeserializeOwned,
        E: DeserializeOwned,
    >(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.reads(method, arguments), own_error).await
    }

    /// Calls a method whose result may be a `Result` by another name.
    pub async fn call_returned<A, R, const IS_RESULT: bool>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<R::Ok, CallError<R::Error>>
    where
        A: Serialize + DeserializeOwned,
        R: Returned<IS_RESULT>,
        R::Ok: DeserializeOwned,
    {
        self.ask(self.ordered(method, arguments), R::read_error).await
    }

    /// The same for one that changes nothing.
    pub async fn read_returned<A, R, const IS_RESULT: bool>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<R::Ok, CallError<R::Error>>
    where
        A: Serialize + DeserializeOwned,
        R: Returned<IS_RESULT>,
        R::Ok: DeserializeOwned,
    {
        self.ask(self.reads(method, arguments), R::read_error).await
    }

    async fn ask<A: Serialize + DeserializeOwned, T: DeserializeOwned, E>(
        &self,
        attempt: Attempt<'_, A>,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let encoding = attempt.encoding();
        let answer = self.client.call(attempt.invocation(encoding)?).await;
        if !attempt.is_refused_in(encoding, &answer) {
            return decoded(encoding, answer, service_error);
        }
        let Some(other) = other_encoding(&self.client.call(attempt.description()).await) else {
            return decoded(encoding, answer, service_error);
        };
        let answer = self.client.call(attempt.invocation(other)?).await;
        attempt.learn(other, &answer);
        decoded(other, answer, service_error)
    }
}
