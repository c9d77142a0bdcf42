//! How a call can end other than with its result.

use std::convert::Infallible;

#[cfg(feature = "node")]
use node::NestedError;
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
    #[error("the service returned an error: {0}")]
    Service(E),
    /// The call did not get through: no node could be reached, this client has too much to do, or
    /// has ended.
    #[error(transparent)]
    Transport(client::CallError),
    /// The call of a handler has no reply, for a reason that clients do not meet.
    #[cfg(feature = "node")]
    #[error(transparent)]
    Nested(NestedError),
    /// The arguments cannot be encoded. Nothing was sent.
    #[error("the arguments cannot be encoded: {0}")]
    Arguments(String),
    /// The call was executed, but its answer is not what the method returns.
    #[error(
        "the call was executed, but its answer cannot be read ({0}): build client and service from \
         the same trait"
    )]
    Answer(String),
}

impl<E> CallError<E> {
    /// Whether the call was executed; `None` if nobody knows.
    ///
    /// A call that was not executed will not be. A call of which nobody knows may still be
    /// executed, until a later call of the same client to the group is.
    ///
    /// ```
    /// use steadfast::CallError;
    ///
    /// let error: CallError = CallError::DeadlineExceeded;
    /// assert_eq!(error.was_executed(), None, "find out before calling again");
    /// assert_eq!(CallError::Service("sold out").was_executed(), Some(true));
    /// ```
    pub fn was_executed(&self) -> Option<bool> {
        match self {
            CallError::DeadlineExceeded => None,
            CallError::NoSuchGroup(_) | CallError::NoReplica | CallError::Arguments(_) => {
                Some(false)
            }
            CallError::Refused { refusal, .. } => refusal.was_executed(),
            CallError::Service(_) | CallError::Answer(_) => Some(true),
            CallError::Transport(error) => error.was_executed(),
            #[cfg(feature = "node")]
            CallError::Nested(error) => error.was_executed(),
        }
    }

    /// The typed form of what a handler is told that has called a group.
    #[cfg(feature = "node")]
    pub(crate) fn from_nested(
        error: NestedError,
        group: &str,
        service_error: impl FnOnce(&[u8]) -> Result<E, String>,
    ) -> Self {
        match error {
            NestedError::Deadline => CallError::DeadlineExceeded,
            NestedError::NoSuchGroup => CallError::NoSuchGroup(group.into()),
            NestedError::NoReplica => CallError::NoReplica,
            NestedError::Refused(refusal, reason) => CallError::Refused { refusal, reason },
            NestedError::Service(bytes) => match service_error(&bytes) {
                Ok(error) => CallError::Service(error),
                Err(fault) => CallError::Answer(fault),
            },
            other => CallError::Nested(other),
        }
    }

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
