//! The daemon: connections, and the reserves that they hold.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use os::unix_socket::{Unheard, listen_at};
use qos::Planted;
use qos::daemon::{Connection, Daemon, Denied, Held};
use qos::host::{Host, Platform};
use rustix::net::sockopt::socket_peercred;

use crate::enforce::{Enforcer, Limiters, Subject};
use crate::message::{Answer, Enforced, MAX_LINE, Request, Shown, Tree, Wanted};
use crate::owner::{Peer, Target};

/// Connections at a time: a host has some nodes, and people look at it.
const MAX_CONNECTIONS: usize = 256;

/// How long the listener rests where the system has no descriptors left.
const REST: Duration = Duration::from_millis(500);

/// After which the owners of reserves have asked a daemon that has started again.
const SWEEP: Duration = Duration::from_secs(5);

/// Why the daemon cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another daemon serves the socket.
    #[error("{} is served already: one daemon serves a host; stop the other, or name another socket", .0.display())]
    Served(PathBuf),
    /// A file of another kind has the name.
    #[error("{}: a file that is no socket has this name; remove it, or name another socket", .0.display())]
    NotASocket(PathBuf),
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
    daemon: Daemon<Subject>,
    kernel: Enforcer,
    /// Microseconds that the threads of each path had used when its reserve was made.
    before_us: BTreeMap<String, u64>,
    connections: usize,
    next: u64,
}

impl Server {
    /// Makes the socket, which users of this process's group may use. Groups that an earlier daemon
    /// has left empty are removed.
    ///
    /// # Errors
    /// The socket cannot be made, or is served.
    pub fn open(path: &Path, host: Host, limiters: Limiters) -> Result<Server, OpenError> {
        let listener = listen_at(path, 0o660).map_err(|why| match why {
            Unheard::NotASocket => OpenError::NotASocket(path.into()),
            Unheard::Served => OpenError::Served(path.into()),
            Unheard::Io(source) => OpenError::Socket { path: path.into(), source },
        })?;
        limiters.groups.clean();
        let state = State {
            daemon: Daemon::new(host, Planted::default()),
            kernel: Enforcer { limiters },
            before_us: BTreeMap::new(),
            connections: 0,
            next: 0,
        };
        Ok(Server { listener, state: Arc::new(Mutex::new(state)) })
    }

    /// Serves for good.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn serve(&self) -> io::Result<()> {
        let state = self.state.clone();
        thread::Builder::new().name("steadfast sweeps".into()).spawn(move || {
            thread::sleep(SWEEP);
            lock(&state).kernel.limiters.networks.sweep();
        })?;
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely. The pause keeps the thread from spinning.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    thread::sleep(REST);
                    continue;
                }
            };
            let state = self.state.clone();
            let mut locked = lock(&state);
            if locked.connections >= MAX_CONNECTIONS {
                tracing::warn!("{MAX_CONNECTIONS} connections are open, the limit: one is refused");
                continue;
            }
            locked.connections += 1;
            locked.next += 1;
            let number = Connection(locked.next);
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

fn converse(state: &Mutex<State>, number: Connection, stream: UnixStream) -> io::Result<()> {
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
    fn answer(&mut self, by: Connection, peer: Peer, request: Request) -> Answer {
        match request {
            Request::Reserve(wanted) => self.reserve(by, peer, &wanted).unwrap_or_else(refused),
            Request::Release { path } => {
                if self.daemon.release(&mut self.kernel, by, &path) {
                    tracing::info!(path, "released");
                    return Answer::Released;
                }
                refused(format!("this connection holds no reserve {path}"))
            }
            Request::Show => Answer::Tree(self.tree()),
        }
    }

    fn reserve(&mut self, by: Connection, peer: Peer, wanted: &Wanted) -> Result<Answer, String> {
        let target = |id: Option<i32>| id.map(|id| Target::of(id, peer)).transpose();
        let subject = Subject { thread: target(wanted.thread)?, process: target(wanted.process)? };
        let (path, request) = (&wanted.path, (subject, wanted.ask()));
        Ok(match self.daemon.reserve(&mut self.kernel, (by, peer.user), path, request) {
            Ok(held) => {
                let enforced = Enforced::from(held.mechanism);
                tracing::info!(path, ?enforced, process = peer.process, "reserved");
                self.before_us.insert(path.clone(), subject.used_us());
                Answer::Reserved { cpu: enforced, degraded: held.degraded.clone() }
            }
            Err(Denied { why, full }) => {
                tracing::info!(path, why, process = peer.process, "refused");
                Answer::Refused { error: why, full }
            }
        })
    }

    /// A connection has ended, and its reserves with it.
    fn leave(&mut self, by: Connection) {
        self.connections -= 1;
        self.daemon.leave(&mut self.kernel, by);
        let held: BTreeSet<&str> = self.daemon.held().map(|(path, _)| path).collect();
        self.before_us.retain(|path, _| held.contains(path.as_str()));
    }

    fn tree(&self) -> Tree {
        let capacity = self.daemon.host().capacity();
        let Platform { deadline, fifo, memory, devices, networks } = self.daemon.host().platform();
        let permitted = [
            ("deadline", deadline),
            ("fifo", fifo > 0),
            ("memory", memory),
            ("devices", devices),
            ("networks", networks),
        ];
        let shown = |(path, held): (&str, &Held<Subject>)| {
            let id = |target: Option<Target>| target.map(|target| target.id);
            let before_us = self.before_us.get(path).copied().unwrap_or_default();
            Shown {
                wanted: Wanted::of(
                    path,
                    id(held.target.thread),
                    id(held.target.process),
                    &held.ask,
                ),
                enforced: held.mechanism.into(),
                used_us: held.target.used_us().saturating_sub(before_us),
                degraded: held.degraded.clone(),
            }
        };
        Tree {
            processors: capacity.processors,
            cpu: capacity.most.0 * u64::from(capacity.processors),
            memory: capacity.memory,
            permitted: permitted.iter().filter(|it| it.1).map(|it| it.0.into()).collect(),
            reserves: self.daemon.held().map(shown).collect(),
        }
    }
}
