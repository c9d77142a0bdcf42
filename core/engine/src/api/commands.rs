//! What replicas' services are told to do, and what they answer.

use alloc::string::String;

use bytes::Bytes;
use wire::client::Refusal;
use wire::ordered::Style;
use wire::{ClientId, MethodId, Time};

/// Tells which command a result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What a replica is told to do, strictly in the order given. Each but `Start`, `Style`, `Reset` and `Stop` is answered by
/// [`Executed`] with its ticket, in the same order.
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
        /// Whose call it is.
        client: ClientId,
        /// Which of the client's calls.
        number: u64,
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
        /// What another replica's snapshot gave.
        state: Bytes,
    },
    /// Say what the requests so far have changed since the last change was said or applied
    /// ([`Changes::take`](crate::Changes::take)). Only to the primary of a warm passive group.
    Change {
        /// To be handed back.
        ticket: Ticket,
    },
    /// Make the state what it became at the primary ([`Changes::apply`](crate::Changes::apply)).
    Apply {
        /// To be handed back.
        ticket: Ticket,
        /// What the primary's service has said.
        change: Bytes,
    },
    /// The service is to run from here on, from its initial state, in a group of this style. It does not run: its group was cold
    /// passive when it was hosted, or [`Stop`](Command::Stop) came. Services of other styles run from the beginning.
    Start(Style),
    /// The group has this style from here on: that of a service which has begun in another, and which has executed all that was ordered
    /// before. Where it is warm passive, what has changed is told from here on.
    Style(Style),
    /// The replica's state is of no use any more: begin anew, as at the start.
    Reset,
    /// The service is to run no more: its group is cold passive, and another is primary. Nothing but [`Start`](Command::Start) comes before it
    /// runs again.
    Stop,
}

impl Command {
    /// What its answer is to bring back, if it is answered.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Command::Execute { ticket, .. }
            | Command::Snapshot { ticket }
            | Command::Restore { ticket, .. }
            | Command::Change { ticket }
            | Command::Apply { ticket, .. } => Some(*ticket),
            Command::Start(_) | Command::Style(_) | Command::Reset | Command::Stop => None,
        }
    }
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executed {
    /// A request was executed.
    Reply(ServiceOutcome),
    /// The state.
    Snapshot(Result<Bytes, String>),
    /// The state was replaced, or could not be read.
    Restored(Result<(), String>),
    /// What has changed.
    Change(Result<Bytes, String>),
    /// The state is what it became at the primary, or cannot be made so.
    Applied(Result<(), String>),
}

/// What the service made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// The method's result.
    Ok(Bytes),
    /// The service's own error.
    Error(Bytes),
    /// The request could not be executed: the same reason at every replica.
    Refused(Refusal, String),
}
