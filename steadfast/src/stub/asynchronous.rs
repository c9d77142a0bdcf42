//! Behind an async client.

use bytes::Bytes;
use client::AsyncClient;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use super::{Over, decoded, encoded, no_error, own_error};
use crate::CallError;

/// Behind an async client.
pub type AsyncStub = Over<AsyncClient>;

impl AsyncStub {
    /// Calls a method that cannot fail.
    pub async fn call<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        let body = encoded(arguments)?;
        let answer = self.client.call(&self.group, method, false, body, self.deadline).await;
        decoded(answer, no_error)
    }

    /// Calls a method that returns a `Result`.
    pub async fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        let body = encoded(arguments)?;
        let answer = self.client.call(&self.group, method, false, body, self.deadline).await;
        decoded(answer, own_error)
    }
    /// Calls a method that changes nothing and cannot fail.
    pub async fn read<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        decoded(self.answer_read(method, encoded(arguments)?).await, no_error)
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub async fn read_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        decoded(self.answer_read(method, encoded(arguments)?).await, own_error)
    }

    async fn answer_read(&self, method: MethodId, body: Bytes) -> Result<Bytes, client::CallError> {
        self.client.read(&self.group, method, false, body, self.reading, self.deadline).await
    }
}
