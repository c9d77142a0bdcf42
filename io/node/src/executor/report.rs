//! The reports of a replica's executor to the data plane.

use std::sync::mpsc::SyncSender;

use bytes::Bytes;
use engine::{Executed, NestedCall, NestedError, Ticket};
use wire::GroupId;
use wire::attach::{Digested, Notice};

use crate::error::HostError;

/// The way back to the asker for a replica's state, or the reason why there is none.
pub(crate) type StateReply = SyncSender<Result<Vec<u8>, HostError>>;

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub group: GroupId,
    /// Which of the executors that this group has had here.
    pub serial: u64,
    pub ticket: Ticket,
    pub executed: Executed,
    /// The handler panicked.
    pub panicked: bool,
    /// Bytes of the request that wait no more.
    pub bytes: usize,
}

/// The reports of a replica's executor, in order.
pub(crate) enum Report {
    Done(Done),
    /// Its handler calls another group, and waits.
    Call(Asked),
    /// Its service says something about its state.
    State(StateReport),
}

/// A service's word about its state.
pub(crate) struct StateReport {
    pub group: GroupId,
    pub serial: u64,
    pub news: News,
}

/// News of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Something cannot be done with it, or can again.
    Notice(Notice),
    /// The digest that was asked for.
    Digest(Digested),
}

/// A handler's call of another group.
pub(crate) struct Asked {
    pub group: GroupId,
    pub serial: u64,
    pub call: NestedCall,
    /// The waiting thread, if a thread waits.
    pub reply: Option<Reply>,
}

/// Where a handler's thread waits for what comes of its call.
pub(crate) type Reply = SyncSender<Result<Bytes, NestedError>>;
