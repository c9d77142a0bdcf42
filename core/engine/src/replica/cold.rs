//! What a replica of a cold passive group does (`docs/protocol/group.md`, "Cold passive").
//!
//! Every replica keeps the last checkpoint and the log of the requests since. The primary's also
//! runs the service: it takes the requests from the log, in their order, and orders the checkpoints
//! that cut it. A replica that becomes primary restores its checkpoint and goes on from there, as
//! if it had been slow.

mod acting;

mod change;
mod checkpoint;
mod ends;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use ends::Ends;
use wire::limits::MAX_LOG_ENDS_BYTES;
use wire::ordered::{LoggedState, Place};
use wire::{ClientId, ViewNumber};

use super::{Arrival, Task};

/// What a replica of a cold passive group keeps.
#[derive(Debug, Default)]
pub(super) struct Cold {
    /// The state after all requests that are not in the log, as a [`ReplicaState`]; empty: the
    /// service's initial one.
    checkpoint: Bytes,
    /// The log began while the group was served, and the state at that place is not here yet, but
    /// for the service's.
    begins: bool,
    /// Transfers that wait for it: each with the log as it was where it was begun.
    promised: Vec<(ViewNumber, LoggedState)>,
    log: VecDeque<Arrival>,
    ends: Ends,
    /// Requests in the group's history, and so the number of the last one.
    logged: u64,
    /// The last request that is in the checkpoint that was ordered last. Not all of that may have
    /// come here.
    cut: u64,
    /// Bytes of the requests since.
    bytes: usize,
    running: Option<Running>,
}

/// The service runs here.
#[derive(Debug)]
struct Running {
    /// Where this replica's time as primary began. `None`: it is over, or groups do not act.
    since: Option<Place>,
    /// The next request to be executed.
    next: u64,
    /// This replica is primary no more: it answers what was ordered before that, up to this
    /// request.
    until: Option<u64>,
    /// The checkpoint is being read by the service.
    restoring: bool,
    /// What was in the log when this replica became primary, up to this request, is being executed:
    /// and from which one.
    replaying: Option<(u64, u64)>,
    checkpoint: Progress,
}

/// How far the next checkpoint is.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    None,
    /// The service was asked for its state after this request: it gets no other before it has
    /// answered.
    Asked(u64),
    /// It is being ordered; the number of the chunk that is under way.
    Sent {
        number: u64,
        bytes: Bytes,
        next: u32,
    },
}

/// What a cold passive group's replica keeps, for people and for whoever says when a checkpoint is
/// taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// Requests since the last checkpoint that was ordered.
    pub(crate) requests: u64,
    /// Bytes of their arguments, and of the ends of their calls.
    pub(crate) bytes: usize,
    /// Bytes of the checkpoint.
    pub(crate) checkpoint: usize,
    /// Nothing more is begun before a checkpoint is there: it has too many ends of calls.
    pub(crate) crowded: bool,
}

impl Cold {
    /// The last request that is in the checkpoint here.
    fn covered(&self) -> u64 {
        self.logged - self.log.len() as u64
    }

    fn push(&mut self, mut arrival: Arrival) {
        let request = &mut arrival.request;
        // What came with it in one datagram is not kept.
        request.body = Bytes::copy_from_slice(&request.body);
        self.bytes += request.body.len();
        self.logged += 1;
        self.ends.logged(request, self.logged);
        // A group that calls is told by the end of its call; another node, which had it ordered for
        // a client of its own, by a relay.
        arrival.elsewhere &= request.origin.is_none();
        self.log.push_back(arrival);
    }

    /// The log begins after this request, for whoever has the checkpoint that was ordered last.
    fn cut(&mut self, number: u64) {
        self.cut = number;
        let before = (number - self.covered()) as usize;
        self.bytes = self.log.iter().skip(before).map(|it| it.request.body.len()).sum();
    }

    /// There are too many ends of calls, and a checkpoint would cut them: nothing is begun before.
    fn is_crowded(&self) -> bool {
        let Some(running) = &self.running else { return false };
        let takes_checkpoints = running.since.is_some() && running.until.is_none();
        takes_checkpoints
            && running.replaying.is_none()
            && running.next - 1 > self.cut
            && self.ends.bytes() >= MAX_LOG_ENDS_BYTES
    }

    fn running_mut(&mut self) -> &mut Running {
        self.running.as_mut().expect("its service runs")
    }
}

impl Task {
    /// If it is this call: whether another node is told the reply.
    fn told_elsewhere(&mut self, whose: ClientId, which: u64) -> Option<&mut bool> {
        match self {
            Task::Logged { client, call, elsewhere, .. } if (*client, *call) == (whose, which) => {
                Some(elsewhere)
            }
            _ => None,
        }
    }
}
