//! What a replica wants done.

use alloc::boxed::Box;
use alloc::string::String;

use bytes::Bytes;
use wire::ordered::{End, Form, Ordered, Style};
use wire::{ClientId, ViewNumber};

use super::{Ask, Blame, CallQuorum, Child, Slip};
use crate::api::{Command, Event, NestedError, ServiceOutcome, Ticket};

/// What a replica asks for, in order.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Give the service this command.
    Run(Command),
    /// Order this message.
    Order(Ordered),
    /// These may have died of the next call, which is this client's: order that this replica tries
    /// it, or that nobody executes it.
    Suspect { number: u64, call: Option<(ClientId, u64)>, blame: Blame },
    /// Order that this replica has executed so many calls.
    Tell(u64),
    /// This is the answer to this call, for whoever waits for it here.
    Answer { client: ClientId, number: u64, outcome: ServiceOutcome },
    /// It has a place in the order, if somebody waits for it here: that of what is being delivered.
    Placed { client: ClientId, number: u64 },
    /// What this execution of a read saw has its place.
    ReadPlaced { client: ClientId, number: u64, execution: u64 },
    /// The answer to this call depends on what was ordered up to there.
    Settled { client: ClientId, number: u64, sequence: u64 },
    /// This is how a group's call ended, for its caller, which had asked this.
    Owe { client: ClientId, number: u64, asked: u64, end: End },
    /// A handler here calls another group.
    Ask(Box<Ask>),
    /// It is settled whether this call of a handler here may be ordered.
    CallQuorum(Child, CallQuorum),
    /// The handler that waits for its call goes on.
    Resume { ticket: Ticket, outcome: Result<Bytes, NestedError> },
    /// The joining replica cannot keep up: it must leave and join again.
    Overflow,
    /// It has none: the log had no room for it when it was delivered.
    Unplaced { client: ClientId, number: u64 },
    /// The primary's service cannot say what it has changed, or take up what it is to go on from,
    /// or what it has is not what the others have: another must go on.
    Unfit,
    /// The service is asked here for the state that is to be kept.
    Keeping,
    /// For what is kept: the state begins, or is of no use any more ([`wire::kept`]).
    Mark(u8),
    /// The state is to be kept, of a group that had this style where it was taken. With a transfer
    /// it is the one that this brought, which is over when the disk has it.
    Store { style: Style, state: Bytes, transfer: Option<ViewNumber> },
    /// The state that is to be saved, or why it cannot be had: the service's own words.
    Saved(Result<(Form, Bytes), String>),
    /// A voting replica may have something to tell.
    Cast,
    /// It tells this.
    Vote(Slip),
    /// It becomes primary, and its service is to begin with the checkpoint.
    Promoting,
    /// Its service has the checkpoint.
    CheckpointRestored,
    /// Its service has executed so many requests that the log had when it became primary.
    Replayed { requests: u64 },
    /// A checkpoint is here, and the log is cut.
    Checkpointed,
    /// No checkpoint could be taken.
    CheckpointFailed,
    /// Tell.
    Event(Event),
}
