//! The node's side of the admin protocol: threads of its own, one a connection, so that nothing here
//! can hold up the data plane.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use config::ProgramConfig;
use manager::book::{Answer, Command, Deployment};
use registry::{Address, Ask};
use serde::Serialize;
use wire::Duration;
use wire::limits::{MAX_ADMIN_CONNECTIONS, MAX_ADMIN_REQUEST};

use super::stream::{Closer, Stream, Tls, listen_privately};
use super::{
    DeployAnswer, DoneAnswer, KeyAnswer, MoveAnswer, PoisonedAnswer, Refused, Request,
    RestyleAnswer, StateAnswer, StopAnswer, digest, hex,
};
use crate::control::Control;
use crate::error::StartError;
use crate::events::{EventRecord, Interest, Stamped};
use crate::sockets::gate::{Gate, Guest, Manners};

/// How often a connection that follows events is looked at: its other end may have gone.
const GONE_CHECK: Duration = Duration::from_millis(500);

/// How long an answer waits for something new, at most.
const LONGEST_WATCH: Duration = Duration::from_secs(60);

/// How long a stop waits for what is being written.
const LAST_WORDS: Duration = Duration::from_millis(200);

type Connections = Arc<Mutex<BTreeMap<u64, Closer>>>;

/// The running server.
#[derive(Debug)]
pub(crate) struct Admin {
    path: Option<PathBuf>,
    gate: Option<Gate>,
    stop: Arc<AtomicBool>,
    connections: Connections,
    /// Ends when the last of the server's threads does.
    running: Receiver<()>,
}

impl Admin {
    /// Serves at a Unix socket, at a TCP port, at both, or nowhere.
    pub fn start(
        path: Option<&Path>,
        port: Option<(SocketAddr, tls::Server)>,
        control: Arc<Control>,
    ) -> Result<Admin, StartError> {
        let (alive, running) = channel();
        let server = Server {
            control: control.clone(),
            stop: Arc::default(),
            connections: Connections::default(),
            next: Arc::default(),
            uploads: Arc::default(),
            _running: alive,
        };
        let (stop, connections) = (server.stop.clone(), server.connections.clone());
        let gate = match port {
            Some((address, tls)) => Some(server.clone().open_gate(address, tls)?),
            None => None,
        };
        if let Some(gate) = &gate {
            // The first and only time.
            let _ = control.admin_tally.set(gate.tally());
        }
        if let Some(path) = path {
            let wrap = |source| StartError::Admin { path: path.into(), source };
            remove_left_over(path)?;
            // Whoever may run the node may look into it, nobody else.
            let listener = listen_privately(path).map_err(wrap)?;
            thread::Builder::new()
                .name("steadfast admin".into())
                .spawn(move || server.accept(&listener))
                .map_err(wrap)?;
        }
        Ok(Admin { path: path.map(PathBuf::from), gate, stop, connections, running })
    }

    /// Where the port is, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.gate.as_ref().map(Gate::address)
    }

    fn shut_connections(&self, how: Shutdown) {
        lock(&self.connections).values().for_each(|connection| connection.shutdown(how));
    }
}

/// Ends all connections and removes the socket: also of a node that could not be started. When the
/// data plane has ended before, whoever follows the events gets the last ones.
impl Drop for Admin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        drop(self.gate.take());
        if let Some(path) = &self.path {
            // The thread waits for a connection: this is one.
            let _ = UnixStream::connect(path);
        }
        self.shut_connections(Shutdown::Read);
        // Ended by the last thread's end, unless somebody does not read what was asked for.
        let _ = self.running.recv_timeout(LAST_WORDS);
        self.shut_connections(Shutdown::Both);
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

/// A node that was killed leaves its socket file; one that lives answers there.
fn remove_left_over(path: &Path) -> Result<(), StartError> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.file_type().is_socket() => {}
        Ok(_) => return Err(StartError::AdminNotASocket(path.into())),
        // Binding says what is wrong, if it is not just that nothing is there.
        Err(_) => return Ok(()),
    }
    if UnixStream::connect(path).is_ok() {
        return Err(StartError::AdminTaken(path.into()));
    }
    fs::remove_file(path).map_err(|source| StartError::Admin { path: path.into(), source })
}

fn lock(connections: &Connections) -> std::sync::MutexGuard<'_, BTreeMap<u64, Closer>> {
    // No code that can panic runs while it is held.
    connections.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[derive(Clone)]
pub(super) struct Server {
    pub(super) control: Arc<Control>,
    stop: Arc<AtomicBool>,
    connections: Connections,
    /// The next connection's number.
    next: Arc<AtomicU64>,
    /// One file at a time is taken in.
    pub(super) uploads: Arc<Mutex<()>>,
    /// Dropped when the thread ends.
    _running: Sender<()>,
}

