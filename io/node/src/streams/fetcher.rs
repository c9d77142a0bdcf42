//! Fetches a state from the node that offers it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use engine::Transfer;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tls::SecureStream;

use super::words::{ask, read_state};
use super::{SILENT, Security, Stream, is_node, limit};
use crate::heavy;

/// How long a connection may take: a host of the ring answers, or is gone.
const DIAL: std::time::Duration = std::time::Duration::from_secs(1);

/// One fetch.
pub struct Fetcher {
    pub security: Security,
    /// The other node's addresses, one for each link, each with this node's own.
    pub ways: Vec<(SocketAddr, SocketAddr)>,
    pub transfer: Transfer,
    pub bytes: u64,
    pub needless: Arc<AtomicBool>,
}

impl Fetcher {
    /// Tries each way in turn, and returns the state if one of them brings it.
    pub fn run(&self) -> Option<Bytes> {
        for (to, from) in &self.ways {
            if self.is_needless() {
                return None;
            }
            match self.by(*to, *from) {
                Ok(state) => return Some(heavy::bytes(state)),
                Err(error) => tracing::info!(%to, %error, "a state could not be fetched"),
            }
        }
        None
    }

    fn is_needless(&self) -> bool {
        self.needless.load(Ordering::Relaxed)
    }

    fn by(&self, to: SocketAddr, from: SocketAddr) -> io::Result<Vec<u8>> {
        match &self.security {
            Security::None => self.read(dial(to, from)?),
            Security::Tls(client, _) => {
                let stream = SecureStream::open(dial(to, from)?, client.connect(to))?;
                is_node(&stream)?;
                self.read(stream)
            }
            Security::Missing => {
                let why = "the ring is sealed, and this node has no certificate ([security])";
                Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
            }
        }
    }

    fn read(&self, mut stream: impl Stream) -> io::Result<Vec<u8>> {
        stream.write_all(&ask(self.transfer))?;
        stream.flush()?;
        read_state(&mut stream, self.bytes, || !self.is_needless())
    }
}

/// Connects from this node's address on the link, by which the other knows a node.
fn dial(to: SocketAddr, from: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SockAddr::from(SocketAddr::new(from.ip(), 0)))?;
    socket.connect_timeout(&SockAddr::from(to), DIAL.min(SILENT))?;
    let stream = TcpStream::from(socket);
    limit(&stream)?;
    Ok(stream)
}
