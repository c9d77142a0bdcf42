//! Nested calls: the interface between an executor and the stack.

use alloc::string::String;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::client::Refusal;
use wire::histogram::Times;
use wire::limits::{MAX_BODY, MAX_NESTED_CALLS, MAX_NESTED_DEPTH};
use wire::path::Path;
use wire::{ClientId, Duration, GroupId, MethodId};

use super::Ticket;

/// A handler's call to another group. The handler waits until
/// [`Output::Resume`](super::Output::Resume) brings the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedCall {
    /// The command that the handler executes.
    pub ticket: Ticket,
    /// The name of the group that is called.
    pub callee: String,
    /// The method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The arguments.
    pub body: Bytes,
    /// The call's time-out, at most the time left to the handler's own call.
    pub timeout: Duration,
}

/// A call that a handler of this node's replica makes of a group of another cell. The driver makes
/// it as a client does, and tells its end to [`Stack::handle_away`](crate::Stack::handle_away).
///
/// Every execution of the handler, at any replica, makes it under the same names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwayCall {
    /// The name of the end.
    pub wait: AwayWait,
    /// The cell that is called.
    pub cell: Path,
    /// The group, by its name there.
    pub group: String,
    /// The session: one for each client of the caller, and each place among a handler's calls.
    pub client: ClientId,
    /// The number in the session: the parent call's.
    pub number: u64,
    /// All calls below this number have ended.
    pub unanswered: u64,
    /// The method.
    pub method: MethodId,
    /// Arguments and result are JSON instead of postcard.
    pub json: bool,
    /// The priority of the parent call.
    pub priority: u8,
    /// The arguments.
    pub body: Bytes,
    /// The handler waits so long.
    pub left: Duration,
}

/// A handler that waits for the end of a call to another cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwayWait {
    /// The calling group.
    pub caller: GroupId,
    /// The parent call's client and number, and the place among its handler's calls.
    pub child: (ClientId, u64, u8),
    /// The hash of the call.
    pub asked: u64,
}

/// Times of the nested calls that this node's replicas have ordered since the node's start. Each
/// histogram has one entry for each message, so it also counts the messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedStatus {
    /// Send delays of calls: from the request to order a call until its sending.
    pub call_delays: Times,
    /// Send delays of ends.
    pub end_delays: Times,
    /// Service times: from a call's delivery until the request to order its end. Includes ends that
    /// another replica sent first.
    pub services: Times,
}

/// Why a nested call has no result. Every replica of the caller gets the same error, except for
/// [`Void`](NestedError::Void) and [`Unable`](NestedError::Unable).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NestedError {
    /// The callee executed the call, and its service returned an error.
    #[error("the called service returned an error ({} bytes)", .0.len())]
    Service(Bytes),
    /// The callee refuses the call, for a reason.
    #[error("refused: {1}")]
    Refused(Refusal, String),
    /// The deadline has passed. The call may have been executed, or may be executed later.
    #[error(
        "the deadline passed before the reply: give the clients' calls more time, or make fewer \
         nested calls; groups that wait for each other also end like this"
    )]
    Deadline,
    /// The deadline has passed, and the callee had no replica to execute the call.
    #[error(
        "no replica of the called group has its state: start the nodes that `steadfast status` shows as missing"
    )]
    NoReplica,
    /// There is no such group.
    #[error("the cluster has no group of this name: `steadfast status` lists the groups")]
    NoSuchGroup,
    /// The callee has executed another call under this call's number.
    #[error(
        "the callee executed a different call under this number: an earlier execution of the handler \
         made another call; handlers must be deterministic, and a passive group's handler must \
         repeat its calls"
    )]
    Diverged,
    /// The callee is one of the groups that wait for this call.
    #[error(
        "the called group is already waiting for this call, directly or through others: break the \
         cycle"
    )]
    Cycle,
    /// The path of calling groups would be too long.
    #[error("a call may go through {} groups, this would be one more: call less deeply", MAX_NESTED_DEPTH + 1)]
    TooDeep,
    /// The handler has made the most calls that it may.
    #[error("one handler may make {MAX_NESTED_CALLS} calls: request more in each call")]
    TooMany,
    /// The arguments are too large.
    #[error("the arguments have {0} bytes, the limit is {MAX_BODY}: send less at a time")]
    TooLarge(usize),
    /// The handler cannot make nested calls from where it runs.
    #[error("the call was not made: {0}")]
    Unable(&'static str),
    /// The replica receives its state anew, or leaves: this execution has no effect any more.
    #[error(
        "this replica receives its state anew or leaves its group: this execution has no effect"
    )]
    Void,
}

impl NestedError {
    /// Whether the call was executed; `None`: unknown.
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
