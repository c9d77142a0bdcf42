//! The program under trial: started as a node starts it, watched, and killed at the end.

use std::collections::VecDeque;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tempfile::TempDir;
use wire::attach::{BEGINS_VARIABLE, GROUP_VARIABLE, SOCKET_VARIABLE, TOKEN, TOKEN_VARIABLE};

use super::verdict::{Flaw, shown};

/// The group that every program is asked to serve.
pub const GROUP: &str = "conform";

/// Bytes of a program's output that are kept: the last ones.
const LAST_WORDS: usize = 600;

/// How long is waited for each pipe's end when the program has ended.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(500);

/// Variables that differ between two runs of one program: they seed hash tables and clocks.
pub type Surroundings = &'static [(&'static str, &'static str)];

/// A running program.
pub struct Process {
    child: Child,
    pid: Pid,
    ended: OwnedFd,
    output: Arc<Mutex<VecDeque<u8>>>,
    /// Says for each pipe that its end was read.
    silent: Receiver<()>,
    listener: UnixListener,
    pub token: [u8; TOKEN],
    folder: TempDir,
}

impl Process {
    /// Makes the socket in a private folder, and starts the program.
    pub fn start(command: &[String], surroundings: Surroundings) -> Result<Process, Flaw> {
        let ours = |error: std::io::Error| {
            let remedy = "set TMPDIR to a writable folder with a short path";
            Flaw::wrong("a private folder with a socket", format!("{error}: {remedy}"))
        };
        let folder = tempfile::tempdir().map_err(ours)?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).map_err(ours)?;
        let socket = folder.path().join("attach");
        let listener = UnixListener::bind(&socket).map_err(ours)?;
        listener.set_nonblocking(true).map_err(ours)?;
        fs::write(folder.path().join("begins"), []).map_err(ours)?;
        let mut token = [0; TOKEN];
        rustix::rand::getrandom(&mut token, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| ours(error.into()))?;
        let digits: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let spawned = Command::new(&command[0])
            .args(&command[1..])
            .env_remove("NOTIFY_SOCKET")
            .envs(surroundings.iter().copied())
            .env(SOCKET_VARIABLE, &socket)
            .env(TOKEN_VARIABLE, digits)
            .env(GROUP_VARIABLE, GROUP)
            .env(BEGINS_VARIABLE, folder.path().join("begins"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = spawned
            .map_err(|error| Flaw::wrong(format!("{} starts", command[0]), error.to_string()))?;
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, silent) = channel();
        keep(child.stdout.take(), &output, tell.clone());
        keep(child.stderr.take(), &output, tell);
        let pid = Pid::from_child(&child);
        let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| ours(error.into()))?;
        Ok(Process { child, pid, ended, output, silent, listener, token, folder })
    }

    /// Waits until the program connects.
    pub fn accept(&mut self, within: Duration) -> Result<UnixStream, Flaw> {
        let expected = format!("the program connects to ${SOCKET_VARIABLE} within {within:?}");
        let deadline = Instant::now() + within;
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => return Ok(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(Flaw::wrong(expected, error.to_string())),
            }
            let mut fds = [
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::new(&self.ended, PollFlags::IN),
            ];
            let left = deadline.saturating_duration_since(Instant::now());
            let _ = poll(&mut fds, Some(&timespec(left)));
            let connects = !fds[0].revents().is_empty();
            if !connects && (left.is_zero() || !fds[1].revents().is_empty()) {
                return Err(Flaw::wrong(expected, format!("it did not: {}", self.fate())));
            }
        }
    }

    /// How the program ended, if it does so in time.
    pub fn end(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::from_borrowed_fd(self.ended.as_fd(), PollFlags::IN)];
            let polled = poll(&mut fds, Some(&timespec(left)));
            if polled.is_ok() && !fds[0].revents().is_empty() {
                return self.child.wait().ok();
            }
            if left.is_zero() {
                return None;
            }
        }
    }

    /// Whether the program runs or how it ended, with the last of its output.
    pub fn fate(&mut self) -> String {
        let fate = match self.child.try_wait() {
            Ok(Some(status)) => {
                // Its last words may not be read yet; a process that it left may keep its pipes.
                for _ in 0..2 {
                    let _ = self.silent.recv_timeout(LAST_WORDS_WITHIN);
                }
                format!("the program ended ({status})")
            }
            Ok(None) => "the program still runs".into(),
            Err(error) => format!("its end is not known ({error})"),
        };
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(output.make_contiguous());
        match text.trim().lines().last() {
            None => fate,
            Some(line) => {
                format!("{fate}; the last line of its output: {}", shown(line.as_bytes()))
            }
        }
    }

    /// The number in the file of begun commands; `None` as long as the program has written none.
    pub fn begun(&self) -> Result<Option<u64>, Flaw> {
        let path: PathBuf = self.folder.path().join("begins");
        let bytes = fs::read(&path).map_err(|error| {
            Flaw::wrong(format!("the file ${BEGINS_VARIABLE} stays"), error.to_string())
        })?;
        match bytes.first_chunk() {
            Some(number) => Ok(Some(u64::from_le_bytes(*number))),
            None if bytes.is_empty() => Ok(None),
            None => {
                let expected = format!("8 bytes at the beginning of ${BEGINS_VARIABLE}");
                Err(Flaw::wrong(expected, format!("{} bytes", bytes.len())))
            }
        }
    }
}

/// Whether all threads of a process wait for something: none runs, or would if a processor were free.
pub fn sleeps(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let runs = |stat: String| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('R'));
    let stat = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("stat")).ok();
    !threads.flatten().filter_map(stat).any(runs)
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A time to wait, as the system counts it.
pub fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 60, tv_nsec: 0 })
}

/// Reads all that the program writes, and keeps the last of it.
fn keep(
    pipe: Option<impl Read + Send + 'static>,
    output: &Arc<Mutex<VecDeque<u8>>>,
    silent: Sender<()>,
) {
    let Some(mut pipe) = pipe else { return };
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut room = [0; 4096];
        while let Ok(length @ 1..) = pipe.read(&mut room) {
            let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
            output.extend(&room[..length]);
            let surplus = output.len().saturating_sub(LAST_WORDS);
            output.drain(..surplus);
        }
        // Nobody waits for it where the program was killed.
        let _ = silent.send(());
    });
}
