//! The supervisor's thread, as the node's other threads see it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use admin::status::ProgramStatus;
use bytes::Bytes;
use config::ProgramConfig;
use os::threads;
use os::waker::Waker;
use wire::{Duration, Member};

use crate::data_plane::DataPlane;
use crate::error::ProgramError;
use crate::notice::{Deployed, Notice, NoticeSender};
use crate::reserve::Terms;
use crate::supervisor::Supervisor;
use crate::trial::{Trials, Tried};

/// The longest that a clean stop waits for programs: for each to leave, then to obey SIGTERM, and
/// SIGKILL after that.
const END_WITHIN: Duration = Duration::from_secs(10);

/// The thread answers in microseconds, but for what is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(40);

/// The thread's other end.
#[derive(Debug)]
pub struct Programs {
    notices: NoticeSender,
    trials: Trials,
}

impl Programs {
    /// Starts the thread. The socket comes to be with the first program, in a folder beside
    /// `admin`. `top`: the highest real-time priority of a program; 0: none has any.
    ///
    /// # Errors
    /// The system has no thread, or no descriptor, left.
    pub fn start(
        admin: &Path,
        (me, cluster): (Member, &str),
        (top, daemon): (u8, Option<PathBuf>),
        plane: Box<dyn DataPlane>,
    ) -> std::io::Result<Programs> {
        let (sender, notices) = channel();
        let waker = Arc::new(Waker::new()?);
        let mut folder = admin.as_os_str().to_owned();
        folder.push(".d");
        let sender = NoticeSender::new(sender, waker);
        let trials = Trials::new(folder.clone().into(), me, cluster.into());
        let supervisor = Supervisor::new(
            folder.into(),
            (me, cluster.into()),
            (top, daemon),
            plane,
            sender.clone(),
        );
        let body = move || supervisor.run(&notices);
        threads::spawn("steadfast programs", body)?;
        Ok(Programs { notices: sender, trials })
    }

    fn ask<T>(&self, notice: impl FnOnce(SyncSender<T>) -> Notice) -> Result<T, ProgramError> {
        let (reply, answer) = sync_channel(1);
        self.notices.tell(notice(reply));
        answer.recv_timeout(ANSWER_WITHIN).map_err(|_| ProgramError::Stopped)
    }

    /// Starts a program, and waits until it serves or has failed to.
    ///
    /// # Errors
    /// Why it does not run, and the remedy.
    pub fn run(&self, config: ProgramConfig) -> Result<ProgramStatus, ProgramError> {
        config.check()?;
        self.ask(|reply| Notice::Run { config, reply })?
    }

    /// Starts a program of the node's configuration: it is tried again and again.
    pub fn keep(&self, config: ProgramConfig) {
        self.notices.tell(Notice::Keep(config));
    }

    /// Has the programs run that are deployed here, and ends those that no longer are. If this node
    /// `alone` has a group's state, the replica stays as it is. `terms`: what is known of a group's
    /// needs.
    pub fn deploy(
        &self,
        programs: Vec<ProgramConfig>,
        terms: BTreeMap<String, Terms>,
        alone: Vec<String>,
    ) {
        self.notices.tell(Notice::Deploy { programs, terms, alone });
    }

    /// Those that are deployed here.
    pub fn deployed(&self) -> Vec<Deployed> {
        self.ask(|reply| Notice::Deployed { reply }).unwrap_or_default()
    }

    /// Tries a program on a state, beside the one that serves; without a state it only has to start. It
    /// takes seconds, and one trial at a time.
    ///
    /// # Errors
    /// Why it cannot serve the group.
    pub fn try_out(&self, config: &ProgramConfig, state: Option<Bytes>) -> Result<Tried, String> {
        self.trials.run(config, state)
    }

    /// Ends a program, and waits until it has ended.
    ///
    /// # Errors
    /// There is none, or the node stops.
    pub fn stop(&self, group: &str) -> Result<(), ProgramError> {
        self.ask(|reply| Notice::Stop { group: group.into(), reply })?
    }

    /// All programs, in order of their groups' names.
    pub fn status(&self) -> Vec<ProgramStatus> {
        self.ask(|reply| Notice::Status { reply }).unwrap_or_default()
    }

    /// Begins to end all of them; what is given back ends when the last one has.
    pub fn end(&self) -> Ending {
        let (done, ended) = sync_channel(1);
        self.notices.tell(Notice::End { done });
        Ending(ended)
    }
}

/// Programs on their way out.
#[derive(Debug)]
pub struct Ending(Receiver<()>);

impl Ending {
    /// Waits until all have ended, within bounds.
    pub fn wait(&self) {
        // The thread lets go of the other end: nothing is sent.
        let _ = self.0.recv_timeout(END_WITHIN);
    }
}
