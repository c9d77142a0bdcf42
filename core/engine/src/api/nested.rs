//! Calls between groups, as an executor sees them.

use alloc::string::String;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::client::Refusal;
use wire::histogram::Times;
use wire::limits::{MAX_BODY, MAX_NESTED_CALLS, MAX_NESTED_DEPTH};
use wire::{Duration, MethodId};

use super::Ticket;

/// What a handler asks of another group. It waits for [`Output::Resume`](super::Output::Resume), and until then for nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedCall {
    /// The command that is being executed.
    pub ticket: Ticket,
    /// The name of the group that is called.
    pub callee: String,
    /// Which method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The arguments.
    pub body: Bytes,
    /// How long it may take; no longer than what is left to the call that is being executed.
    pub timeout: Duration,
}

/// What a node's replicas had ordered of calls between groups, since its start. Of each message that this node has sent: how many
/// there were is how often a time was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedStatus {
    /// Send delays of calls: from when one was handed in to be ordered until it was sent.
    pub call_delays: Times,
    /// Send delays of ends.
    pub end_delays: Times,
    /// How long calls were served here: from when one was delivered until its end was handed in. Also of ends that
    /// another replica was quicker to send.
    pub services: Times,
}

/// Why a nested call has no result: the same at every replica of the caller, but for [`Void`](NestedError::Void) and
/// [`Unable`](NestedError::Unable).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NestedError {
    /// Executed: the callee's own error.
    #[error("the service that was called answers with an error of its own ({} bytes)", .0.len())]
    Service(Bytes),
    /// The callee refuses, and says why.
    #[error("refused: {1}")]
    Refused(Refusal, String),
    /// The deadline has come. The call may have been executed, or may be yet.
    #[error(
        "the deadline has come before the reply: give the calls of clients more time, or let handlers ask for less; groups that \
         wait for each other end like this"
    )]
    Deadline,
    /// The deadline has come, and the callee had nobody to execute the call.
    #[error(
        "no replica of the called group has its state: start the nodes that `steadfast status` shows as missing"
    )]
    NoReplica,
    /// There is no such group.
    #[error("the cluster has no group of this name: `steadfast status` lists the groups")]
    NoSuchGroup,
    /// The callee has executed another call in this one's place.
    #[error(
        "another call was executed in this one's place: the handler asked for something else when it was executed before; handlers must be \
         deterministic, and those of a passive group must ask for the same again"
    )]
    Diverged,
    /// The call would come back to a group that waits for it.
    #[error(
        "the called group is already waiting for this call, directly or through others: a group cannot be called by its own \
         calls; break the cycle"
    )]
    Cycle,
    /// Too many groups wait for each other.
    #[error("a call may go through {} groups, this would be one more: call less deeply", MAX_NESTED_DEPTH + 1)]
    TooDeep,
    /// The handler has made as many calls as it may.
    #[error("one handler may make {MAX_NESTED_CALLS} calls: ask for more at a time")]
    TooMany,
    /// The arguments are too large.
    #[error("the arguments have {0} bytes, the limit is {MAX_BODY}: send less at a time")]
    TooLarge(usize),
    /// Handlers cannot call from where they run.
    #[error("nothing was asked: {0}")]
    Unable(&'static str),
    /// The replica begins anew, or leaves: what this handler does has no effect any more.
    #[error(
        "this replica is given its state anew or leaves its group: what the handler does now is forgotten"
    )]
    Void,
}

impl NestedError {
    /// Whether the call was executed; `None` if nobody knows.
    pub fn was_executed(&self) -> Option<bool> {
        match self {
            NestedError::Service(_) => Some(true),
            // The replicas of a voting group asked for different calls: none was made.
            NestedError::Refused(Refusal::Split, _) => Some(false),
            NestedError::Refused(refusal, _) => refusal.was_executed(),
            NestedError::Deadline | NestedError::Void => None,
            _ => Some(false),
        }
    }
}
