//! What a replica has to do, and what waits until it can.

use alloc::vec::Vec;

use bytes::Bytes;
use wire::ordered::{NestedEnd, Request, StateHead, Style};
use wire::{ClientId, Time, ViewNumber};

/// How the replica stands to the group's state.
#[derive(Debug)]
pub(super) enum Mode {
    /// It has none and waits for none: not in the group (yet), or nobody can give it.
    Idle,
    /// It has the state and executes.
    Live,
    /// It has the state, as a passive group's primary, and executes nothing more until what it has
    /// executed is ordered: then a snapshot is taken.
    Draining,
    /// It has the state and waits for a snapshot of it: requests wait.
    Snapshotting,
    /// The state is coming in: requests wait.
    Joining { transfer: ViewNumber, bytes: Vec<u8>, next: u32 },
    /// The state has come and is being read by the service: requests wait.
    Restoring { transfer: ViewNumber, head: StateHead, state: Bytes },
    /// The state is back from the disk, and the service is being given it again; requests wait.
    /// With a head, the snapshot is being read first.
    Recalling { head: Option<StateHead> },
    /// The program that served it has died, and it is not known yet whether another goes on from
    /// what its node has kept. What is delivered comes to the journal only.
    Fallen,
    /// Its group is cold passive no more, and gets this style here: the service executes what the
    /// log has, and requests wait.
    Launching { style: Style, alone: bool },
}

impl Mode {
    /// Its name, for people.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Mode::Idle => "idle",
            Mode::Live => "live",
            Mode::Draining => "draining",
            Mode::Snapshotting => "snapshotting",
            Mode::Joining { .. } => "joining",
            Mode::Restoring { .. } => "restoring",
            Mode::Recalling { .. } => "recalling",
            Mode::Fallen => "fallen",
            Mode::Launching { .. } => "launching",
        }
    }
}

/// What was given to the service and is not yet answered.
#[derive(Debug)]
pub(super) enum Task {
    Execute {
        place: u64,
        client: ClientId,
        number: u64,
    },
    /// A call that is not ordered, with the bytes of its arguments.
    Serve {
        client: ClientId,
        number: u64,
        bytes: usize,
    },
    /// A request of the log, by its number there.
    Logged {
        place: u64,
        client: ClientId,
        call: u64,
        number: u64,
        /// Another node waits for the reply.
        elsewhere: bool,
    },
    /// The state is wanted for a checkpoint.
    Checkpoint,
    /// A checkpoint is to be taken up.
    RestoreCheckpoint,
    /// A call that a passive group's primary executes on arrival.
    Call,
    /// What its calls have changed.
    Change,
    /// These calls were executed elsewhere.
    Apply {
        calls: Vec<(ClientId, u64)>,
    },
    /// A read, with the bytes of its arguments.
    Read {
        client: ClientId,
        number: u64,
        bytes: usize,
    },
    Snapshot {
        transfer: ViewNumber,
    },
    Restore,
    /// A snapshot for the disk.
    Keep,
}

/// A request at its place in the order.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) request: Request,
    /// When its caller waits no longer.
    pub(super) due: Time,
    /// Another node had it ordered.
    pub(super) elsewhere: bool,
    /// Of all requests that were delivered here, the so many-th.
    pub(super) arrived: u64,
}

/// What waits until the replica executes again.
#[derive(Debug)]
pub(super) enum Waiting {
    Request(Arrival),
    /// With its place in the order.
    NestedEnd(NestedEnd, u64),
    /// A passive group's update, by number; nothing if not all of it came here.
    Update {
        number: u64,
        bytes: Option<Bytes>,
    },
    /// It sees what the requests before it leave.
    Read {
        request: Request,
        execution: Option<u64>,
    },
    /// A cold passive group's checkpoint: as an update.
    Checkpoint {
        number: u64,
        bytes: Option<Bytes>,
    },
    /// A snapshot must be taken at this very place of the order.
    Snapshot(ViewNumber),
    /// The state is to be kept.
    Keep,
    /// The group has this style from here on.
    Style {
        style: Style,
        alone: bool,
    },
}

impl Waiting {
    /// It came with a record of the log.
    pub(super) fn is_logged(&self) -> bool {
        match self {
            Waiting::Request(_)
            | Waiting::NestedEnd(..)
            | Waiting::Update { .. }
            | Waiting::Checkpoint { .. }
            | Waiting::Style { .. } => true,
            Waiting::Read { .. } | Waiting::Snapshot(_) | Waiting::Keep => false,
        }
    }

    /// When it arrived, if it is a request.
    pub(super) fn arrived(&self) -> Option<u64> {
        match self {
            Waiting::Request(arrival) => Some(arrival.arrived),
            _ => None,
        }
    }
}
