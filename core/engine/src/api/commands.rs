//! Commands to the services of replicas, and their results.

use alloc::string::String;

use bytes::Bytes;
use wire::attach::View;
use wire::client::Refusal;
use wire::ordered::Style;
use wire::{ClientId, Lane, MethodId, Time};

/// Matches a result to its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A command to a replica's service. The executor carries out commands strictly in order, and
/// answers them in that order with [`Executed`] and the ticket. In a stateless group the calls of
/// each lane have an order of their own. `Digest`, `View`, `Start`, `Style`, `Reset` and `Stop` have
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Execute a request.
    Execute {
        /// To be handed back.
        ticket: Ticket,
        /// The method.
        method: MethodId,
        /// Arguments and result are JSON instead of postcard.
        json: bool,
        /// It may change nothing: other replicas do not execute it.
        read: bool,
        /// The arguments.
        body: Bytes,
        /// Ordered time: the same at every replica, never running backwards.
        now: Time,
        /// Seed of the handler's random numbers.
        seed: u64,
        /// The client of the call.
        client: ClientId,
        /// The number of the call among the client's.
        number: u64,
        /// Its lane, where calls are not ordered.
        lane: Lane,
    },
    /// Take the state as it is after all commands so far.
    Snapshot {
        /// To be handed back.
        ticket: Ticket,
    },
    /// Replace the state.
    Restore {
        /// To be handed back.
        ticket: Ticket,
        /// The state, from another replica's snapshot.
        state: Bytes,
    },
    /// Report what the requests have changed since the last reported or applied change
    /// ([`Changes::take`](crate::Changes::take)). Only for the primary of a warm passive group.
    Change {
        /// To be handed back.
        ticket: Ticket,
    },
    /// Apply the primary's change to the state ([`Changes::apply`](crate::Changes::apply)).
    Apply {
        /// To be handed back.
        ticket: Ticket,
        /// The change, as the primary's service reported it.
        change: Bytes,
    },
    /// Start the service from its initial state, in a group of this style. It is not running: the
    /// group was cold passive when the replica was hosted, or [`Stop`](Command::Stop) came. In
    /// other styles services run from the beginning.
    Start(Style),
    /// The group has this style from here on. The service keeps running: it has executed every
    /// request ordered before. In a warm passive group it records its changes from here on.
    Style(Style),
    /// Discard the state, and begin again from the initial one.
    Reset,
    /// Tell a digest of the state as it is after all commands so far
    /// ([`Stack::handle_digest`](crate::Stack::handle_digest)). Nobody waits for it: a service that
    /// has none, or a large state, says nothing.
    Digest {
        /// To be handed back.
        number: u64,
    },
    /// The group has this view from here on, among all commands so far.
    View(View),
    /// Stop the service: its group is cold passive, and another replica is primary. The next
    /// command can only be [`Start`](Command::Start).
    Stop,
}

impl Command {
    /// The ticket of a command that has an answer.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Command::Execute { ticket, .. }
            | Command::Snapshot { ticket }
            | Command::Restore { ticket, .. }
            | Command::Change { ticket }
            | Command::Apply { ticket, .. } => Some(*ticket),
            Command::Digest { .. }
            | Command::View(_)
            | Command::Start(_)
            | Command::Style(_)
            | Command::Reset
            | Command::Stop => None,
        }
    }
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// For [`Command::Execute`]: the request's outcome.
    Reply(ServiceOutcome),
    /// For [`Command::Snapshot`]: the state.
    Snapshot(Result<Bytes, String>),
    /// For [`Command::Restore`]: done, or the state could not be read.
    Restored(Result<(), String>),
    /// For [`Command::Change`]: the change.
    Change(Result<Bytes, String>),
    /// For [`Command::Apply`]: done, or the change could not be applied.
    Applied(Result<(), String>),
}

/// A service's outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// The method's result.
    Ok(Bytes),
    /// The service's own error.
    Error(Bytes),
    /// The request could not be executed: the same reason at every replica.
    Refused(Refusal, String),
}
