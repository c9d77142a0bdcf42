//! One program at the thread that minds all of them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use admin::status::{ProgramState, ProgramStatus};
use config::ProgramConfig;
use engine::{ProgramNews, ReserveNews};
use os::realtime::Grant;
use rustix::fs::{MemfdFlags, memfd_create};
use wire::attach::TOKEN;
use wire::ordered::Style;
use wire::{Duration, Time};

use crate::child::Process;
use crate::error::ProgramError;
use crate::lines::Flow;
use crate::notice::Deployed;
use crate::reserve::Reserve;
use crate::restart::{self, RestartPolicy, Standing};
use crate::starter::Starter;

/// How long who has a program run waits for it to attach; a large program may take long.
const ATTACH_WITHIN: Duration = Duration::from_secs(30);

/// How long it waits after that for the replica to be in its group.
const JOIN_WITHIN: Duration = Duration::from_secs(5);

/// An action to carry out at the data plane, or news to report.
#[derive(Debug)]
pub(crate) enum Deed {
    /// Tell people.
    Tell(ProgramNews),
    /// Tell people of a reserve, by its path.
    Reserve(String, ReserveNews),
    /// This start of the program is over: its replica, if it has one, is lost.
    Lost(u64),
    /// Have its replica hosted, without the program, under this number.
    Stand(u64),
    /// Forget the program.
    Forget,
}

/// The request of a caller that waits until the program runs.
struct Asked {
    reply: SyncSender<Result<ProgramStatus, ProgramError>>,
    until: Time,
}

pub(crate) struct Running {
    pub config: ProgramConfig,
    /// It is here because the manager says so.
    pub deployed: bool,
    /// The SCHED_FIFO priority of its next start; 0: none.
    pub priority: u8,
    /// Its reserve at the host's daemon, which then gives it its priority.
    pub reserve: Reserve,
    /// The priority of its last start, and what became of it.
    granted: (u8, Grant),
    policy: RestartPolicy,
    pub process: Option<Process>,
    pub flow: Flow,
    /// Which start of all programs the present one is, and the token that it was given and has not
    /// shown.
    pub run: u64,
    /// The start before that, by which the data plane may still know it.
    before: u64,
    token: Option<[u8; TOKEN]>,
    /// Where the present start says what it begins, until the data plane has that.
    begins: Option<File>,
    attached: bool,
    joined: bool,
    last_exit: Option<String>,
    /// Why the data plane let it go.
    dismissed: Option<String>,
    asked: Option<Asked>,
    /// Callers that wait for its end.
    stoppers: Vec<SyncSender<Result<(), ProgramError>>>,
}

impl Running {
    pub fn new(config: ProgramConfig) -> Running {
        Running {
            policy: RestartPolicy::new(config.options.style == Style::ColdPassive),
            config,
            deployed: false,
            priority: 0,
            reserve: Reserve::default(),
            granted: (0, Grant::NotAsked),
            process: None,
            flow: Flow::new(),
            run: 0,
            before: 0,
            token: None,
            begins: None,
            attached: false,
            joined: false,
            last_exit: None,
            dismissed: None,
            asked: None,
            stoppers: Vec::new(),
        }
    }

    /// One that is here because the manager says so.
    pub fn deployed(config: ProgramConfig) -> Running {
        Running { deployed: true, ..Running::new(config) }
    }

    /// `reply` is answered when the program serves. If it fails before, it is not kept.
    pub fn answer(&mut self, now: Time, reply: SyncSender<Result<ProgramStatus, ProgramError>>) {
        self.asked = Some(Asked { reply, until: now + ATTACH_WITHIN });
    }

