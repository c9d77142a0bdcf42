//! The node's side of the admin protocol: threads of its own, one a connection, so that nothing
//! here can hold up the data plane.
//!
//! - here: where connections come in, and how they end
//! - `server/handler.rs`: the node, as it is asked
//! - `server/audit.rs`: who asked for what
//! - `server/requests.rs`: what is answered; `server/backup.rs`: states that people keep;
//!   `server/bench.rs`: benchmarks

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::{Bytes, BytesMut};
use os::clock::wall_clock;
use os::threads;
use os::unix_socket::{Unheard, listen_at};
use rustix::net::sockopt::socket_peercred;
use tls::{Denied, Records};
use wire::Duration;
use wire::limits::{MAX_ADMIN_CONNECTIONS, MAX_ADMIN_REQUEST};

use crate::message::{Refused, Request};
use crate::stream::{Closer, Stream, Tls};

mod answer;
mod audit;
mod backup;
mod bench;
mod handler;
mod requests;

pub use audit::{AuditEntry, AuditLog, AuditStep};
pub use handler::{Done, Handler};

/// How long the listener rests where the system has no descriptors left.
const REST: Duration = Duration::from_millis(500);

/// How long a stop waits for what is being written.
const LAST_WORDS: Duration = Duration::from_millis(200);

type Closers = Arc<Mutex<Doors>>;

/// The ways to end the connections, and the certificates whose connections end.
#[derive(Debug, Default)]
struct Doors {
    closers: BTreeMap<u64, Closer>,
    denied: Arc<Denied>,
}

/// The admin socket cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The system refuses it.
    #[error(
        "admin socket {}: {source}; its directory must exist and be writable, and its path have at \
         most 107 bytes", path.display()
    )]
    Io {
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Something else has its name.
    #[error(
        "admin socket {}: a file that is no socket has this name; remove it, or choose another path",
        .0.display()
    )]
    NotASocket(PathBuf),
    /// Another process serves it.
    #[error("admin socket {} is served by another process: stop it, or choose another path", .0.display())]
    Taken(PathBuf),
}

/// The last line to a client that is refused.
pub fn farewell(reason: &str) -> Bytes {
    answer::line(&Refused { error: reason.into() }).into()
}

/// The running server.
#[derive(Debug)]
pub struct Server {
    path: Option<PathBuf>,
    /// Given away when the server ends.
    entrance: Option<Entrance>,
    stop: Arc<AtomicBool>,
    closers: Closers,
    /// Ends when the last of the server's threads does.
    running: Receiver<()>,
}

impl Server {
    /// Serves nobody yet.
    pub fn new(node: Arc<dyn Handler>) -> Server {
        let (alive, running) = channel();
        let entrance = Entrance {
            node,
            stop: Arc::default(),
            closers: Closers::default(),
            next: Arc::default(),
            uploads: Arc::default(),
            _running: alive,
        };
        let (stop, closers) = (entrance.stop.clone(), entrance.closers.clone());
        Server { path: None, entrance: Some(entrance), stop, closers, running }
    }

    /// Where connections of other kinds are let in.
    pub fn entrance(&self) -> Option<Entrance> {
        self.entrance.clone()
    }

    /// Serves at a Unix socket, too.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn listen(&mut self, path: &Path) -> Result<(), ServeError> {
        let Some(entrance) = self.entrance.clone() else { return Ok(()) };
        let wrap = |source| ServeError::Io { path: path.into(), source };
        // Every user who may run the node may connect here, and nobody else.
        let listener = listen_at(path, 0o600).map_err(|why| match why {
            Unheard::NotASocket => ServeError::NotASocket(path.into()),
            Unheard::Served => ServeError::Taken(path.into()),
            Unheard::Io(source) => wrap(source),
        })?;
        threads::spawn("steadfast admin", move || entrance.accept(&listener)).map_err(wrap)?;
        self.path = Some(path.into());
        Ok(())
    }

    /// Those who are connected.
    pub fn connections(&self) -> Connections {
        Connections(self.closers.clone())
    }

    fn shut_connections(&self, how: Shutdown) {
        lock(&self.closers).closers.values().for_each(|connection| connection.shutdown(how));
    }
}

/// Those who are connected.
#[derive(Clone, Debug)]
pub struct Connections(Closers);

impl Connections {
    /// Ends the connections of those whose certificates are denied: these, and those on their way
    /// in.
    pub fn end_denied(&self, denied: Arc<Denied>) {
        let mut doors = lock(&self.0);
        let out = doors.closers.values().filter(|closer| closer.is_denied(&denied));
        out.for_each(|closer| closer.shutdown(Shutdown::Both));
        doors.denied = denied;
    }
}

/// Ends all connections and removes the socket: also of a node that could not be started. If the
/// data plane has ended before, subscribers get the last events.
impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.entrance = None;
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

