//! How a call or a connection can fail.

use std::time::Duration;

use bytes::Bytes;
use wire::PROTOCOL_VERSION;
use wire::client::Refusal;
use wire::limits::{MAX_ADDRESSES, MAX_CALL_BYTES, MAX_DEADLINE, MAX_GROUPS, MAX_QUEUED_CALLS};

/// Why a call has no result.
///
/// Whether the call was executed, [`CallError::was_executed`] says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer came in time.
    #[error(
        "no answer within the deadline, and whether the call was executed is not known: give it \
         a longer deadline, and see `steadfast status` for what the group is doing"
    )]
    DeadlineExceeded,
    /// No answer came in time, and the client had made all the retries that its budget allows.
    #[error(
        "no answer within the deadline, and the client's retries are spent, so the call was not sent again; whether it was executed is not \
         known: see `steadfast status` for why nodes do not answer, or allow more retries (`Builder::retries`)"
    )]
    RetriesSpent,
    /// The cluster has no group of this name.
    #[error(
        "the cluster has no group `{0}`: check the name (`steadfast status` lists all), and that \
         a node hosts a replica of it"
    )]
    NoSuchGroup(String),
    /// The group is known, but until the deadline no replica could answer.
    #[error(
        "no replica of the group may answer now: too few nodes are up for the quorum, or those \
         with the group's state are down; start them, and call again"
    )]
    NoReplica,
    /// A node or the service refused; the reason says what to do.
    #[error("refused: {reason}")]
    Refused {
        /// The kind of refusal.
        refusal: Refusal,
        /// In words, with the remedy.
        reason: String,
    },
    /// The service executed the call and returned its own error, encoded as the service does.
    #[error("the service returned an error of {} bytes", .0.len())]
    Service(Bytes),
    /// Until the deadline no node could be reached. What each address did is in the text.
    #[error("no node can be reached ({0}): check the addresses, and that nodes run there")]
    Unreachable(String),
    /// All nodes that answer speak another version of the protocol.
    #[error(
        "the nodes speak protocol version {theirs}, this client version {PROTOCOL_VERSION}: \
         upgrade the older side"
    )]
    Version {
        /// The version of the node that answered last.
        theirs: u8,
    },
    /// The client has too much to do already.
    #[error(
        "too many calls wait in this client (limits: {MAX_QUEUED_CALLS} calls, {MAX_CALL_BYTES} \
         bytes of arguments, {MAX_GROUPS} groups): call less, or from more clients"
    )]
    TooManyCalls,
    /// The deadline is longer than a session lives for certain.
    #[error("a deadline of {0:?} is longer than the limit, {MAX_DEADLINE:?}: give a shorter one")]
    DeadlineTooLong(Duration),
    /// The client's task has ended.
    #[error("the client's task has ended with the runtime that it ran in: make a new client")]
    Closed,
}

impl CallError {
    /// Whether the call was executed; `None` if nobody knows.
    ///
    /// A call that was not executed will not be. One of which it is not known may be executed even after this error was
    /// told, until a later call of the same client to the group is.
    pub fn was_executed(&self) -> Option<bool> {
        match self {
            CallError::DeadlineExceeded | CallError::RetriesSpent | CallError::Closed => None,
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
    /// No address was given.
    #[error("no address: give the client address of at least one node, such as 127.0.0.1:7100")]
    NoAddress,
    /// More addresses were given than are of use.
    #[error("{0} addresses: give at most {MAX_ADDRESSES}; one that answers is enough")]
    TooManyAddresses(usize),
    /// An address could not be turned into numbers.
    #[error("an address cannot be resolved: {0}; write HOST:PORT")]
    Resolve(String),
    /// No node answered. What each address did is in the text.
    #[error("no node can be reached ({0}): check the addresses, and that nodes run there")]
    Unreachable(String),
    /// A node answered, in another version of the protocol, and no other node did better.
    #[error(
        "the nodes speak protocol version {theirs}, this client version {PROTOCOL_VERSION}: \
         upgrade the older side"
    )]
    Version {
        /// The version of the node that answered last.
        theirs: u8,
    },
    /// The system gives no more file descriptors, or no runtime is there to run the task.
    #[error("the system refuses what a client needs: {0}")]
    System(String),
}
