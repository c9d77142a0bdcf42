//! The notices to the supervisor's thread, and their queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender};

use admin::status::ProgramStatus;
use config::ProgramConfig;
use os::waker::Waker;

use crate::error::ProgramError;
use crate::reserve::Terms;

/// A notice to the supervisor's thread. The queue has no bound of its own, but its contents have: a
/// request for each admin connection and waiting thread, and four notices at most of each attached
/// program.
pub(crate) enum Notice {
    /// Start this, and answer when it serves, or has failed to. Then it is not kept.
    Run { config: ProgramConfig, reply: SyncSender<Result<ProgramStatus, ProgramError>> },
    /// Start this, and go on trying.
    Keep(ProgramConfig),
    /// Have these run that are deployed here, and no others of that kind, but for groups of which
    /// nobody else has the state.
    Deploy { programs: Vec<ProgramConfig>, terms: BTreeMap<String, Terms>, alone: Vec<String> },
    /// How do those stand that are deployed here?
    Deployed { reply: SyncSender<Vec<Deployed>> },
    /// Have it end, and answer when it has.
    Stop { group: String, reply: SyncSender<Result<(), ProgramError>> },
    /// How do all stand?
    Status { reply: SyncSender<Vec<ProgramStatus>> },
    /// The data plane has taken in this start of a program.
    Hosted(u64),
    /// Its replica is in its group.
    Joined(u64),
    /// It has answered a call.
    Served(u64),
    /// Its replica's service is to run, and its program does not.
    Wanted(u64),
    /// Its replica's service is to run no more.
    Released(u64),
    /// It was hung, and its replica is out of its group.
    Hung(u64),
    /// The data plane has let it go; the reason, if the program did not go by itself.
    Detached(u64, Option<String>),
    /// Have all end, start none, and let go of `done` when that has happened.
    End { done: SyncSender<()> },
}

/// A program that is deployed here.
#[derive(Clone, Debug)]
pub struct Deployed {
    /// The configuration that runs.
    pub config: ProgramConfig,
    /// Its replica is in its group.
    pub joined: bool,
    /// How often it has ended in a row.
    pub ends_in_a_row: u32,
}

/// How the thread is told something.
#[derive(Clone, Debug)]
pub(crate) struct NoticeSender {
    notices: Sender<Notice>,
    waker: Arc<Waker>,
}

impl NoticeSender {
    pub fn new(notices: Sender<Notice>, waker: Arc<Waker>) -> NoticeSender {
        NoticeSender { notices, waker }
    }

    /// Ends the thread's wait, and is lowered by it.
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    pub fn tell(&self, notice: Notice) {
        // The thread ends with the node.
        let _ = self.notices.send(notice);
        self.waker.wake();
    }
}
