//! A replica of a cold passive group (`docs/protocol/group.md`, "Cold passive").
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

/// The data of a cold passive group's replica.
#[derive(Clone, Debug, Default)]
pub(super) struct Cold {
    /// The state after all requests that are not in the log, as a [`ReplicaState`]; empty: the
    /// service's initial one.
    checkpoint: Bytes,
    /// The log began while the group was served, and only the service has the state at that place.
    begins: bool,
    /// Transfers that wait for that state, each with the log at its begin.
    promised: Vec<(ViewNumber, LoggedState)>,
    log: VecDeque<Arrival>,
    ends: Ends,
    /// The number of requests in the group's history, which is the number of the last one.
    logged: u64,
    /// The last request in the checkpoint that was ordered last. Not all of that may have come
    /// here.
    cut: u64,
    /// Bytes of the requests since.
    bytes: usize,
    running: Option<Running>,
}

impl Cold {
    /// The last request that the service here was given.
    pub(super) fn run(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.next.saturating_sub(1))
    }

    /// The log has a call of this client.
    pub(super) fn has_logged(&self, client: ClientId) -> bool {
        self.log.iter().any(|arrival| arrival.request.client == client)
    }
}

/// The service runs here.
#[derive(Clone, Debug)]
struct Running {
    /// The begin of this replica's time as primary. `None`: it is over, or groups do not act.
    since: Option<Place>,
    /// The next request to be executed.
    next: u64,
    /// This replica is primary no more: it answers earlier requests, up to this one.
    until: Option<u64>,
    /// The checkpoint is being read by the service.
    restoring: bool,
    /// The service executes the requests that were in the log when this replica became primary: the
    /// first and the last of them.
    replaying: Option<(u64, u64)>,
    checkpoint: Progress,
}

/// The progress of the next checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    None,
    /// The service was asked for its state after this request. It gets no other request before it
    /// has answered.
    Asked(u64),
    /// It is being ordered; the number of the chunk that is under way.
    Sent {
        number: u64,
        bytes: Bytes,
        next: u32,
    },
}

/// The size of a cold passive group's log, for status and for the decision to take a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// Requests since the last checkpoint that was ordered.
    pub(crate) requests: u64,
    /// Bytes of their arguments, and of the ends of their calls.
    pub(crate) bytes: usize,
    /// Bytes of the checkpoint.
    pub(crate) checkpoint: usize,
    /// Too many ends of calls: no request is begun before a checkpoint is there.
    pub(crate) crowded: bool,
}

impl Cold {
    /// The last request that is in the checkpoint here.
    fn covered(&self) -> u64 {
        self.logged - self.log.len() as u64
    }

    /// The log has requests that its service has not been given.
    pub(super) fn has_more_to_run(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.next <= self.logged)
    }

    fn push(&mut self, mut arrival: Arrival) {
        let request = &mut arrival.request;
        // Other messages of the same datagram are not kept in memory.
        request.body = Bytes::copy_from_slice(&request.body);
        self.bytes += request.body.len();
        self.logged += 1;
        self.ends.logged(request, self.logged);
        // A calling group learns the result by the end of its call. Another node, which ordered the
        // request for its own client, learns it by a relay.
        arrival.elsewhere &= request.origin.is_none();
        self.log.push_back(arrival);
    }

    /// The log begins after this request, where the last ordered checkpoint is here.
    fn cut(&mut self, number: u64) {
        self.cut = number;
        let before = (number - self.covered()) as usize;
        self.bytes = self.log.iter().skip(before).map(|it| it.request.body.len()).sum();
    }

    /// There are too many ends of calls, and a checkpoint would cut them: no request is begun
    /// before.
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
    /// For this call: whether another node gets the reply.
    fn told_elsewhere(&mut self, whose: ClientId, which: u64) -> Option<&mut bool> {
        match self {
            Task::Logged { client, call, elsewhere, .. } if (*client, *call) == (whose, which) => {
                Some(elsewhere)
            }
            _ => None,
        }
    }
}
