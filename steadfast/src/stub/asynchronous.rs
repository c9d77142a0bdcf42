//! Behind an async client.

use client::AsyncClient;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use super::{Attempt, Over, ReadError, decoded, no_error, offers_json, own_error};
use crate::CallError;
use crate::encoding::Encoding;

/// Behind an async client.
pub type AsyncStub = Over<AsyncClient>;

impl AsyncStub {
    /// Calls a method that cannot fail.
    pub async fn call<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.ordered(method, arguments), no_error).await
    }

    /// Calls a method that returns a `Result`.
    pub async fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.ordered(method, arguments), own_error).await
    }

    /// Calls a method that changes nothing and cannot fail.
    pub async fn read<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.ask(self.reads(method, arguments), no_error).await
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub async fn read_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.ask(self.reads(method, arguments), own_error).await
    }

    async fn ask<A: Serialize, T: DeserializeOwned, E>(
        &self,
        attempt: Attempt<'_, A>,
        service_error: ReadError<E>,
    ) -> Result<T, CallError<E>> {
        let encoding = attempt.encoding();
        let answer = self.client.call(attempt.invocation(encoding)?).await;
        if !attempt.is_refused_in(encoding, &answer)
            || !offers_json(&self.client.call(attempt.description()).await)
        {
            return decoded(encoding, answer, service_error);
        }
        let answer = self.client.call(attempt.invocation(Encoding::Json)?).await;
        attempt.learn(&answer);
        decoded(Encoding::Json, answer, service_error)
    }
}
