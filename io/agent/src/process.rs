//! A rank's process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use job::{End, Key, Spec, Task};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use wire::rank::{
    OUTPUT_VARIABLE, RANK_VARIABLE, RANKS_VARIABLE, SOCKET_VARIABLE, SPILL_VARIABLE, TOKEN,
    TOKEN_VARIABLE,
};

use crate::event::Event;

/// The program of a job with its folder and environment, but for what tells ranks apart; in a process
/// group of its own.
pub(crate) fn command(spec: &Spec, words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_remove("NOTIFY_SOCKET")
        // So that a rank computes the same on each host, and at each start.
        .env("PYTHONHASHSEED", "0")
        .env("OPENBLAS_NUM_THREADS", "1")
        .env("OMP_NUM_THREADS", "1")
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .process_group(0);
    if !spec.folder.is_empty() {
        command.current_dir(&spec.folder);
    }
    command
}

/// The variables that tell a rank who it is, where its agent is, and what its standard output is.
pub(crate) fn variables(
    task: &Task,
    (socket, folder, token): (&Path, &Path, &[u8; TOKEN]),
    output: &File,
) -> io::Result<[(&'static str, OsString); 6]> {
    let data = output.metadata()?;
    let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([
        (SOCKET_VARIABLE, socket.into()),
        (TOKEN_VARIABLE, token.into()),
        (SPILL_VARIABLE, folder.into()),
        (RANK_VARIABLE, task.rank.to_string().into()),
        (RANKS_VARIABLE, task.spec.ranks.to_string().into()),
        (OUTPUT_VARIABLE, format!("{}:{}", data.dev(), data.ino()).into()),
    ])
}

/// Starts the program of a task. It prints to these files.
pub(crate) fn start(
    task: &Task,
    place: (&Path, &Path, &[u8; TOKEN]),
    (output, errors): (File, File),
) -> io::Result<Child> {
    let mut command = command(&task.spec, &task.spec.command);
    command.envs(variables(task, place, &output)?);
    command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn()
}

/// Reports the end of a child.
pub(crate) fn watch_child(key: Key, mut child: Child, events: Sender<Event>) -> io::Result<()> {
    let body = move || {
        let pid = Pid::from_child(&child);
        let end = child.wait().map_or(End::Killed(0), end_of);
        // All that it has started ends with it.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = events.send(Event::Ended(key, end));
    };
    thread::Builder::new().name("steadfast wait".into()).spawn(body).map(drop)
}

/// Reports the end of a process that another one has forked. Its parent tells the status in a line.
pub(crate) fn watch_forked(
    key: Key,
    pid: Pid,
    mut status: BufReader<File>,
    events: Sender<Event>,
) -> io::Result<()> {
    let ended = pidfd_open(pid, PidfdFlags::empty());
    let body = move || {
        // A parent that stands still tells nothing.
        if let Ok(ended) = ended
            && status.buffer().is_empty()
        {
            let parent = || PollFd::new(status.get_ref(), PollFlags::IN);
            let both = &mut [parent(), PollFd::new(&ended, PollFlags::IN)];
            while poll(both, None).is_err() {}
            let within = Timespec { tv_sec: 1, tv_nsec: 0 };
            if matches!(poll(&mut [parent()], Some(&within)), Ok(0)) {
                kill(pid);
                let _ = events.send(Event::Ended(key, End::Killed(0)));
                // When its parent goes on, it finds somebody to tell.
                let _ = status.read_line(&mut String::new());
                return;
            }
        }
        let mut line = String::new();
        let told = status.read_line(&mut line).ok().and_then(|_| line.trim_end().parse().ok());
        let Some(raw) = told else {
            // Its parent is gone, and nobody else knows the status.
            if let Err(error) = watch_other(key, pid, events.clone()) {
                tracing::warn!(%error, "a rank that cannot be watched is ended");
                kill(pid);
                let _ = events.send(Event::Ended(key, End::Killed(0)));
            }
            return;
        };
        kill(pid);
        let _ = events.send(Event::Ended(key, end_of(ExitStatus::from_raw(raw))));
    };
    thread::Builder::new().name("steadfast wait".into()).spawn(body).map(drop)
}

/// Reports the end of a process that an earlier agent has started: its status is not ours to know.
pub(crate) fn watch_other(key: Key, pid: Pid, events: Sender<Event>) -> io::Result<()> {
    let ended: OwnedFd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(ended) => ended,
        Err(rustix::io::Errno::SRCH) => {
            let _ = events.send(Event::Ended(key, End::Killed(0)));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let body = move || {
        while poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).is_err() {}
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = events.send(Event::Ended(key, End::Killed(0)));
    };
    thread::Builder::new().name("steadfast wait".into()).spawn(body).map(drop)
}

/// Ends a process, and what it has started.
pub(crate) fn kill(pid: Pid) {
    let _ = kill_process_group(pid, Signal::KILL);
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(0), _) => End::Finished,
        (Some(code), _) => End::Failed(code),
        (_, signal) => End::Killed(signal.unwrap_or(0)),
    }
}
