//! A program is tried beside the one that serves: it is started as for a replica, given a state, asked
//! for it again, and ended (`docs/protocol/deployment.md`, "The trial"). Nothing that it does has any
//! effect on its group.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use config::ProgramConfig;
use os::clock::{self, monotonic};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use wire::attach::{Frame, NoticeCode, Piece, TOKEN, TRIAL_VARIABLE, Welcome};
use wire::limits::{ATTACH_PIECE, MAX_STATE};
use wire::versions::ATTACH;
use wire::{Duration, Member, Time};

use crate::child::Process;
use crate::door::{is_own, listen};
use crate::lines::Flow;

/// The socket's name beside that of the programs that serve: no longer, since paths of sockets are
/// short.
const NAME: &str = "trial";

/// How long a program may take to attach: an interpreter on a busy host takes a while.
const ATTACH_WITHIN: Duration = Duration::from_secs(20);

/// How long it may take to read a state and to give it.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long it may take to end.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Bytes read at a time.
const READ: usize = 64 << 10;

const RESTORE: u64 = 1;
const SNAPSHOT: u64 = 2;

/// The trial of a program that can serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// Fields of the state that it does not know, in its own words.
    pub dropped: Option<String>,
}

/// The place of trials: one at a time.
#[derive(Debug)]
pub(crate) struct Trials {
    folder: PathBuf,
    me: Member,
    cluster: String,
    turn: Mutex<()>,
}

impl Trials {
    pub fn new(folder: PathBuf, me: Member, cluster: String) -> Trials {
        Trials { folder, me, cluster, turn: Mutex::new(()) }
    }

    /// Tries the program on this state; `None`: it only has to start. It takes seconds at most.
    ///
    /// # Errors
    /// Why it cannot serve the group.
    pub fn run(&self, config: &ProgramConfig, state: Option<Bytes>) -> Result<Tried, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(NAME);
        let socket = Socket::open(&self.folder, path)
            .map_err(|error| format!("the socket of its trial cannot be made: {error}"))?;
        let token = os::random::secret()
            .map(|secret| *secret.expose())
            .map_err(|error| format!("no random bytes for its token: {error}"))?;
        let mut config = config.clone();
        config.environment.insert(TRIAL_VARIABLE.into(), "1".into());
        let process = Process::start(&config, &socket.path, &token, None)
            .map_err(|error| format!("{} cannot be started: {error}", config.command[0]))?;
        let ordered = config.options.style.has_state();
        let mut trial = Trial {
            config,
            process,
            flow: Flow::new(),
            input: BytesMut::new(),
            output: BytesMut::new(),
            tried: Tried::default(),
        };
        let welcome = Welcome {
            version: ATTACH.greatest,
            ordered,
            node: self.me.node,
            cluster: self.cluster.clone(),
        };
        let stream = trial.attach(&socket.listener, &token, welcome)?;
        if let Some(state) = state {
            trial.give_and_take(&stream, &state)?;
        }
        trial.end(stream);
        Ok(trial.tried)
    }
}

/// The socket of one trial. It leaves nothing behind.
struct Socket {
    path: PathBuf,
    listener: UnixListener,
}

