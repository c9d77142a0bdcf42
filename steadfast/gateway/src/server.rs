//! The port: who may come in, and where each request goes.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use client::ConnectError;
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;
use tls::{Peer, Visitor};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tonic::body::Body;
use tonic_health::pb::health_server::HealthServer;

use crate::call::{GROUP, Gateway};
use crate::caller::Caller;
use crate::connection;
use crate::health::Checks;
use crate::keepalive::GREETING_WITHIN;
use crate::options::{Door, Listen, Options, OptionsError};
use crate::pieces::Pieces;
use crate::{announce, grpc, http as plain, names, orca, reflection, xds};

/// Connections at a time.
const MAX_CONNECTIONS: usize = 1024;

/// Without a descriptor for another connection, some will be closed meanwhile.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// Calls under way have so long to end when the gateway stops.
const DRAIN: Duration = Duration::from_secs(3);

/// Why a gateway does not run.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// It cannot have these options.
    #[error("{0}")]
    Options(#[from] OptionsError),
    /// It cannot listen there.
    #[error("cannot listen at {at}: {error}")]
    Listen {
        /// The port.
        at: String,
        /// The system's word.
        error: io::Error,
    },
    /// It finds no node.
    #[error("{0}")]
    Connect(#[from] ConnectError),
}

/// A gateway whose port is open, before it serves.
#[derive(Debug)]
pub struct Bound {
    listener: Listener,
    options: Options,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _path: Unlinked },
}

/// A socket's path, which is removed with it.
#[derive(Debug)]
struct Unlinked(PathBuf);

impl Drop for Unlinked {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens a gateway's port.
///
/// # Errors
/// [`Failed`] tells which option is wrong, or why the port cannot be had.
pub async fn bind(options: Options) -> Result<Bound, Failed> {
    options.check()?;
    let listener = match &options.listen {
        Listen::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp),
        Listen::Unix(path) => listen_unix(path),
    };
    let at = match &options.listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => path.display().to_string(),
    };
    let listener = listener.map_err(|error| Failed::Listen { at, error })?;
    Ok(Bound { listener, options })
}

/// A socket that a former gateway left is replaced, one that is in use is not.
fn listen_unix(path: &Path) -> io::Result<Listener> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program listens there"));
    }
    match std::fs::symlink_metadata(path) {
        Ok(there) if std::os::unix::fs::FileTypeExt::is_socket(&there.file_type()) => {
            std::fs::remove_file(path)?;
        }
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // The user and the group of the gateway: who else shall call belongs to the group.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(Listener::Unix { listener, _path: Unlinked(path.into()) })
}

impl Bound {
    /// The port's TCP address; `None` at a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix { .. } => None,
        }
    }

    /// Serves until `stop` is ready. New connections are not accepted then, and those that are
    /// there end.
    ///
    /// # Errors
    /// [`Failed::Connect`] if no node can be reached at the start.
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), Failed> {
        let Bound { listener, mut options } = self;
        let (told, cluster) = announce::channel();
        let gateway = Arc::new(Gateway::connect(&options, cluster).await?);
        let door = options.door.take().map(Arc::new);
        let announcing = announce::keep(gateway.own().clone(), options.place, told);
        let (ending, ends) = watch::channel(());
        let health = Checks::server(gateway.clone(), ends.clone());
        let server = Arc::new(Server { gateway: gateway.clone(), health });
        let serving = accept(&listener, &server, door.as_ref(), &ends);
        tokio::select! {
            () = serving => {}
            () = announcing => {}
            () = stop => {}
        }
        // Callers go elsewhere with their next calls, and have the answers of those under way. A dial
        // is refused at once from now on: it does not wait for an end that is near.
        drop(listener);
        drop(ending);
        announce::end(gateway.own(), options.place).await;
        let _ = tokio::time::timeout(DRAIN, gateway.idle()).await;
        Ok(())
    }
}

