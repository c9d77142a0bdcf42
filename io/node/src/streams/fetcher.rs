//! Fetches a state from the node that offers it.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use engine::Transfer;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use wire::NodeId;

use super::secure::Security;
use super::words::{ask, read_state};
use crate::heavy;

/// How long a connection may take: a host of the ring answers, or is gone.
const DIAL: Duration = Duration::from_secs(1);

/// One fetch.
pub struct Fetcher {
    pub security: Security,
    pub from: NodeId,
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
        let mut stream = self.security.begin(dial(to, from)?, (to, self.from))?;
        stream.write_all(&ask(self.transfer))?;
        stream.flush()?;
        read_state(&mut stream, self.bytes, || !self.is_needless())
    }
}

/// Connects from this node's address on the link, by which the other knows a node.
fn dial(to: SocketAddr, from: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SockAddr::from(SocketAddr::new(from.ip(), 0)))?;
    socket.connect_timeout(&SockAddr::from(to), DIAL)?;
    Ok(socket.into())
}