impl Server {
    fn accept(self, listener: &UnixListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // Out of descriptors, most likely. The pause keeps the thread from spinning.
                Err(_) => {
                    thread::sleep(GONE_CHECK);
                    continue;
                }
            };
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            self.admit(Stream::Unix(stream));
        }
    }

    /// Takes in, from other hosts too, those whose certificate is an administrator's.
    fn open_gate(self, address: SocketAddr, tls: tls::Server) -> Result<Gate, StartError> {
        let admit = move |guest: Guest| {
            let Guest { stream, records, input, identity } = guest;
            tracing::info!(peer = ?stream.peer_addr().ok(), %identity, "an administrator has come in");
            if let Ok(stream) = Tls::new(stream, records, input) {
                self.admit(Stream::Tls(stream));
            }
            true
        };
        let farewell = |reason: &str| line(&Refused { error: reason.into() }).into();
        let manners = Manners { admit: Box::new(admit), farewell };
        TcpListener::bind(address)
            .and_then(|listener| Gate::open(listener, tls, manners))
            .map_err(|source| StartError::Listen { what: "administrators (TCP)", address, source })
    }

    fn admit(&self, mut stream: Stream) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut connections = lock(&self.connections);
        if connections.len() >= MAX_ADMIN_CONNECTIONS {
            let error = format!("{MAX_ADMIN_CONNECTIONS} admin connections, the limit: close one");
            let _ = answer(&mut stream, &Refused { error });
            return;
        }
        let Ok(kept) = stream.closer() else { return };
        connections.insert(number, kept);
        drop(connections);
        let server = self.clone();
        let body = move || {
            // An error is the other end's going: nothing is owed to it.
            let _ = server.serve(stream);
            lock(&server.connections).remove(&number);
        };
        if thread::Builder::new().name("admin connection".into()).spawn(body).is_err() {
            lock(&self.connections).remove(&number);
        }
    }

    fn serve(&self, stream: Stream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length =
                (&mut reader).take(MAX_ADMIN_REQUEST as u64 + 1).read_until(b'\n', &mut line)?;
            if length == 0 || self.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            self.control.admin_requests.fetch_add(1, Ordering::Relaxed);
            if length > MAX_ADMIN_REQUEST {
                self.refuse(reader.get_mut(), "the request is too long")?;
                return Ok(());
            }
            match serde_json::from_slice(&line) {
                Ok(Request::Restore { group, bytes, replace }) => {
                    self.restore(&mut reader, (&group, bytes, replace))?;
                }
                Ok(request) => self.answer(reader.get_mut(), request)?,
                Err(error) => self.refuse(reader.get_mut(), &error.to_string())?,
            }
        }
    }

    fn refuse(&self, stream: &mut Stream, reason: &str) -> io::Result<()> {
        self.control.admin_malformed.fetch_add(1, Ordering::Relaxed);
        let error = format!(
            "{reason}; one JSON request a line: {{\"status\":{{}}}}, \
             {{\"state\":{{\"group\":\"...\"}}}}, {{\"move\":{{...}}}}, {{\"restyle\":{{...}}}}, {{\"bench\":{{...}}}}, {{\"run\":{{...}}}}, \
             {{\"stop-program\":{{\"group\":\"...\"}}}} or {{\"events\":{{\"follow\":true}}}}"
        );
        answer(stream, &Refused { error })
    }

    fn answer(&self, stream: &mut Stream, request: Request) -> io::Result<()> {
        let control = &self.control;
        match request {
            Request::Status {} => answer(stream, &control.status()),
            Request::State { group, bytes } => match control.state(&group) {
                Ok(state) => {
                    let state_hex = bytes.then(|| hex(&state));
                    let (node, digest) = (control.me.node, digest(&state));
                    let bytes = state.len();
                    answer(stream, &StateAnswer { node, group, bytes, digest, state_hex })
                }
                Err(error) => answer(stream, &Refused { error: error.to_string() }),
            },
            Request::Poisoned { group } => match control.poisoned(&group) {
                Ok(calls) => {
                    answer(stream, &PoisonedAnswer { node: control.me.node, group, calls })
                }
                Err(error) => answer(stream, &Refused { error: error.to_string() }),
            },
            Request::Events { follow, calls } => self.events(stream, follow, calls),
            Request::Move { group, to } => match control.move_primary(&group, to) {
                Ok(view) => answer(stream, &MoveAnswer { group, primary: to, view }),
                Err(error) => answer(stream, &Refused { error: error.to_string() }),
            },
            Request::Restyle { group, style } => match control.restyle(&group, style) {
                Ok(view) => answer(stream, &RestyleAnswer { group, style, view }),
                Err(error) => answer(stream, &Refused { error: error.to_string() }),
            },
            Request::Save { group } => self.save(stream, &group),
            Request::Restore { .. } => unreachable!("what follows it is read before"),
            Request::Discard { group } => self.discard(stream, &group),
            Request::Key { ask } => match control.key(ask) {
                Ok(key) => answer(stream, &KeyAnswer { key }),
                Err(error) => answer(stream, &Refused { error }),
            },
            Request::Run(program) => self.run(stream, program),
            Request::StopProgram { group } => {
                match control.programs().and_then(|programs| programs.stop(&group)) {
                    Ok(()) => answer(stream, &StopAnswer { stopped: group }),
                    Err(error) => answer(stream, &Refused { error: error.to_string() }),
                }
            }
            Request::Deploy { deployment, dry } => self.deploy(stream, *deployment, dry),
            Request::Withdraw { group } => self.say(stream, Command::Withdraw { group }),
            Request::Drain { node } => self.say(stream, Command::Drain { node }),
            Request::Return { node } => self.say(stream, Command::Return { node }),
            Request::Deployments {} => match control.deployments() {
                Ok(deployments) => answer(stream, &deployments),
                Err(error) => answer(stream, &Refused { error }),
            },
            Request::Registry { name, since, wait_ms } => {
                self.registry(stream, &Ask { name, since }, wait_ms)
            }
            Request::Bind { name, address, terms } => {
                let seen = control.registry().map(|shelf| shelf.registry().epoch());
                let terms = terms.unwrap_or(control.terms);
                let (address, keeper) = (Address::At(address), Some(control.me));
                let bind = |seen| {
                    control.register(registry::Command::Bind { name, address, keeper, terms, seen })
                };
                self.tell_answer(stream, seen.and_then(bind))
            }
            Request::Unbind { name, address } => {
                let unbind = registry::Command::Unbind { name, address, epoch: None };
                self.tell_answer(stream, control.register(unbind))
            }
            Request::Bench(ask) => self.bench(stream, &ask),
        }
    }

    /// Answers when there is something new, or the patience ends, or nobody is there any more.
    fn registry(&self, stream: &mut Stream, ask: &Ask, wait_ms: u32) -> io::Result<()> {
        let until = Instant::now() + Duration::from_millis(wait_ms.into()).min(LONGEST_WATCH);
        if let (Some(since), Ok(shelf)) = (ask.since, self.control.registry()) {
            loop {
                let left = until.saturating_duration_since(Instant::now()).min(GONE_CHECK);
                if !shelf.wait_since(since, left) || left.is_zero() || stream.is_gone() {
                    break;
                }
            }
        }
        self.tell_answer(stream, self.control.look_up(ask))
    }

    fn tell_answer(
        &self,
        stream: &mut Stream,
        done: Result<impl Serialize, String>,
    ) -> io::Result<()> {
        match done {
            Ok(done) => answer(stream, &done),
            Err(error) => answer(stream, &Refused { error }),
        }
    }

    fn run(&self, stream: &mut Stream, program: ProgramConfig) -> io::Result<()> {
        if matches!(stream, Stream::Tls(_)) {
            let error =
                "programs are run at the node's own host only, by its admin socket: who may do so \
                         can do all that the node's user can there"
                    .into();
            return answer(stream, &Refused { error });
        }
        match self.control.programs().and_then(|programs| programs.run(program)) {
            Ok(status) => answer(stream, &status),
            Err(error) => answer(stream, &Refused { error: error.to_string() }),
        }
    }

    fn deploy(&self, stream: &mut Stream, deployment: Deployment, dry: bool) -> io::Result<()> {
        if matches!(stream, Stream::Tls(_)) {
            let error = "services are deployed at a node's own host only, by its admin socket: who may do so can do all \
                         that the nodes' users can on their hosts"
                .into();
            return answer(stream, &Refused { error });
        }
        let group = deployment.group.clone();
        let control = &self.control;
        let done = control.preview(deployment.clone()).and_then(|seats| {
            if !dry {
                control.command(Command::Deploy(deployment))?;
            }
            Ok(DeployAnswer { group, seats })
        });
        match done {
            Ok(done) => answer(stream, &done),
            Err(error) => answer(stream, &Refused { error }),
        }
    }

    fn say(&self, stream: &mut Stream, command: Command) -> io::Result<()> {
        match self.control.command(command) {
            Ok(said) => answer(stream, &DoneAnswer { done: said == Answer::Done }),
            Err(error) => answer(stream, &Refused { error }),
        }
    }

    fn events(&self, stream: &mut Stream, follow: bool, calls: bool) -> io::Result<()> {
        let interest = if calls { Interest::All } else { Interest::Membership };
        let (past, events) = self.control.subscribe(interest);
        for stamped in past {
            self.tell(stream, &stamped)?;
        }
        if !follow {
            return stream.shutdown();
        }
        loop {
            match events.recv_timeout(GONE_CHECK) {
                Ok(stamped) => self.tell(stream, &stamped)?,
                Err(RecvTimeoutError::Timeout) if !stream.is_gone() => {}
                Err(_) => return stream.shutdown(),
            }
        }
    }

    fn tell(&self, stream: &mut Stream, (time, event): &Stamped) -> io::Result<()> {
        answer(stream, &EventRecord::new(*time, self.control.me.node, event))
    }
}

pub(super) fn answer(stream: &mut Stream, value: &impl Serialize) -> io::Result<()> {
    stream.write_all(&line(value))
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Our own types have a JSON form: no map has keys that are not texts.
    let mut line = serde_json::to_vec(value).expect("an answer has a JSON form");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_dropped_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.sock");
        for _ in 0..2 {
            let (control, _orders) = Control::without_a_plane();
            let admin = Admin::start(Some(&path), None, Arc::new(control)).unwrap();
            assert!(UnixStream::connect(&path).is_ok());
            drop(admin);
            assert!(!path.exists(), "the next one finds its place free");
        }
    }
}
