//! The daemon: connections, and the reserves that they hold.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use qos::host::{Host, Mechanism, Platform};
use rustix::net::sockopt::socket_peercred;

use crate::enforce::{self, Unenforced};
use crate::groups::Groups;
use crate::message::{Answer, Enforced, MAX_LINE, Request, Shown, Tree, Wanted};
use crate::owner::{Peer, Target};

/// Connections at a time: a host has some nodes, and people look at it.
const MAX_CONNECTIONS: usize = 256;

/// Why the daemon cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another daemon serves the socket.
    #[error("{} is served already: one daemon serves a host; stop the other, or name another socket", .0.display())]
    Served(PathBuf),
    /// The socket cannot be made.
    #[error("{}: {source}; name a socket in a folder that this user may write", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// The daemon.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    host: Host,
    groups: Groups,
    held: BTreeMap<String, Held>,
    connections: usize,
    next: u64,
}

/// A reserve in force.
#[derive(Debug)]
struct Held {
    /// The connection that holds it.
    by: u64,
    peer: Peer,
    wanted: Wanted,
    thread: Option<Target>,
    process: Option<Target>,
    enforced: Enforced,
    degraded: Vec<String>,
    /// What the threads had used when the reserve was made.
    before_us: u64,
}

impl Server {
    /// Makes the socket, which users of this process's group may use. Groups that an earlier daemon
    /// has left empty are removed.
    ///
    /// # Errors
    /// The socket cannot be made, or is served.
    pub fn open(path: &Path, host: Host, groups: Groups) -> Result<Server, OpenError> {
        let failed = |source| OpenError::Socket { path: path.into(), source };
        if UnixStream::connect(path).is_ok() {
            return Err(OpenError::Served(path.into()));
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        fs::set_permissions(path, Permissions::from_mode(0o660)).map_err(failed)?;
        groups.clean();
        let held = BTreeMap::new();
        let state = State { host, groups, held, connections: 0, next: 0 };
        Ok(Server { listener, state: Arc::new(Mutex::new(state)) })
    }

    /// Serves until the listener fails.
    ///
    /// # Errors
    /// The system's reason.
    pub fn serve(&self) -> io::Result<()> {
        loop {
            let (stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let state = self.state.clone();
            let mut locked = lock(&state);
            if locked.connections >= MAX_CONNECTIONS {
                tracing::warn!("{MAX_CONNECTIONS} connections are open, the limit: one is refused");
                continue;
            }
            locked.connections += 1;
            locked.next += 1;
            let number = locked.next;
            drop(locked);
            let its = state.clone();
            let body = move || {
                if let Err(error) = converse(&its, number, stream) {
                    tracing::debug!(%error, "a connection has ended");
                }
                lock(&its).leave(number);
            };
            if thread::Builder::new().name("steadfast qos".into()).spawn(body).is_err() {
                lock(&state).leave(number);
            }
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Each change is whole before anything that could panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn converse(state: &Mutex<State>, number: u64, stream: UnixStream) -> io::Result<()> {
    let credentials = socket_peercred(stream.as_fd())?;
    let process = credentials.pid.as_raw_nonzero().get();
    let peer = Peer { process, user: credentials.uid.as_raw() };
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        if lines.by_ref().take(limit).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => lock(state).answer(number, peer, request),
            Err(error) => refused(format!("this is no request ({error}): use the same version")),
        };
        let whole = line.ends_with('\n');
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        out.write_all(&line)?;
        if !whole {
            return Ok(());
        }
    }
}

fn refused(error: impl Into<String>) -> Answer {
    Answer::Refused { error: error.into(), full: false }
}

impl State {
    fn answer(&mut self, by: u64, peer: Peer, request: Request) -> Answer {
        match request {
            Request::Reserve(wanted) => self.reserve(by, peer, wanted),
            Request::Release { path } => match self.held.get(&path) {
                Some(held) if held.by == by => {
                    self.release(&path);
                    Answer::Released
                }
                _ => refused(format!("this connection holds no reserve {path}")),
            },
            Request::Show => Answer::Tree(self.tree()),
        }
    }

    fn reserve(&mut self, by: u64, peer: Peer, wanted: Wanted) -> Answer {
        let path = wanted.path.clone();
        let before = self.held.get(&path);
        if let Some(held) = before
            && held.by != by
            && held.peer.user != peer.user
        {
            return refused(format!("{path} is held by process {}", held.peer.process));
        }
        let target = |id: Option<i32>| id.map(|id| Target::of(id, peer)).transpose();
        let (thread, process) = match (target(wanted.thread), target(wanted.process)) {
            (Ok(thread), Ok(process)) => (thread, process),
            (Err(error), _) | (_, Err(error)) => return refused(error),
        };
        let old = before.map(|held| held.wanted.ask());
        let admitted = match self.host.admit(&path, wanted.ask()) {
            Ok(admitted) => admitted.clone(),
            Err(error) => {
                let full =
                    !matches!(error, qos::host::Refusal::Path(_) | qos::host::Refusal::Impossible);
                return Answer::Refused { error: error.to_string(), full };
            }
        };
        if let Err(unenforced) = enforce::enforce(&admitted, thread, process) {
            let busy = self.host.refused_by_kernel(&path);
            match old {
                // There was room for it a moment ago, and the kernel still has it.
                Some(old) => drop(self.host.admit(&path, old)),
                None => enforce::release(thread, process),
            }
            return match (unenforced, busy) {
                (Unenforced::Busy, Some(busy)) => {
                    Answer::Refused { error: busy.to_string(), full: true }
                }
                (Unenforced::Refused(error), _) => refused(error),
                (Unenforced::Busy, None) => refused("the kernel has no room for it"),
            };
        }
        let mut degraded = self.groups.apply(&wanted);
        if admitted.cpu == Mechanism::Degraded {
            degraded.push(
                "cpu: neither SCHED_DEADLINE nor SCHED_FIFO is permitted to the daemon: give it \
                 CAP_SYS_NICE"
                    .into(),
            );
        }
        let enforced = Enforced::from(admitted.cpu);
        let before_us = used(thread, process);
        tracing::info!(path, ?enforced, process = peer.process, "reserved");
        let answer = Answer::Reserved { cpu: enforced, degraded: degraded.clone() };
        let held = Held { by, peer, wanted, thread, process, enforced, degraded, before_us };
        let before = self.held.insert(path, held);
        if let Some(old) = before.filter(|old| (old.thread, old.process) != (thread, process)) {
            enforce::release(old.thread, old.process);
        }
        answer
    }

    fn release(&mut self, path: &str) {
        let Some(held) = self.held.remove(path) else { return };
        self.host.release(path);
        enforce::release(held.thread, held.process);
        self.groups.remove(path);
        tracing::info!(path, "released");
    }

    /// A connection has ended, and its reserves with it.
    fn leave(&mut self, by: u64) {
        self.connections -= 1;
        let paths: Vec<String> =
            self.held.iter().filter(|(_, it)| it.by == by).map(|(path, _)| path.clone()).collect();
        paths.iter().for_each(|path| self.release(path));
    }

    fn tree(&self) -> Tree {
        let capacity = self.host.capacity();
        let Platform { deadline, fifo, memory, devices } = self.host.platform();
        let permitted =
            [("deadline", deadline), ("fifo", fifo > 0), ("memory", memory), ("devices", devices)];
        let shown = |held: &Held| Shown {
            wanted: held.wanted.clone(),
            enforced: held.enforced,
            used_us: used(held.thread, held.process).saturating_sub(held.before_us),
            degraded: held.degraded.clone(),
        };
        Tree {
            processors: capacity.processors,
            cpu: capacity.most.0 * u64::from(capacity.processors),
            memory: capacity.memory,
            permitted: permitted.iter().filter(|it| it.1).map(|it| it.0.into()).collect(),
            reserves: self.held.values().map(shown).collect(),
        }
    }
}

fn used(thread: Option<Target>, process: Option<Target>) -> u64 {
    match (thread, process) {
        (Some(thread), _) => Target::used_us(thread.id),
        (None, Some(process)) => process.threads().into_iter().map(Target::used_us).sum(),
        (None, None) => 0,
    }
}