fn lock(closers: &Closers) -> MutexGuard<'_, Doors> {
    // No code that can panic runs while it is held.
    closers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where connections come in.
#[derive(Clone)]
pub struct Entrance {
    node: Arc<dyn Handler>,
    stop: Arc<AtomicBool>,
    closers: Closers,
    /// The next connection's number.
    next: Arc<AtomicU64>,
    /// One file at a time is taken in.
    uploads: Arc<Mutex<()>>,
    /// Dropped when the thread ends.
    _running: Sender<()>,
}

impl std::fmt::Debug for Entrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrance").field("connections", &lock(&self.closers).closers.len()).finish()
    }
}

impl Entrance {
    /// Serves an administrator who has shaken hands by TLS. `plain`: what came behind the
    /// handshake.
    pub fn admit_tls(&self, socket: TcpStream, records: Box<Records>, plain: BytesMut) {
        let from = socket.peer_addr().map_or("nowhere".into(), |address| address.to_string());
        let Some(peer) = records.peer() else { return };
        let identity = peer.identity;
        if let Ok(stream) = Tls::new(socket, records, plain) {
            self.admit(Stream::Tls(stream), format!("{} from {from}", identity.label()));
        }
    }

    fn accept(self, listener: &UnixListener) {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // Out of descriptors, most likely. The pause keeps the thread from spinning.
                Err(_) => {
                    thread::sleep(REST);
                    continue;
                }
            };
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let who = match socket_peercred(&stream) {
                Ok(peer) => format!("uid {}", peer.uid.as_raw()),
                Err(_) => "a user of this host".into(),
            };
            self.admit(Stream::Unix(stream), who);
        }
    }

    fn admit(&self, mut stream: Stream, who: String) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut doors = lock(&self.closers);
        if doors.closers.len() >= MAX_ADMIN_CONNECTIONS {
            let error = format!("{MAX_ADMIN_CONNECTIONS} admin connections, the limit: close one");
            let _ = answer::refuse(&mut stream, error);
            return;
        }
        let Ok(closer) = stream.closer() else { return };
        if closer.is_denied(&doors.denied) {
            return closer.shutdown(Shutdown::Both);
        }
        doors.closers.insert(number, closer);
        drop(doors);
        let entrance = self.clone();
        let body = move || {
            // An error is the other end's going: nothing is owed to it.
            let _ = entrance.serve(stream, number, &who);
            lock(&entrance.closers).closers.remove(&number);
        };
        if threads::spawn("admin connection", body).is_err() {
            lock(&self.closers).closers.remove(&number);
        }
    }

    fn serve(&self, stream: Stream, connection: u64, who: &str) -> io::Result<()> {
        let note = |step| {
            let (time, who) = (wall_clock(), who.into());
            self.node.audit(&AuditEntry { time, connection, who, step });
        };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length =
                (&mut reader).take(MAX_ADMIN_REQUEST as u64 + 1).read_until(b'\n', &mut line)?;
            if length == 0 || self.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            self.node.count_request();
            if length > MAX_ADMIN_REQUEST {
                self.refuse(reader.get_mut(), "the request is too long")?;
                return Ok(());
            }
            let request: Request = match serde_json::from_slice(&line) {
                Ok(request) => request,
                Err(error) => {
                    self.refuse(reader.get_mut(), &error.to_string())?;
                    continue;
                }
            };
            let asked = audit::asked(&request);
            let audited = asked.is_some();
            if let Some(asked) = asked {
                // Before it is carried out: it may never end.
                note(AuditStep::Asked(asked));
            }
            if let Err(why) = requests::permits(reader.get_ref(), &request) {
                let refused = answer::refuse(reader.get_mut(), why);
                note(audit::ended(&refused));
                // A file may follow.
                return refused.map(drop);
            }
            let answered = match request {
                Request::Restore { group, bytes, replace } => {
                    let what = (&group[..], bytes, replace);
                    backup::restore(&*self.node, &self.uploads, &mut reader, what)
                }
                request => requests::answer_request(&*self.node, reader.get_mut(), request),
            };
            if audited {
                note(audit::ended(&answered));
            }
            answered?;
        }
    }

    fn refuse(&self, stream: &mut Stream, reason: &str) -> io::Result<()> {
        self.node.count_malformed();
        let error = format!(
            "{reason}; one JSON request a line: {{\"status\":{{}}}}, \
             {{\"state\":{{\"group\":\"...\"}}}}, {{\"move\":{{...}}}}, {{\"restyle\":{{...}}}}, {{\"bench\":{{...}}}}, {{\"run\":{{...}}}}, \
             {{\"stop-program\":{{\"group\":\"...\"}}}} or {{\"events\":{{\"follow\":true}}}}"
        );
        answer::refuse(stream, error).map(drop)
    }
}