    /// Does what the policy asks for; `start` gives the number and the token of another start.
    pub fn act(
        &mut self,
        now: Time,
        socket: Option<&Path>,
        starter: &mut Starter,
        mut start: impl FnMut() -> (u64, std::io::Result<[u8; TOKEN]>),
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        while let Some(output) = self.policy.poll_output() {
            match output {
                restart::Output::Start => match self.start(socket, starter, start()) {
                    Ok(pid) => {
                        deeds.push(Deed::Tell(ProgramNews::Started { pid }));
                        deeds.extend(self.reserve_news());
                    }
                    Err(reason) => {
                        deeds.extend(self.reserve_news());
                        deeds.push(Deed::Tell(ProgramNews::Ended { pid: 0, how: reason.clone() }));
                        deeds.push(Deed::Lost(self.run)); // if it was wanted
                        self.has_ended(now, reason.clone(), ProgramError::NotStarted(reason));
                    }
                },
                restart::Output::Stand => {
                    (self.run, _) = start();
                    deeds.push(Deed::Stand(self.run));
                }
                restart::Output::Signal(signal) => {
                    if let Some(process) = &self.process {
                        process.signal(signal);
                    }
                }
                restart::Output::CrashLoop { ends, wait } => {
                    deeds.push(Deed::Tell(ProgramNews::CrashLoop { ends, wait }));
                }
                restart::Output::Recovered => deeds.push(Deed::Tell(ProgramNews::Recovered)),
                restart::Output::Over => {
                    for stopper in self.stoppers.drain(..) {
                        let _ = stopper.try_send(Ok(()));
                    }
                    deeds.push(Deed::Forget);
                }
            }
        }
        deeds
    }

    fn reserve_news(&mut self) -> Option<Deed> {
        self.reserve.take_news().map(|(path, news)| Deed::Reserve(path, news))
    }

    fn start(
        &mut self,
        socket: Option<&Path>,
        starter: &mut Starter,
        (run, token): (u64, std::io::Result<[u8; TOKEN]>),
    ) -> Result<u32, String> {
        self.before = std::mem::replace(&mut self.run, run);
        (self.attached, self.joined, self.dismissed) = (false, false, None);
        self.flow.begin();
        let socket = socket.ok_or("the programs' socket could not be made: the log says why")?;
        let token = token.map_err(|error| format!("no random bytes for its token: {error}"))?;
        // In memory: a write to a disk's file may wait for its journal. Without it any call may be
        // blamed for the program's death.
        self.begins = memfd_create("begins", MemfdFlags::CLOEXEC).map(File::from).ok();
        let begins = self.begins.as_ref().map(path_of);
        let (config, socket) = (self.config.clone(), socket.to_path_buf());
        let start = move || Process::start(&config, &socket, &token, begins.as_deref());
        let priority = if self.reserve.is_wanted() { 0 } else { self.priority };
        let (grant, process) = starter.start(priority, start);
        if let (Grant::Refused(why), (_, Grant::NotAsked | Grant::InForce)) =
            (&grant, &self.granted)
        {
            tracing::warn!(
                group = self.config.group,
                "the program has no priority by its rate: {why}"
            );
        }
        self.granted = (priority, grant);
        let process = process.map_err(|error| {
            let folder =
                self.config.folder.as_ref().map_or_else(String::new, |folder| {
                    format!(" (in folder {})", folder.display())
                });
            format!("{}{folder} cannot be started: {error}", self.config.command[0])
        })?;
        let pid = process.pid();
        // Without room it is not to run here: the process ends with the value.
        if let Some(granted) = self.reserve.begin(pid)? {
            self.granted = granted;
        }
        (self.process, self.token) = (Some(process), Some(token));
        Ok(pid)
    }

    /// Whether this token was given to the present start, and was not shown before. A program that
    /// is stopped comes too late.
    pub fn admit(&mut self, group: &str, token: &[u8; TOKEN]) -> bool {
        let right =
            self.config.group == group && self.token.as_ref() == Some(token) && !self.is_stopping();
        if right {
            self.token = None;
        }
        right
    }

    /// Where it says what it begins.
    pub fn take_begins(&mut self) -> Option<File> {
        self.begins.take()
    }

    /// The data plane has taken it in.
    pub fn hosted(&mut self, now: Time) -> Deed {
        self.attached = true;
        self.policy.attached(now);
        if let Some(asked) = &mut self.asked {
            asked.until = now + JOIN_WITHIN;
        }
        let pid = self.process.as_ref().map_or(0, Process::pid);
        Deed::Tell(ProgramNews::Attached { pid })
    }

    /// Whether the data plane, with this number, means this program.
    pub fn is_meant(&self, run: u64) -> bool {
        self.run == run || self.before == run
    }

    /// Its replica's service is to run.
    pub fn wanted(&mut self) {
        self.policy.wanted();
    }

    /// Its replica's service is to run no more.
    pub fn released(&mut self, now: Time) {
        self.policy.released(now);
    }

    /// Its replica is in its group.
    pub fn joined(&mut self, now: Time) {
        self.joined = true;
        self.answer_run(now);
    }

