//! Streams, protected as the ring and the clients are.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tls::{Client, Credentials, CredentialsError, Port, Role, SecureStream, Server, Visitor};
use wire::NodeId;

/// How long either side may say nothing.
pub const SILENT: Duration = Duration::from_secs(5);

/// A stream that is protected as it should be.
pub trait Stream: Read + Write {}

impl Stream for TcpStream {}
impl Stream for SecureStream {}

/// The protection of streams.
#[derive(Clone)]
pub enum Security {
    /// None, as of the ring.
    None,
    /// TLS with the nodes' certificates.
    Tls(Client, Server),
    /// The ring is sealed, and this node has no certificate: there are no streams.
    Missing,
}

impl Security {
    /// The one that fits the ring, sealed or not, and this node's certificate.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub fn new(
        sealed: bool,
        credentials: Option<&Credentials>,
    ) -> Result<Security, CredentialsError> {
        Ok(match credentials {
            Some(it) => {
                Security::Tls(Client::new(it, Port::States)?, Server::new(it, Port::States)?)
            }
            None if sealed => Security::Missing,
            None => Security::None,
        })
    }

    /// New connections show and check what `other` does.
    pub fn renew(&self, other: &Security) {
        if let (Security::Tls(client, server), Security::Tls(to, at)) = (self, other) {
            client.renew(to);
            server.renew(at);
        }
    }

    /// The part that is connected to, if there is TLS.
    pub fn server(&self) -> Option<&Server> {
        match self {
            Security::Tls(_, server) => Some(server),
            Security::None | Security::Missing => None,
        }
    }

    /// Takes the connection that another has made.
    pub fn accept(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        limit(&stream)?;
        match self {
            Security::None => Ok(Box::new(stream)),
            Security::Tls(_, server) => {
                let records = server.accept().map_err(io::Error::other)?;
                let stream = SecureStream::open(stream, records)?;
                if let Visitor::Refused(why) = server.admit(stream.records()) {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
                }
                of_node(stream, None)
            }
            Security::Missing => Err(missing()),
        }
    }

    /// Begins to talk on a connection that this node has made, to that node.
    pub fn begin(
        &self,
        stream: TcpStream,
        (to, node): (SocketAddr, NodeId),
    ) -> io::Result<Box<dyn Stream>> {
        limit(&stream)?;
        match self {
            Security::None => Ok(Box::new(stream)),
            Security::Tls(client, server) => {
                let stream = SecureStream::open(stream, client.connect(to))?;
                // One list for both directions.
                if server.denies(stream.records()) {
                    return Err(io::Error::new(
                        io::ErrorKind::PermissionDenied,
                        "it is denied here",
                    ));
                }
                of_node(stream, Some(node))
            }
            Security::Missing => Err(missing()),
        }
    }
}

fn limit(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENT))?;
    stream.set_write_timeout(Some(SILENT))
}

/// The other side is a node of the cluster: this one, if it has to be one.
fn of_node(stream: SecureStream, wanted: Option<NodeId>) -> io::Result<Box<dyn Stream>> {
    let denied = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    match stream.identity().map(|it| it.role) {
        Some(Role::Node(node)) if wanted.is_none_or(|wanted| wanted == node) => {
            Ok(Box::new(stream))
        }
        Some(Role::Node(_)) => denied("it is another node"),
        _ => denied("it is no node"),
    }
}

fn missing() -> io::Error {
    let why = "the ring is sealed, and this node has no certificate: states come by the ring; \
               `steadfast init` makes certificates for [security]";
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}
