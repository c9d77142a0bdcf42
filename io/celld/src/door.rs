//! The way in for callers of the own cell: a port that speaks the clients' protocol for other cells.
//! A caller's first words name the cell; then all is as at a node there.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cells::Path;
use tls::{Server, Visitor};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use wire::NodeId;

use crate::inbound::Tell;

mod caller;
mod inside;

use caller::converse;
pub(crate) use inside::News;
use inside::{GREETING, Inside};

/// Callers at a time.
const MAX_CALLERS: usize = 1_024;

/// Without a descriptor for another connection, some will be closed meanwhile.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// The port, before it serves.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    inside: Inside,
}

impl Door {
    /// Opens the port. To be called in a runtime.
    pub fn open(
        at: SocketAddr,
        me: (NodeId, Path),
        tls: Option<Arc<Server>>,
        news: News,
        tell: Tell,
    ) -> io::Result<Door> {
        let listener = std::net::TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let (node, cell) = me;
        let inside = Inside { node, cell, tls, news, tell };
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
                        if let Err(why) = take(inside, stream).await {
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

/// Serves a caller until it goes.
async fn take(inside: Arc<Inside>, stream: TcpStream) -> Result<(), String> {
    let _ = stream.set_nodelay(true);
    match inside.tls.clone() {
        None => converse(inside, None, stream).await,
        Some(server) => {
            let shaken = timeout(GREETING, admit(&server, stream)).await;
            let (stream, name) = shaken.map_err(|_| "no TLS within the time")??;
            converse(inside, Some(name), stream).await
        }
    }
}

/// Shakes hands with a caller, which has this name then.
async fn admit(
    server: &Server,
    stream: TcpStream,
) -> Result<(TlsStream<TcpStream>, String), String> {
    let acceptor = TlsAcceptor::from(server.config());
    let stream = acceptor.accept(stream).await.map_err(|error| error.to_string())?;
    match server.admit_connection(stream.get_ref().1) {
        Visitor::Welcome(identity) => Ok((stream, identity.label().to_owned())),
        Visitor::Refused(reason) => Err(reason),
    }
}