    /// It has answered a call.
    pub fn served(&mut self) {
        self.policy.served();
    }

    /// It is hung: it would not end by itself.
    pub fn hung(&mut self, now: Time) {
        self.policy.hung(now);
    }

    /// The data plane has let it go.
    pub fn detached(&mut self, now: Time, reason: Option<String>) {
        self.attached = false;
        self.dismissed = reason.or(self.dismissed.take());
        self.policy.detached(now);
    }

    /// Its process has ended.
    pub fn exited(&mut self, now: Time, mut tell: impl FnMut(&str)) -> Vec<Deed> {
        let Some(mut process) = self.process.take() else { return Vec::new() };
        let how = process.wait();
        for pipe in &mut process.pipes {
            pipe.finish(now, &mut self.flow, &mut tell);
        }
        let pid = process.pid();
        let mut deeds = vec![Deed::Tell(ProgramNews::Ended { pid, how: how.clone() })];
        // The data plane has found that out already, unless another process holds the socket.
        deeds.push(Deed::Lost(self.run));
        let (group, dismissed) = (self.config.group.clone(), self.dismissed.take());
        let lines = self.flow.last().map(String::from).collect();
        let error = ProgramError::Ended { group, how: how.clone(), dismissed, lines };
        self.has_ended(now, how, error);
        deeds
    }

    fn has_ended(&mut self, now: Time, how: String, error: ProgramError) {
        (self.token, self.begins, self.attached) = (None, None, false);
        self.reserve.end();
        self.last_exit = Some(how);
        if let Some(asked) = self.asked.take() {
            let _ = asked.reply.try_send(Err(error));
            self.policy.stop(now, false);
        }
        self.policy.ended(now);
    }

    /// It is on its way out for good.
    pub fn is_stopping(&self) -> bool {
        self.policy.is_stopped()
    }

    /// It is to end. True if its replica should leave its group first.
    pub fn stop(
        &mut self,
        now: Time,
        stopper: Option<SyncSender<Result<(), ProgramError>>>,
    ) -> bool {
        self.stoppers.extend(stopper);
        self.policy.stop(now, true);
        let is_admitted = self.process.is_some() && self.token.is_none();
        is_admitted || self.policy.is_on_demand()
    }

    pub fn handle_timeout(&mut self, now: Time) {
        if self.policy.next_timeout() <= now {
            self.policy.handle_timeout(now);
        }
        if self.asked.as_ref().is_some_and(|asked| asked.until <= now) {
            self.answer_run(now);
        }
    }

    fn answer_run(&mut self, now: Time) {
        if let Some(asked) = self.asked.take() {
            let _ = asked.reply.try_send(Ok(self.status(now)));
        }
    }

    pub fn next_timeout(&self, now: Time) -> Time {
        let asked = self.asked.as_ref().map_or(Time::FAR, |asked| asked.until);
        let pipes = self.process.iter().flat_map(|process| &process.pipes);
        let rests = pipes.map(|pipe| pipe.next_timeout(now)).fold(Time::FAR, Time::min);
        self.policy.next_timeout().min(asked).min(rests).min(self.flow.next_timeout())
    }

    pub fn as_deployed(&self, now: Time) -> Deployed {
        let ProgramStatus { joined, ends_in_a_row, .. } = self.status(now);
        Deployed { config: self.config.clone(), joined, ends_in_a_row }
    }

    pub fn status(&self, now: Time) -> ProgramStatus {
        let (state, wait) = match self.policy.standing() {
            Standing::Standby => (ProgramState::Standby, None),
            Standing::Starting => (ProgramState::Starting, None),
            Standing::Attached => (ProgramState::Attached, None),
            Standing::BackingOff(until) => (ProgramState::BackingOff, Some(until.since(now))),
            Standing::Stopping => (ProgramState::Stopping, None),
        };
        ProgramStatus {
            group: self.config.group.clone(),
            command: self.config.command.clone(),
            state,
            joined: self.joined && (self.attached || state == ProgramState::Standby),
            pid: self.process.as_ref().map(Process::pid),
            backing_off_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            restarts: self.policy.restarts(),
            ends_in_a_row: self.policy.ends(),
            last_exit: self.last_exit.clone(),
            lines_dropped: self.flow.dropped(),
            priority: self.granted.0,
            priority_grant: self.granted.1.clone(),
        }
    }
}

/// Where another process of the same user finds an open file of this one.
fn path_of(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}
