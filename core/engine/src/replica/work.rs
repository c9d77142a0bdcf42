//! A replica's tasks, and the messages that wait for them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::attach::View;
use wire::ordered::{NestedEnd, Request, StateHead, Style};
use wire::{ClientId, Time, ViewNumber};

use crate::api::Ticket;
use crate::session::Asked;
use crate::style::StyleRules;

/// A replica's relation to the group's state.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// It has no state and waits for none: it is not in the group (yet), or no member can send it.
    Idle,
    /// It has the state and executes.
    Live,
    /// It has the state, as a passive group's primary. It executes no more until its executed calls
    /// are ordered: then a snapshot is taken.
    Draining,
    /// It has the state and waits for a snapshot of it: requests wait.
    Snapshotting,
    /// The state is coming in: requests wait.
    Joining { transfer: ViewNumber, bytes: Vec<u8>, next: u32 },
    /// The state has come and is being read by the service: requests wait.
    Restoring { transfer: ViewNumber, head: StateHead, state: Bytes },
    /// The state is back from the disk, and the service receives it again; requests wait. With a
    /// head, the snapshot is being read first.
    Recalling { head: Option<StateHead> },
    /// Its program has died, and it is not known yet whether another goes on from the node's kept
    /// data. Delivered messages go to the journal only.
    Fallen,
    /// Its group stops being cold passive, and gets this style here. The service executes the log,
    /// and requests wait.
    Launching { style: Style, alone: bool },
}

impl Mode {
    /// Its name, for diagnosis.
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

/// A command that the service has and has not answered.
#[derive(Clone, Debug)]
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
    /// A checkpoint is to be restored.
    RestoreCheckpoint,
    /// A call that a passive group's primary executes on arrival.
    Call,
    /// The changes of its calls.
    Change,
    /// These calls were executed elsewhere.
    Apply {
        calls: Vec<(ClientId, u64)>,
    },
    /// A read, with the bytes of its arguments. `alone`: nothing is ordered any more, and ordered
    /// reads may wait for ever.
    Read {
        client: ClientId,
        number: u64,
        asked: Asked,
        bytes: usize,
        alone: bool,
    },
    Snapshot {
        transfer: ViewNumber,
    },
    Restore,
    /// A snapshot for the disk.
    Keep,
}

impl Task {
    /// Whether it keeps no order with the tasks of other lanes.
    fn is_free(&self) -> bool {
        matches!(self, Task::Serve { .. } | Task::Read { alone: true, .. })
    }
}

/// The service and its commands.
#[derive(Clone, Debug)]
pub(super) struct ServiceLink {
    /// The style that the service was last told, or began with.
    pub(super) told: Style,
    /// The service has seen a command since it was made.
    pub(super) used: bool,
    /// It has the state of the replica that was set aside, until it has read another.
    pub(super) holds_former: bool,
    /// The number of the last view that it was told, or is about to be.
    pub(super) viewed: Option<u64>,
    /// The service runs, or is about to; and it was told to, and has not answered anything yet.
    pub(super) runs: bool,
    pub(super) starts: bool,
    pub(super) next_ticket: u64,
    pub(super) tasks: VecDeque<(Ticket, Task)>,
    /// Bytes of the calls that are not ordered, and the number of reads among them.
    pub(super) serving: usize,
    pub(super) reading: usize,
}

impl ServiceLink {
    pub(super) fn new(style: Style) -> ServiceLink {
        ServiceLink {
            told: style,
            used: false,
            holds_former: false,
            viewed: None,
            runs: !style.logs(),
            starts: false,
            next_ticket: 0,
            tasks: VecDeque::new(),
            serving: 0,
            reading: 0,
        }
    }

    /// Another command for it.
    pub(super) fn give(&mut self, task: Task) -> Ticket {
        let ticket = self.next();
        self.used = true;
        self.tasks.push_back((ticket, task));
        ticket
    }

    /// The number of a command whose answer is no task's.
    pub(super) fn next(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        ticket
    }

    /// Whether the service may be executing this command: it is the first, or its lane's.
    pub(super) fn may_run(&self, ticket: Ticket) -> bool {
        self.position(ticket).is_some_and(|at| at == 0 || self.tasks[at].1.is_free())
    }

    /// Removes the task that this command was for, if it may have been executed.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Task> {
        let at = self.position(ticket).filter(|_| self.may_run(ticket))?;
        self.tasks.remove(at).map(|(_, task)| task)
    }

    fn position(&self, ticket: Ticket) -> Option<usize> {
        self.tasks.binary_search_by_key(&ticket, |(given, _)| *given).ok()
    }
}

/// A request at its place in the order.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) request: Request,
    /// The time at which its caller stops waiting.
    pub(super) due: Time,
    /// Another node had it ordered.
    pub(super) elsewhere: bool,
    /// The arrival number among all requests delivered here.
    pub(super) arrived: u64,
}

/// A message that waits until the replica executes again.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    Request(Arrival),
    /// An end, with its place in the order.
    NestedEnd(NestedEnd, u64),
    /// A passive group's update, by number; `None` if not all of it came here.
    Update {
        number: u64,
        bytes: Option<Bytes>,
    },
    /// A read, which sees the effects of all requests before it.
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
    /// The group has this view from here on.
    View(View),
    /// The group has this style from here on.
    Style {
        style: Style,
        alone: bool,
    },
    /// A message is missing here, for this reason: the state is the group's no more.
    Gap(&'static str),
}

impl Waiting {
    /// It came with a record of the log.
    pub(super) fn is_logged(&self) -> bool {
        match self {
            Waiting::Request(_)
            | Waiting::NestedEnd(..)
            | Waiting::Update { .. }
            | Waiting::Checkpoint { .. }
            | Waiting::Gap(_)
            | Waiting::Style { .. } => true,
            Waiting::Read { .. } | Waiting::Snapshot(_) | Waiting::View(_) | Waiting::Keep => false,
        }
    }

    /// It is a call of this client.
    pub(super) fn is_of(&self, client: ClientId) -> bool {
        matches!(self, Waiting::Request(arrival) if arrival.request.client == client)
    }

    /// The arrival number of a request.
    pub(super) fn arrived(&self) -> Option<u64> {
        match self {
            Waiting::Request(arrival) => Some(arrival.arrived),
            _ => None,
        }
    }
}
