//! How a call or a connection can fail.

use std::time::Duration;

use bytes::Bytes;
use wire::client::Refusal;
use wire::limits::{MAX_ADDRESSES, MAX_CALL_BYTES, MAX_DEADLINE, MAX_GROUPS, MAX_QUEUED_CALLS};
use wire::versions::{CLIENT, VersionRange};

/// Why a call has no result.
///
/// [`CallError::was_executed`] tells whether the service executed the call.
///
/// ```
/// use steadfast_client::CallError;
///
/// assert_eq!(CallError::NoReplica.was_executed(), Some(false), "call again, if you like");
/// assert_eq!(CallError::DeadlineExceeded.was_executed(), None, "find out before you call again");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer came before the deadline.
    #[error(
        "no answer within the deadline: the service may have executed the call. Use a longer \
         deadline, and see `steadfast status` for the group's state"
    )]
    DeadlineExceeded,
    /// No answer came before the deadline, and the client's [`RetryBudget`](crate::RetryBudget) was
    /// empty.
    #[error(
        "no answer within the deadline, and the retry budget was empty, so the client did not send the call again; the service may \
         have executed it. See `steadfast status`, or allow more retries (`Builder::retry_budget`)"
    )]
    RetriesSpent,
    /// The cluster has no group of this name.
    #[error(
        "the cluster has no group `{0}`: check the name (`steadfast status` lists all), and that \
         a node hosts a replica of it"
    )]
    NoSuchGroup(String),
    /// The cluster knows the group, but no replica could answer before the deadline.
    #[error(
        "no replica of the group may answer now: too few nodes are up for the quorum, or the \
         nodes with the group's state are down; start them, and call again"
    )]
    NoReplica,
    /// A node or the service refused the call.
    #[error("refused: {reason}")]
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// The reason in words, with the remedy.
        reason: String,
    },
    /// The service executed the call and returned its own error, in the service's encoding.
    #[error("the service returned an error of {} bytes", .0.len())]
    Service(Bytes),
    /// The client reached no node before the deadline. The text tells what each address did.
    #[error("no node can be reached ({0}): check the addresses, and that nodes run there")]
    Unreachable(String),
    /// All nodes that answered speak another version of the protocol.
    #[error(
        "the nodes speak protocol version {theirs}, this client version {CLIENT}: upgrade the \
         older side"
    )]
    Version {
        /// The versions of the node that answered last.
        theirs: VersionRange,
    },
    /// The client has too many calls or bytes under way, or too many groups.
    #[error(
        "too many calls wait in this client (limits: {MAX_QUEUED_CALLS} calls, {MAX_CALL_BYTES} \
         bytes of arguments, {MAX_GROUPS} groups): make fewer calls at a time, or use more clients"
    )]
    TooManyCalls,
    /// The deadline is longer than nodes are sure to remember a session.
    #[error("a deadline of {0:?} is longer than the limit, {MAX_DEADLINE:?}: give a shorter one")]
    DeadlineTooLong(Duration),
    /// Its caller has made the call anew, or has given it up: see [`Key`](crate::Key).
    #[error(
        "the caller has repeated the call, or has given it up: its newest attempt has the answer"
    )]
    Repeated,
    /// Its caller has made another call of this number by this client: see [`Key`](crate::Key).
    #[error(
        "this client has sent another call as number {0} of the session: give each call a number of \
         its own, and each program a session of its own"
    )]
    NumberTaken(u64),
    /// The task of an asynchronous client has ended.
    #[error("the client's task has ended with its runtime: make a new client")]
    Closed,
}

impl CallError {
    /// Whether the service executed the call. `None` means that nobody knows.
    ///
    /// After `Some(false)` the call is never executed. After `None` it may still be executed, until
    /// a later call of the same client to the same group is.
    pub fn was_executed(&self) -> Option<bool> {
        match self {
            CallError::DeadlineExceeded
            | CallError::RetriesSpent
            | CallError::Repeated
            | CallError::NumberTaken(_)
            | CallError::Closed => None,
            CallError::Service(_) => Some(true),
            CallError::Refused { refusal, .. } => refusal.was_executed(),
            _ => Some(false),
        }
    }
}

/// Why a client could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The list of addresses is empty.
    #[error("no address: give the client address of at least one node, such as 127.0.0.1:7100")]
    NoAddress,
    /// The list of addresses is too long.
    #[error("{0} addresses: give at most {MAX_ADDRESSES}; one that answers is enough")]
    TooManyAddresses(usize),
    /// An address could not be resolved.
    #[error("an address cannot be resolved: {0}; write HOST:PORT")]
    Resolve(String),
    /// No node answered. The text tells what each address did.
    #[error("no node can be reached ({0}): check the addresses, and that nodes run there")]
    Unreachable(String),
    /// The nodes that answered speak another version of the protocol.
    #[error(
        "the nodes speak protocol version {theirs}, this client version {CLIENT}: upgrade the \
         older side"
    )]
    Version {
        /// The versions of the node that answered last.
        theirs: VersionRange,
    },
    /// The system gave no file descriptor, or no runtime can run the task.
    #[error("the system refuses a resource of the client: {0}")]
    System(String),
}
