//! The outputs of a [`Stack`](crate::Stack).

use alloc::boxed::Box;
use alloc::string::String;

use bytes::Bytes;
use ring::Route;
use wire::client::{Frame, Outcome};
use wire::ordered::{Place, Style};
use wire::roster::Roster;
use wire::{Caller, GroupId, NodeId, NodeList, NodeSet, Payload, ViewNumber};

use super::{
    AwayCall, BenchError, BenchResult, Command, Event, Kept, KeyCommand, MoveError, NestedError,
    RestoreError, RestyleError, SaveError, Saved, Ticket, Transfer,
};

/// A request or a report to the owner. Outputs must be handled in their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Send this datagram to each of these nodes.
    Send {
        /// The receivers, by place in the configured list of nodes; never this node itself.
        to: NodeSet,
        /// The bytes.
        datagram: Bytes,
        /// The link, if there are several.
        route: Route,
    },
    /// Write this frame to this client.
    Frame {
        /// The client's connection.
        caller: Caller,
        /// The frame.
        frame: Frame,
    },
    /// Answer this client, which asks where another cell is called: [`Frame::Bound`], of this name.
    Place {
        /// The client's connection.
        caller: Caller,
        /// A path with a colon behind it.
        name: String,
    },
    /// Write what is queued for this client, then close its connection.
    Close {
        /// The client's connection.
        caller: Caller,
    },
    /// Make this call of a group of another cell.
    Away(Box<AwayCall>),
    /// A call of the node's internal client ([`Stack::call`](crate::Stack::call)) is over.
    Own {
        /// The call's number.
        number: u64,
        /// Its outcome.
        outcome: Outcome,
    },
    /// Give this command to the replica of this group, after all earlier commands.
    Run {
        /// The group.
        group: GroupId,
        /// The command.
        command: Command,
    },
    /// Resume the handler that waits for its call of another group. Ignore this if no handler waits
    /// for the call any more.
    Resume {
        /// The group whose replica runs the handler.
        group: GroupId,
        /// The command that is being executed.
        ticket: Ticket,
        /// The call's outcome.
        outcome: Result<Bytes, NestedError>,
    },
    /// Make sure that this node's process lives: a client could not reach it. A datagram to a
    /// closed port comes back as unreachable; report that to the stack.
    Probe(NodeId),
    /// The benchmark that this node was asked for is over.
    Bench(Box<Result<BenchResult, BenchError>>),
    /// A move of the primary that this node was asked for is over.
    Moved {
        /// The group.
        group: GroupId,
        /// The node that was to become primary.
        to: NodeId,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, MoveError>,
    },
    /// This node's replica has left the group because its service is hung. It executes nothing any
    /// more: end the service, and host the group again with a new one.
    Replace(GroupId),
    /// The program that served this node's replica of the group has died, and no other replica has
    /// the group's state. Start it again, and give it the commands that follow.
    Revive(GroupId),
    /// A change of style that this node was asked for is over.
    Restyled {
        /// The group.
        group: GroupId,
        /// The style that was asked for.
        style: Style,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, RestyleError>,
    },
    /// A save that this node was asked for is over.
    Saved {
        /// The group.
        group: GroupId,
        /// Its state, or the reason for the failure.
        outcome: Result<Saved, SaveError>,
    },
    /// A restore that this node was asked for is over, or was refused. If it succeeded, the state
    /// is at this node, and the group waits for it or has it already.
    Restored {
        /// The group.
        group: GroupId,
        /// The view, or the reason for the failure.
        outcome: Result<ViewNumber, RestoreError>,
    },
    /// Keep this: the next record of the store's log.
    /// [`Stack::handle_persisted`](crate::Stack::handle_persisted) is to report when it is on the
    /// disk.
    Persist(Kept),
    /// Keep this state of a strand, which stands for its records up to the `covers`-th that was
    /// given by [`Output::Persist`].
    /// [`Stack::handle_snapshot_stored`](crate::Stack::handle_snapshot_stored) is to report when it
    /// is stored.
    Snapshot {
        /// A group's, or the node's own.
        strand: Option<GroupId>,
        /// The number of records, of all strands, that had been given when it was taken.
        covers: u64,
        /// The place in the order at which it was taken.
        place: Place,
        /// The state.
        state: Payload,
    },
    /// Fetch the state of a transfer from that node by a stream: it asks its own stack for it
    /// ([`Stack::offered`](crate::Stack::offered)).
    /// [`Stack::handle_fetched`](crate::Stack::handle_fetched) is to report how it ended. A later
    /// fetch for the group makes this one needless.
    Fetch {
        /// The transfer.
        transfer: Transfer,
        /// The node that has the state.
        from: NodeId,
        /// Its bytes.
        bytes: u64,
    },
    /// The kept records and snapshots of this group are not needed any more.
    Forget(GroupId),
    /// Put this roster on the disk, then say so
    /// ([`Stack::handle_roster_kept`](crate::Stack::handle_roster_kept)). Its nodes are reached as it
    /// says.
    Keep(Roster),
    /// The nodes of this roster are reached as it says.
    Known(Roster),
    /// The nodes and their places from here on: those of sets in later outputs.
    Nodes(NodeList),
    /// Do this with the keys that seal this node's datagrams.
    Key(KeyCommand),
    /// Something that logs, metrics and people want to know.
    Event(Event),
}
