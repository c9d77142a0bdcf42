//! Streams from agent to agent: over TLS between hosts, over a Unix socket between agents of one
//! machine. The first four bytes say what for.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use os::unix_socket::{Unheard, listen_at};
use rustix::io::ioctl_fionread;
use rustix::net::sockopt::{set_tcp_user_timeout, socket_peercred};
use rustix::process::geteuid;
use tls::{Role, SecureStream, Server, Visitor};

use crate::options::Tls;

/// How long either side may say nothing.
pub(crate) const SILENT: Duration = Duration::from_secs(10);

/// Visitors at a time that have yet to be let in, or get a copy. Others wait to be accepted.
const VISITORS: usize = 8;

/// How long the door rests where there are that many.
const REST: Duration = Duration::from_millis(20);

/// Where other agents come in.
#[derive(Clone, Debug)]
pub enum Door {
    /// A socket on this machine, for agents of the same user.
    Socket(PathBuf),
    /// A port, for nodes of the cluster, by their certificates.
    Port(SocketAddr, Server),
}

/// A stream of either kind.
pub trait Stream: Read + Write + Send {
    /// There is something to read without waiting, or about to be.
    fn has_more(&self) -> bool;
}

impl Stream for UnixStream {
    fn has_more(&self) -> bool {
        ioctl_fionread(self).is_ok_and(|bytes| bytes > 0)
    }
}

impl Stream for SecureStream {
    fn has_more(&self) -> bool {
        self.has_plain() || ioctl_fionread(self.socket()).is_ok_and(|bytes| bytes > 0)
    }
}

impl Stream for Box<dyn Stream> {
    fn has_more(&self) -> bool {
        (**self).has_more()
    }
}

/// A visitor's place at the door, until it is dropped.
pub(crate) struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Begins to let agents in, each on a thread of its own. `serve` gets the first four bytes.
///
/// # Errors
/// The system refuses socket, port or thread.
pub(crate) fn open(
    door: Door,
    serve: impl Fn([u8; 4], Box<dyn Stream>, Seat) -> io::Result<()> + Send + Sync + 'static,
) -> io::Result<()> {
    let serve = Arc::new(serve);
    match door {
        Door::Socket(path) => {
            let listener = listen_at(&path, 0o600).map_err(|unheard| match unheard {
                Unheard::Io(error) => error,
                Unheard::NotASocket | Unheard::Served => io::ErrorKind::AddrInUse.into(),
            })?;
            accept(serve, move || {
                let (stream, _) = listener.accept()?;
                timed(&stream)?;
                Ok(move || ours(stream))
            })
        }
        Door::Port(address, server) => {
            let listener = TcpListener::bind(address)?;
            accept(serve, move || {
                let (stream, _) = listener.accept()?;
                tcp(&stream)?;
                let server = server.clone();
                Ok(move || admit(stream, &server))
            })
        }
    }
}

/// `next` waits for a stream; what it returns opens it, on the stream's own thread.
fn accept<O: FnOnce() -> io::Result<Box<dyn Stream>> + Send + 'static>(
    serve: Arc<impl Fn([u8; 4], Box<dyn Stream>, Seat) -> io::Result<()> + Send + Sync + 'static>,
    mut next: impl FnMut() -> io::Result<O> + Send + 'static,
) -> io::Result<()> {
    let seats = Arc::new(AtomicUsize::new(0));
    let body = move || loop {
        while seats.load(Ordering::Relaxed) >= VISITORS {
            thread::sleep(REST);
        }
        let begun = next().and_then(|open| {
            seats.fetch_add(1, Ordering::Relaxed);
            let (seat, serve) = (Seat(seats.clone()), serve.clone());
            let body = move || {
                let served = open().and_then(|mut stream| {
                    let mut purpose = [0; 4];
                    stream.read_exact(&mut purpose)?;
                    serve(purpose, stream, seat)
                });
                if let Err(error) = served {
                    tracing::info!(%error, "another agent's stream has ended");
                }
            };
            thread::Builder::new().name("steadfast visit".into()).spawn(body)
        });
        if let Err(error) = begun {
            tracing::debug!(%error, "an agent could not come in");
            thread::sleep(REST);
        }
    };
    thread::Builder::new().name("steadfast streams".into()).spawn(body).map(drop)
}

/// Only agents of the same user may come in at a socket.
fn ours(stream: UnixStream) -> io::Result<Box<dyn Stream>> {
    match socket_peercred(&stream)?.uid == geteuid() {
        true => Ok(Box::new(stream)),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Only nodes may come in at a port.
fn admit(stream: TcpStream, server: &Server) -> io::Result<Box<dyn Stream>> {
    let records = server.accept().map_err(io::Error::other)?;
    let stream = SecureStream::open(stream, records)?;
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    match server.admit(stream.records()) {
        Visitor::Welcome(who) if matches!(who.role, Role::Node(_)) => Ok(Box::new(stream)),
        Visitor::Welcome(who) => refused(format!("{who} is no node, and gets no image")),
        Visitor::Refused(why) => refused(why),
    }
}

/// Goes to the agent that is there: at HOST:PORT, or at a socket's path on this machine.
///
/// # Errors
/// It is not there, or is no node's.
pub(crate) fn go(at: &str, tls: Option<&Tls>) -> io::Result<Box<dyn Stream>> {
    let Ok(address) = at.parse::<SocketAddr>() else {
        let stream = UnixStream::connect(at)?;
        timed(&stream)?;
        return Ok(Box::new(stream));
    };
    let refused = |why| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let (server, client) = tls.ok_or_else(|| {
        refused("this node has no certificate ([security]), and agents of other hosts want one")
    })?;
    let stream = TcpStream::connect_timeout(&address, SILENT)?;
    tcp(&stream)?;
    let stream = SecureStream::open(stream, client.connect(address))?;
    if server.denies(stream.records()) {
        return Err(refused("it is denied here"));
    }
    match stream.identity().is_some_and(|it| matches!(it.role, Role::Node(_))) {
        true => Ok(Box::new(stream)),
        false => Err(refused("it is no node")),
    }
}

fn timed(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENT))?;
    stream.set_write_timeout(Some(SILENT))
}

fn tcp(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SILENT))?;
    stream.set_write_timeout(Some(SILENT))?;
    set_tcp_user_timeout(stream, SILENT.as_millis() as u32)?;
    stream.set_nodelay(true)
}
