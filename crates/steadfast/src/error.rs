//! How a call can end other than with its result.

use std::convert::Infallible;

use wire::client::Refusal;

/// Why a call of a typed client has no result. `E` is the error that the method itself returns;
/// a method that returns no `Result` has [`Infallible`] there. If `E` implements `Display`, this is
/// an [`Error`](std::error::Error), for `?`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E = Infallible> {
    /// No answer came in time. Whether the call was executed is not known.
    #[error("{}", client::CallError::DeadlineExceeded)]
    DeadlineExceeded,
    /// The cluster has no group of this name.
    #[error("{}", client::CallError::NoSuchGroup(.0.clone()))]
    NoSuchGroup(String),
    /// The group is known, but until the deadline no replica could answer.
    #[error("{}", client::CallError::NoReplica)]
    NoReplica,
    /// A node or the service refused; the reason says what to do.
    #[error("refused: {reason}")]
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// In words, with the remedy.
        reason: String,
    },
    /// The service executed the call and returned its own error.
    #[error("the service answered: {0}")]
    Service(E),
    /// The call did not get through: no node could be reached, this client has too much to do, or
    /// has ended.
    #[error(transparent)]
    Transport(client::CallError),
    /// The arguments cannot be encoded. Nothing was sent.
    #[error("the arguments cannot be sent: {0}")]
    Arguments(String),
    /// The call was executed, but its answer is not what the method returns.
    #[error(
        "the call was executed, but its answer cannot be read ({0}): build client and service from \
         the same trait"
    )]
    Answer(String),
}

impl<E> CallError<E> {
    /// The typed form of what the client says, with `service_error` to read the service's own.
    pub(crate) fn from_bytes(
        error: client::CallError,
        service_error: impl FnOnce(&[u8]) -> Result<E, String>,
    ) -> Self {
        match error {
            client::CallError::DeadlineExceeded => CallError::DeadlineExceeded,
            client::CallError::NoSuchGroup(name) => CallError::NoSuchGroup(name),
            client::CallError::NoReplica => CallError::NoReplica,
            client::CallError::Refused { refusal, reason } => {
                CallError::Refused { refusal, reason }
            }
            client::CallError::Service(bytes) => match service_error(&bytes) {
                Ok(error) => CallError::Service(error),
                Err(fault) => CallError::Answer(fault),
            },
            other => CallError::Transport(other),
        }
    }
}