/// Shakes hands with a new caller.
async fn admit(
    door: Arc<Door>,
    stream: TcpStream,
) -> Result<(TlsStream<TcpStream>, Caller), String> {
    let acceptor = TlsAcceptor::from(door.server.config());
    let shaken = tokio::time::timeout(GREETING_WITHIN, acceptor.accept(stream)).await;
    let stream =
        shaken.map_err(|_| "no TLS within the time".to_owned())?.map_err(|it| it.to_string())?;
    let connection = stream.get_ref().1;
    match (door.server.admit_connection(connection), Peer::of(connection)) {
        (Visitor::Welcome(_), Some(peer)) => Ok((stream, Caller::new(peer, door))),
        (Visitor::Refused(reason), _) => Err(reason),
        (Visitor::Welcome(_), None) => Err("it shows no certificate".into()),
    }
}

async fn accept(
    listener: &Listener,
    server: &Arc<Server>,
    door: Option<&Arc<Door>>,
    ends: &watch::Receiver<()>,
) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await.expect("it is never closed");
        let (server, door, ends) = (server.clone(), door.cloned(), ends.clone());
        let accepted = match listener {
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, from)| {
                let _ = stream.set_nodelay(true);
                tokio::spawn(async move {
                    server.take(stream, from, door, ends).await;
                    drop(place);
                });
            }),
            Listener::Unix { listener, .. } => listener.accept().await.map(|(stream, _)| {
                tokio::spawn(async move {
                    server.converse(stream, Caller::default(), "a local program", ends).await;
                    drop(place);
                });
            }),
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "a connection cannot be accepted");
            tokio::time::sleep(NO_DESCRIPTOR).await;
        }
    }
}

/// Where nothing else names a group, the channel's target may.
fn name_the_target<B>(request: &mut Request<B>) {
    let authority = request.uri().authority().map(|it| it.as_str());
    let group = authority.and_then(names::group_of_target);
    if let Some(group) = group.and_then(|group| HeaderValue::from_str(&group).ok()) {
        request.headers_mut().entry(GROUP).or_insert(group);
    }
}

/// All that requests go to.
struct Server {
    gateway: Arc<Gateway>,
    health: HealthServer<Checks>,
}

impl Server {
    async fn take(
        self: Arc<Self>,
        stream: TcpStream,
        from: SocketAddr,
        door: Option<Arc<Door>>,
        ends: watch::Receiver<()>,
    ) {
        let Some(door) = door else {
            return self.converse(stream, Caller::default(), &from.to_string(), ends).await;
        };
        match admit(door, stream).await {
            Ok((stream, caller)) => self.converse(stream, caller, &from.to_string(), ends).await,
            Err(reason) => tracing::warn!(%from, "a caller is not let in: {reason}"),
        }
    }

    async fn converse<S>(
        self: Arc<Self>,
        stream: S,
        caller: Caller,
        from: &str,
        ends: watch::Receiver<()>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answer = move |request| self.clone().answer(caller.clone(), request);
        if let Err(error) = connection::serve(stream, answer, ends).await {
            tracing::debug!(%from, "a connection ends: {error}");
        }
    }

    /// Finds what a request is for.
    async fn answer(
        self: Arc<Self>,
        caller: Caller,
        mut request: Request<Incoming>,
    ) -> Response<Body> {
        let gateway = self.gateway.clone();
        let is_grpc = grpc::is_spoken(request.headers());
        match request.uri().path() {
            path if !is_grpc && path.starts_with(plain::PREFIX) => {
                plain::serve(gateway, caller, request).await
            }
            _ if !is_grpc => plain::nothing_here(request).await,
            _ if request.version() != Version::HTTP_2 || request.method() != Method::POST => {
                plain::no_grpc(request).await
            }
            xds::PATH => xds::serve(gateway, request).await,
            path if reflection::PATHS.contains(&path) => {
                reflection::serve(gateway, caller, request).await
            }
            orca::PATH => orca::serve(gateway, request).await,
            path if path.starts_with("/grpc.health.v1.Health/") => {
                name_the_target(&mut request);
                let answer = tower::Service::call(&mut self.health.clone(), request).await;
                answer.unwrap_or_else(|never| match never {})
            }
            _ => grpc::serve(gateway, caller, request).await.map(Pieces::of),
        }
    }
}
