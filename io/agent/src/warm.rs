//! Warm processes: each waits with the imports of a job's program done, and forks ranks that start
//! again. So a rank in Python need not start its interpreter and import its packages anew.
//!
//! A job has one at each host, begun when all of its ranks there compute. It knows nothing of a rank
//! until it is asked to fork one. Whatever is wrong with it, ranks start by processes of their own.
//!
//! Its standard input is a socket of packets, so nobody else has it. The end of the socket is the end
//! of the process, as soon as no fork runs; without the agent, at once.
//!
//! - The process says `ready`, or `no: ` and why it is not to be used.
//! - A request has a start's variables, `NAME=VALUE` with zero bytes between them. With it come three
//!   files: standard output, standard error, and a pipe.
//! - The process forks, and makes a process group for the fork. It writes the fork's number to the pipe,
//!   a line of decimal digits, and only then lets it go on. So an agent that ends a process which does
//!   not answer knows whether there is a fork. After the fork's end comes the status of `waitpid`.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Child;
use std::sync::mpsc::Sender;
use std::thread;

use job::{Spec, Task};
use os::clock::monotonic;
use os::passing::{receive, send_all_now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use wire::{Duration, Time};

use crate::event::Event;
use crate::process;
use crate::program::Stamp;

mod command;

/// The variable of a job's environment by which it has no warm process.
const COLD_VARIABLE: &str = "STEADFAST_JOB_COLD";

/// How long its imports may take.
const READY_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

/// How long a fork may take, and the end of one that has not answered.
const FORKS_WITHIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long one stays where its job has no rank any more: the next start may be on its way here.
const STAYS: Duration = Duration::from_secs(10);

/// The word of a process that is ready.
const READY: &[u8] = b"ready";

/// Bytes of its word.
const WORD: usize = 512;

/// The warm processes of a host.
pub(crate) struct Warm {
    events: Sender<Event>,
    processes: BTreeMap<u64, Parked>,
    last: u64,
}

/// One of them.
struct Parked {
    number: u64,
    /// Its job, and the script as it was when its imports were read.
    spec: Spec,
    script: Stamp,
    state: State,
    /// When its job had a rank here last.
    used: Time,
}

/// Closing the socket ends the process, as soon as none of its ranks runs.
enum State {
    Begins(OwnedFd, OwnedFd),
    Ready(OwnedFd, OwnedFd),
    /// It cannot be used, and another one could not either.
    Refused,
}

/// A rank that was forked: its process, and where its parent tells the exit status.
pub(crate) struct Forked {
    pub pid: Pid,
    pub status: BufReader<File>,
}

impl Warm {
    pub fn new(events: Sender<Event>) -> Warm {
        Warm { events, processes: BTreeMap::new(), last: 0 }
    }

    /// All ranks of a job compute that are here: now the next start of any may be prepared.
    pub fn begin(&mut self, job: u64, spec: &Spec) {
        if spec.environment.iter().any(|(name, _)| name == COLD_VARIABLE) {
            return;
        }
        let Some((words, script)) = command::of(spec) else { return };
        let Ok(script) = Stamp::read(&script) else { return };
        if self.processes.get(&job).is_some_and(|it| it.script == script && it.runs(spec)) {
            return;
        }
        self.last += 1;
        let begun = self.spawn((job, self.last), spec, &words);
        let state = begun.unwrap_or_else(|error| {
            tracing::warn!(job = spec.name, %error, "no warm process");
            State::Refused
        });
        let (number, spec, used) = (self.last, spec.clone(), monotonic());
        self.processes.insert(job, Parked { number, spec, script, state, used });
    }

    /// Its standard input is the socket: so no other process can have it.
    fn spawn(&self, of: (u64, u64), spec: &Spec, words: &[String]) -> io::Result<State> {
        let (unix, packets) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (mine, its) = socketpair(unix, packets, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&mine, Timeout::Recv, Some(READY_WITHIN))?;
        // A program that prints while it is imported is not used, so nobody reads this.
        let prints = File::from(memfd_create("steadfast-warm", MemfdFlags::CLOEXEC)?);
        let mut command = process::command(spec, words);
        command.stdin(its).stdout(prints.try_clone()?).stderr(prints);
        let (heard, events) = (mine.try_clone()?, self.events.clone());
        let child = command.spawn()?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let body = move || watch(of, child, heard, &events);
        thread::Builder::new().name("steadfast warm".into()).spawn(body)?;
        Ok(State::Begins(mine, process))
    }

    /// A process is ready, or is of no use.
    pub fn handle(&mut self, job: u64, number: u64, ready: Result<(), String>) {
        let Some(parked) = self.processes.get_mut(&job).filter(|it| it.number == number) else {
            return;
        };
        let name = &parked.spec.name;
        parked.state = match (std::mem::replace(&mut parked.state, State::Refused), ready) {
            (State::Begins(socket, process), Ok(())) => {
                tracing::info!(job = name, "a warm process is ready");
                State::Ready(socket, process)
            }
            (State::Begins(..), Err(why)) => {
                tracing::info!(job = name, why, "no warm process: ranks start by their own");
                State::Refused
            }
            (State::Ready(..), _) => {
                // It may have been killed. Another one comes with the next start.
                tracing::info!(job = name, "the warm process has ended");
                self.processes.remove(&job);
                return;
            }
            (State::Refused, _) => State::Refused,
        };
    }

    /// These jobs are over.
    pub fn end(&mut self, over: &[u64]) {
        self.processes.retain(|job, _| !over.contains(job));
    }

    /// Ends processes whose jobs are here no more.
    pub fn look_after(&mut self, now: Time, is_here: impl Fn(u64) -> bool) {
        self.processes.retain(|job, parked| {
            if is_here(*job) {
                parked.used = now;
            }
            now < parked.used + STAYS
        });
    }

    /// A process can fork this start.
    pub fn is_ready(&self, task: &Task) -> bool {
        let parked = self.processes.get(&task.job);
        parked.is_some_and(|it| matches!(it.state, State::Ready(..)) && it.fits(&task.spec))
    }

    /// Forks a start, with these variables, which prints to these files. `None`: that did not work,
    /// and nothing of it is left.
    pub fn fork(
        &mut self,
        task: &Task,
        variables: &[(&str, OsString)],
        prints: &(File, File),
    ) -> Option<Forked> {
        let parked = self.processes.get(&task.job)?;
        let State::Ready(socket, process) = &parked.state else { return None };
        let why = match forked(socket, process, variables, prints) {
            Ok(forked) => return Some(forked),
            Err(error) => error,
        };
        tracing::warn!(job = task.spec.name, %why, "the warm process forks no rank");
        self.processes.remove(&task.job);
        None
    }
}

impl Parked {
    /// Its imports are those of this job's program as it is now.
    fn fits(&self, spec: &Spec) -> bool {
        let now = command::of(spec).and_then(|(_, script)| Stamp::read(&script).ok());
        self.runs(spec) && now == Some(self.script)
    }

    fn runs(&self, spec: &Spec) -> bool {
        let of = |it: &Spec| (it.command.clone(), it.folder.clone(), it.environment.clone());
        of(&self.spec) == of(spec)
    }
}

/// Reports what a process says of itself, and its end.
fn watch((job, number): (u64, u64), mut child: Child, socket: OwnedFd, events: &Sender<Event>) {
    let mut word = [0; WORD];
    let ready = match receive(&socket, &mut word, &mut VecDeque::new(), true) {
        Ok(length) if &word[..length] == READY => Ok(()),
        Ok(0) => Err("it has ended; is the package in the interpreter?".into()),
        Ok(length) => Err(String::from_utf8_lossy(&word[..length]).into_owned()),
        Err(error) => Err(format!("its imports take too long: {error}")),
    };
    drop(socket);
    if ready.is_err() {
        let _ = child.kill();
    }
    let _ = events.send(Event::Warmed(job, number, ready));
    let status = child.wait().map_or_else(|error| error.to_string(), |it| it.to_string());
    let _ = events.send(Event::Warmed(job, number, Err(status)));
}

/// Asks a process for a fork, and waits until there is one. Else the process is ended.
fn forked(
    socket: &OwnedFd,
    process: &OwnedFd,
    variables: &[(&str, OsString)],
    (output, errors): &(File, File),
) -> io::Result<Forked> {
    let (status, told) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut status = BufReader::new(File::from(status));
    let word =
        |(name, value): &(&str, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let words = variables.iter().map(word).collect::<Vec<_>>().join(&0);
    let asked = send_all_now(socket, &words, &[output.as_fd(), errors.as_fd(), told.as_fd()]);
    drop(told);
    if asked.is_ok() && comes(status.get_ref())? {
        return read_pid(&mut status).map(|pid| Forked { pid, status });
    }
    // It may be stopped. A fork goes on only when its number was told: so after the end of its parent
    // it is known whether there is one.
    pidfd_send_signal(process, Signal::KILL)?;
    comes(process)?;
    if comes(status.get_ref())?
        && let Ok(pid) = read_pid(&mut status)
    {
        process::kill(pid);
    }
    asked?;
    Err(io::ErrorKind::TimedOut.into())
}

/// There is something to read within the time for a fork.
fn comes(file: impl AsFd) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&FORKS_WITHIN)) {
            Err(Errno::INTR) => {}
            result => return Ok(result? > 0),
        }
    }
}

fn read_pid(status: &mut BufReader<File>) -> io::Result<Pid> {
    let mut line = String::new();
    status.read_line(&mut line)?;
    let pid = line.trim_end().parse().ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it could not fork"))
}