impl Socket {
    fn open(folder: &Path, path: PathBuf) -> std::io::Result<Socket> {
        let listener = listen(folder, &path)?;
        Ok(Socket { path, listener })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A program that is being tried. It is killed when this is dropped.
struct Trial {
    config: ProgramConfig,
    process: Process,
    flow: Flow,
    input: BytesMut,
    output: BytesMut,
    tried: Tried,
}

impl Trial {
    /// Waits until the program has come with its token, and lets it in.
    fn attach(
        &mut self,
        listener: &UnixListener,
        token: &[u8; TOKEN],
        welcome: Welcome,
    ) -> Result<UnixStream, String> {
        let deadline = monotonic() + ATTACH_WITHIN;
        let late = || format!("it did not attach within {} s", ATTACH_WITHIN.as_secs());
        let mut stream = None;
        loop {
            if let Some(stream) = &stream
                && let Some(frame) = self.take()?
            {
                match frame {
                    Frame::Hello(hello)
                        if hello.token == *token && hello.group == self.config.group =>
                    {
                        let theirs = hello.speaks;
                        let common = ATTACH.common(theirs).ok_or_else(|| {
                            format!(
                                "it speaks version {theirs} of the protocol, this node {ATTACH}"
                            )
                        })?;
                        let version = common.greatest;
                        Frame::Welcome(Welcome { version, ..welcome }).append(&mut self.output);
                        break self.write(stream)?;
                    }
                    _ => return Err("it does not begin with its hello and its token".into()),
                }
            }
            let waits_for = stream.as_ref().map_or(listener.as_fd(), UnixStream::as_fd);
            if !self.wait(waits_for, PollFlags::IN, deadline, &late)? {
                continue;
            }
            match &stream {
                Some(stream) => self.read(stream)?,
                None => {
                    stream = listener.accept().ok().map(|it| it.0).filter(is_own);
                }
            }
        }
        stream.ok_or_else(late)
    }

    /// Has it read the state, and give it.
    fn give_and_take(&mut self, stream: &UnixStream, state: &Bytes) -> Result<(), String> {
        let total = state.len() as u64;
        let mut sent = 0;
        let mut given = 0;
        let late =
            || format!("it did not read and give the state within {} s", ANSWER_WITHIN.as_secs());
        let deadline = monotonic() + ANSWER_WITHIN;
        // An empty state is one piece, too.
        let mut begun = false;
        loop {
            while let Some(frame) = self.take()? {
                match frame {
                    Frame::Restored(RESTORE) => Frame::Snapshot(SNAPSHOT).append(&mut self.output),
                    Frame::Failed(failed) if failed.number == RESTORE => {
                        return Err(prefixed("cannot read the state", &failed.reason));
                    }
                    Frame::Failed(failed) => {
                        return Err(prefixed(
                            "cannot give the state that it has read",
                            &failed.reason,
                        ));
                    }
                    Frame::State(piece) if piece.number == SNAPSHOT => {
                        given += piece.bytes.len() as u64;
                        if piece.total > MAX_STATE as u64 || given > piece.total {
                            return Err("it gives a state larger than MAX_STATE".into());
                        }
                        if given == piece.total {
                            return Ok(());
                        }
                    }
                    _ => return Err("its answer is none to what was asked".into()),
                }
            }
            if self.output.is_empty() && (sent < state.len() || !begun) {
                let end = state.len().min(sent + ATTACH_PIECE);
                let bytes = state.slice(sent..end);
                (sent, begun) = (end, true);
                Frame::Restore(Piece { number: RESTORE, total, bytes }).append(&mut self.output);
            }
            self.write(stream)?;
            let more = !self.output.is_empty() || sent < state.len();
            let flags = if more { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            if self.wait(stream.as_fd(), flags, deadline, &late)? {
                self.read(stream)?;
            }
        }
    }

    /// All is well: it is told so, and ends.
    fn end(&mut self, stream: UnixStream) {
        Frame::Farewell(String::new()).append(&mut self.output);
        let _ = self.write(&stream);
        drop(stream);
        let deadline = monotonic() + END_WITHIN;
        let timeout = clock::timeout(monotonic(), deadline);
        let mut fds = [PollFd::from_borrowed_fd(self.process.end(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// The next frame that is here, beside its words about the state.
    fn take(&mut self) -> Result<Option<Frame>, String> {
        loop {
            let taken = Frame::take(&mut self.input);
            match taken.map_err(|malformed| format!("what it writes is no frame: {malformed}"))? {
                Some(Frame::Notice(notice)) => match notice.code {
                    NoticeCode::Unreadable => {
                        return Err(prefixed("cannot read its own state back", &notice.text));
                    }
                    NoticeCode::Dropped => self.tried.dropped = Some(notice.text),
                    NoticeCode::Well | NoticeCode::Other(_) => {}
                },
                // Nobody asks for one.
                Some(Frame::Digested(_)) => {}
                Some(Frame::Farewell(reason)) => return Err(format!("it says: {reason}")),
                taken => return Ok(taken),
            }
        }
    }

    fn read(&mut self, stream: &UnixStream) -> Result<(), String> {
        let mut room = [0; READ];
        match recv(stream, &mut room[..], RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Err(self.fate()),
            Ok((_, length)) => {
                self.input.extend_from_slice(&room[..length]);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(format!("its connection is broken: {error}")),
        }
    }

    /// Writes what the socket takes.
    fn write(&mut self, stream: &UnixStream) -> Result<(), String> {
        while !self.output.is_empty() {
            match send(stream, &self.output, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => self.output.advance(count),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(self.fate()),
            }
        }
        Ok(())
    }

    /// Waits for the descriptor, and reads the program's output meanwhile; true if the descriptor is
    /// ready.
    fn wait(
        &mut self,
        fd: std::os::fd::BorrowedFd<'_>,
        flags: PollFlags,
        deadline: Time,
        late: &dyn Fn() -> String,
    ) -> Result<bool, String> {
        let now = monotonic();
        if now >= deadline {
            return Err(late());
        }
        let mut fds = vec![PollFd::from_borrowed_fd(fd, flags)];
        fds.push(PollFd::from_borrowed_fd(self.process.end(), PollFlags::IN));
        let pipes: Vec<_> = self.process.pipes.iter().filter_map(|pipe| pipe.fd(now)).collect();
        fds.extend(pipes.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let rests = self.process.pipes.iter().map(|pipe| pipe.next_timeout(now));
        let due = rests.fold(deadline, Time::min);
        if poll(&mut fds, Some(&clock::timeout(now, due))).is_err() {
            return Ok(false);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let group = self.config.group.clone();
        for pipe in &mut self.process.pipes {
            pipe.read(monotonic(), &mut self.flow, |line| log(&group, line));
        }
        match (ready[0], ready[1]) {
            // Its words before its end are read first.
            (true, _) => Ok(true),
            (false, true) => Err(self.fate()),
            (false, false) => Ok(false),
        }
    }

    /// How it has ended, with the last line of its output: that has the reason as a rule.
    fn fate(&mut self) -> String {
        let timeout = clock::timeout(monotonic(), monotonic() + END_WITHIN);
        let mut fds = [PollFd::from_borrowed_fd(self.process.end(), PollFlags::IN)];
        let ended = poll(&mut fds, Some(&timeout)).is_ok() && !fds[0].revents().is_empty();
        let how = match ended {
            true => format!("it ended ({})", self.process.wait()),
            false => "it has closed its connection".into(),
        };
        let group = self.config.group.clone();
        for pipe in &mut self.process.pipes {
            pipe.finish(monotonic(), &mut self.flow, |line| log(&group, line));
        }
        match self.flow.last().filter(|line| !line.trim().is_empty()).last() {
            Some(line) => format!("{how}: {}", line.trim()),
            None => how,
        }
    }
}

/// The reason, with what it is about before it unless it says so itself.
fn prefixed(what: &str, reason: &str) -> String {
    match reason.starts_with(what) {
        true => reason.into(),
        false => format!("{what}: {reason}"),
    }
}

fn log(group: &str, line: &str) {
    tracing::info!(target: "program", group, trial = true, "{line}");
}
