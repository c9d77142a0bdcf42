//! The way in for callers of the own cell: a port that speaks the clients' protocol, and knows
//! groups of other cells by their full names, such as `line-a.porto:boards`.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cells::{Name, Path, Scope};
use tls::{Server, Visitor};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use wire::client::Targets;
use wire::{GroupId, NodeId};

use crate::inbound::Tell;

mod caller;

/// Callers at a time.
const MAX_CALLERS: usize = 1_024;

/// Names that are remembered, whoever has asked for them.
const MAX_NAMES: usize = 4_096;

/// A caller shakes hands, and says who it is, within this time.
const GREETING: Duration = Duration::from_secs(5);

/// Without a descriptor for another connection, some will be closed meanwhile.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// The port, before it serves.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    inside: Inside,
}

/// The things that all callers share.
#[derive(Debug)]
pub(crate) struct Inside {
    node: NodeId,
    cell: Path,
    tls: Option<Arc<Server>>,
    /// The nodes at which this door is, the best first.
    doors: watch::Receiver<Targets>,
    names: Mutex<BTreeMap<GroupId, Name>>,
    tell: Tell,
}

impl Door {
    /// Opens the port. To be called in a runtime.
    pub fn open(
        at: SocketAddr,
        (node, cell): (NodeId, Path),
        tls: Option<Arc<Server>>,
        doors: watch::Receiver<Targets>,
        tell: Tell,
    ) -> io::Result<Door> {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let inside = Inside { node, cell, tls, doors, names: Mutex::default(), tell };
        Ok(Door { listener: TcpListener::from_std(listener)?, inside })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves callers. It never ends.
    pub async fn serve(self) {
        let (places, inside) = (Arc::new(Semaphore::new(MAX_CALLERS)), Arc::new(self.inside));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    let inside = inside.clone();
                    tokio::spawn(async move {
                        if let Err(why) = inside.take(stream).await {
                            tracing::info!(%from, "a caller of other cells is sent away: {why}");
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted");
                    sleep(NO_DESCRIPTOR).await;
                }
            }
        }
    }
}

impl Inside {
    async fn take(self: Arc<Self>, stream: TcpStream) -> Result<(), String> {
        let _ = stream.set_nodelay(true);
        match self.tls.clone() {
            None => self.converse(stream).await,
            Some(server) => {
                let shaken = timeout(GREETING, admit(&server, stream)).await;
                self.converse(shaken.map_err(|_| "no TLS within the time")??).await
            }
        }
    }

    async fn converse(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Result<(), String> {
        caller::converse(self, stream).await
    }

    /// Remembers the name of a group of another cell. `None`: it is not the full name of one.
    fn bind(&self, text: &str) -> Option<GroupId> {
        let name: Name = text.parse().ok()?;
        let Scope::Cell(path) = &name.scope else { return None };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let group = GroupId::of(text);
        let has_room = names.len() < MAX_NAMES || names.contains_key(&group);
        if !path.is_of_system(&self.cell) || !has_room {
            return None;
        }
        names.insert(group, name);
        Some(group)
    }

    /// The cell and the group that somebody has asked for by this id.
    fn name(&self, group: GroupId) -> Option<(Path, String)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(&group)? {
            Name { scope: Scope::Cell(path), group } => Some((path.clone(), group.clone())),
            _ => None,
        }
    }
}

/// Shakes hands with a caller.
async fn admit(server: &Server, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let acceptor = TlsAcceptor::from(server.config());
    let stream = acceptor.accept(stream).await.map_err(|error| error.to_string())?;
    match server.admit_connection(stream.get_ref().1) {
        Visitor::Welcome(_) => Ok(stream),
        Visitor::Refused(reason) => Err(reason),
    }
}
