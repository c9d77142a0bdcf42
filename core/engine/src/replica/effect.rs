//! A replica's requests to its owner.

use alloc::boxed::Box;
use alloc::string::String;

use bytes::Bytes;
use wire::ordered::{About, End, Form, Ordered, Style};
use wire::{ClientId, NodeId, Payload, ViewNumber};

use super::{Ask, Blame, CallQuorum, Child, Slip};
use crate::api::{Command, Event, NestedError, ServiceOutcome, Ticket};
use crate::session::Asked;

/// A request of a replica; they come in order.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Give the service this command.
    Run(Command),
    /// Order this message.
    Order(Ordered),
    /// Services may have died of the next call. Order that this replica tries it, or that nobody
    /// executes it. The call is named if that its client asks may count. In a cold passive group it
    /// does so only while no later call waits: an answer to that would rest on this one.
    Suspect { number: u64, call: Option<(ClientId, u64)>, blame: Blame },
    /// Order that this replica has executed so many calls.
    Tell(u64),
    /// The answer to the call that asked this, for a client that waits for it here.
    Answer { client: ClientId, number: u64, asked: Asked, outcome: ServiceOutcome },
    /// The call that asked this has the place of the present message in the order, if a client waits
    /// for it here.
    Placed { client: ClientId, number: u64, asked: Asked },
    /// The state that this execution of a read saw has its place.
    ReadPlaced { client: ClientId, number: u64, execution: u64 },
    /// The answer to this call depends on all messages up to this one.
    Settled { client: ClientId, number: u64, sequence: u64 },
    /// The end of a group's call, with its digest, for its caller.
    Owe { client: ClientId, number: u64, asked: u64, end: End },
    /// A handler here calls another group.
    Ask(Box<Ask>),
    /// It is settled whether this call of a handler here may be ordered.
    CallQuorum(Child, CallQuorum),
    /// The handler that waits for its call goes on.
    Resume { ticket: Ticket, outcome: Result<Bytes, NestedError> },
    /// The joining replica cannot keep up: it must leave and join again.
    Overflow,
    /// The call has no place: the log had no room for it when it was delivered.
    Unplaced { client: ClientId, number: u64 },
    /// The primary's service cannot report its changes or restore a state, or its state differs
    /// from the others': another must go on.
    Unfit,
    /// The service is asked for the state that is to be kept.
    Keeping,
    /// For the kept data: the state begins, or is of no use any more ([`wire::kept`]).
    Mark(u8),
    /// Keep this state of a group with this style. With a transfer, it is the transferred one, and
    /// the transfer is over when the disk has it.
    Store { style: Style, state: Payload, transfer: Option<ViewNumber> },
    /// Fetch the state of this transfer, of so many bytes, from that node.
    Fetch { transfer: ViewNumber, from: NodeId, bytes: u64 },
    /// The state to be saved, or the service's own reason why there is none.
    Saved(Result<(Form, Bytes), String>),
    /// A voting replica may have votes to send.
    Cast,
    /// Send these votes.
    Vote(Slip),
    /// The replica becomes primary, and its service is to begin with the checkpoint.
    Promoting,
    /// Its service has the checkpoint.
    CheckpointRestored,
    /// The service has executed all requests that the log had when it became primary.
    Replayed { requests: u64 },
    /// A checkpoint is here, and the log is cut.
    Checkpointed,
    /// No checkpoint could be taken.
    CheckpointFailed,
    /// This replica cannot do something with the state, and why; `None`: it can.
    Noted(About, Option<String>),
    /// Report this event.
    Event(Event),
}
