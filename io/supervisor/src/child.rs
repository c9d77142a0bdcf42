//! A program's process, and the pipes that bring its output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, Command, Stdio};

use admin::hex;
use config::ProgramConfig;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use wire::attach::{BEGINS_VARIABLE, GROUP_VARIABLE, SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE};
use wire::{Duration, Time};

use crate::lines::{Flow, Lines};
use crate::restart;

/// Bytes of output that are taken at a time.
const READ: usize = 64 << 10;

/// How long the output of a program that floods the log is left alone at a time: what it then
/// writes is dropped, and costs no more than so many looks.
const REST: Duration = Duration::from_millis(10);

/// Bytes that are still read of an ended program's output: more than a pipe holds.
const LAST_WORDS: usize = 1 << 20;

/// A running process, in a process group of its own: what it starts ends with it.
pub(crate) struct Process {
    child: Child,
    pidfd: OwnedFd,
    pid: Pid,
    pub pipes: [Pipe; 2],
}

impl Process {
    /// Starts a program, which finds the way back in its environment.
    pub fn start(
        config: &ProgramConfig,
        socket: &Path,
        token: &[u8; TOKEN],
        begins: Option<&Path>,
    ) -> io::Result<Process> {
        let mut command = Command::new(path_of(config));
        command
            .args(&config.command[1..])
            // It is the node that tells systemd how it fares.
            .env_remove("NOTIFY_SOCKET")
            .envs(&config.environment)
            // The program runs in a folder of its own.
            .env(SOCKET_VARIABLE, absolute(socket)?)
            .env(TOKEN_VARIABLE, hex(token))
            .env(GROUP_VARIABLE, &config.group)
            .envs(begins.map(|path| (BEGINS_VARIABLE, path)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = &config.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        let pid = Pid::from_child(&child);
        let watched = pidfd_open(pid, PidfdFlags::empty());
        let pipes = Pipe::of(out).and_then(|out| Ok([out, Pipe::of(err)?]));
        match (watched, pipes) {
            (Ok(pidfd), Ok(pipes)) => Ok(Process { child, pidfd, pid, pipes }),
            (watched, pipes) => {
                // It cannot be watched: it must not be left behind.
                let _ = kill_process_group(pid, Signal::KILL);
                let _ = child.wait();
                Err(watched
                    .err()
                    .map(io::Error::from)
                    .or(pipes.err())
                    .unwrap_or_else(|| io::Error::other("the process cannot be watched")))
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Readable when the process has ended.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends a signal to it, and to whatever it has started.
    pub fn signal(&self, signal: restart::Signal) {
        let signal = match signal {
            restart::Signal::Term => Signal::TERM,
            restart::Signal::Kill => Signal::KILL,
        };
        // It was not waited for yet, so the number is still its own. It may have ended.
        let _ = kill_process_group(self.pid, signal);
    }

    /// How it has ended, in words, after its end was reported. Processes that it started end too.
    pub fn wait(&mut self) -> String {
        self.signal(restart::Signal::Kill);
        match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => format!("its end is not known: {error}"),
        }
    }
}

/// A process that is forgotten (the thread ends by a panic) must not go on without its node.
impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(restart::Signal::Kill);
            let _ = self.child.wait();
        }
    }
}

fn path_of(config: &ProgramConfig) -> PathBuf {
    let program = Path::new(&config.command[0]);
    match &config.folder {
        Some(folder) if program.components().count() > 1 => folder.join(program),
        _ => program.into(),
    }
}

/// One of the pipes that bring a program's output.
pub(crate) struct Pipe {
    /// `None` when it has ended.
    fd: Option<OwnedFd>,
    lines: Lines,
    /// It is left alone until then.
    pub rests_until: Time,
}

impl Pipe {
    fn of(fd: Option<OwnedFd>) -> io::Result<Pipe> {
        if let Some(fd) = &fd {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Pipe { fd, lines: Lines::default(), rests_until: Time::ZERO })
    }

    /// The descriptor to poll, if there is one.
    pub fn fd(&self, now: Time) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().filter(|_| self.rests_until <= now).map(AsFd::as_fd)
    }

    /// When it is looked at again.
    pub fn next_timeout(&self, now: Time) -> Time {
        if self.fd.is_some() && self.rests_until > now { self.rests_until } else { Time::FAR }
    }

    /// Reads once; `tell` is given each line that is to stand in the log. True if there may be
    /// more.
    pub fn read(&mut self, now: Time, flow: &mut Flow, tell: impl FnMut(&str)) -> bool {
        let length = self.read_once(now, flow, tell);
        if length > 0 && flow.is_full(now) {
            self.rests_until = now + REST;
        }
        length > 0
    }

    /// Reads what is left when the process has ended.
    pub fn finish(&mut self, now: Time, flow: &mut Flow, mut tell: impl FnMut(&str)) {
        let mut left = LAST_WORDS;
        while left > 0 {
            let length = self.read_once(now, flow, &mut tell);
            if length == 0 {
                break;
            }
            left = left.saturating_sub(length);
        }
        if let Some(line) = self.lines.finish()
            && flow.take(now, &line)
        {
            tell(&line);
        }
        self.fd = None;
    }

    fn read_once(&mut self, now: Time, flow: &mut Flow, mut tell: impl FnMut(&str)) -> usize {
        let Some(fd) = &self.fd else { return 0 };
        let mut room = vec![0; READ];
        let length = match rustix::io::read(fd, &mut room[..]) {
            Ok(length) if length > 0 => length,
            Err(error) if error == rustix::io::Errno::AGAIN => return 0,
            Err(error) if error == rustix::io::Errno::INTR => return 0,
            // The other end is closed.
            _ => {
                self.fd = None;
                return 0;
            }
        };
        self.lines.push(&room[..length], |line| {
            if flow.take(now, &line) {
                tell(&line);
            }
        });
        length
    }
}
