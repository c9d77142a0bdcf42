//! A rank's process.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use job::{End, Key, Task};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use wire::rank::{
    OUTPUT_VARIABLE, RANK_VARIABLE, RANKS_VARIABLE, SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE,
};

use crate::event::Event;

/// Starts the program of a task, in a process group of its own. It prints to these files.
pub(crate) fn start(
    task: &Task,
    (socket, token): (&Path, &[u8; TOKEN]),
    (output, errors): (File, File),
) -> io::Result<Child> {
    let data = output.metadata()?;
    let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    let spec = &task.spec;
    let mut command = Command::new(&spec.command[0]);
    command
        .args(&spec.command[1..])
        .env_remove("NOTIFY_SOCKET")
        // So that a rank computes the same on each host, and at each start.
        .env("PYTHONHASHSEED", "0")
        .env("OPENBLAS_NUM_THREADS", "1")
        .env("OMP_NUM_THREADS", "1")
        .envs(spec.environment.iter().map(|(name, value)| (name, value)))
        .env(SOCKET_VARIABLE, socket)
        .env(TOKEN_VARIABLE, token)
        .env(RANK_VARIABLE, task.rank.to_string())
        .env(RANKS_VARIABLE, spec.ranks.to_string())
        .env(OUTPUT_VARIABLE, format!("{}:{}", data.dev(), data.ino()))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    if !spec.folder.is_empty() {
        command.current_dir(&spec.folder);
    }
    command.spawn()
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
