//! Behind an async client.

use client::AsyncClient;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wire::MethodId;

use super::{Over, no_error, own_error};
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
        self.decoded(self.client.call(self.to_call(method, arguments)?).await, no_error)
    }

    /// Calls a method that returns a `Result`.
    pub async fn call_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.decoded(self.client.call(self.to_call(method, arguments)?).await, own_error)
    }

    /// Calls a method that changes nothing and cannot fail.
    pub async fn read<A: Serialize, T: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError> {
        self.decoded(self.client.call(self.to_read(method, arguments)?).await, no_error)
    }

    /// Calls a method that changes nothing and returns a `Result`.
    pub async fn read_fallible<A: Serialize, T: DeserializeOwned, E: DeserializeOwned>(
        &self,
        method: MethodId,
        arguments: &A,
    ) -> Result<T, CallError<E>> {
        self.decoded(self.client.call(self.to_read(method, arguments)?).await, own_error)
    }
}
