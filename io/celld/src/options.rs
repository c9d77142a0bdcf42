//! The options of the process, and why it cannot start.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use cells::Shape;
use config::Rights;
use links::{LinksError, Security};

/// The node beside which the process runs, and its place in the system.
#[derive(Debug)]
pub struct Options {
    /// The node's admin socket.
    pub admin: PathBuf,
    /// UDP and TCP of this address take links.
    pub listen: SocketAddr,
    /// Where others reach this process, if it listens at all addresses of the host.
    pub told: IpAddr,
    /// Callers of the own cell call other cells here.
    pub calls: SocketAddr,
    /// Certificates of links. `None`: there are none, for trials on loopback.
    pub security: Option<Security>,
    /// The certificate shown to the cell's own nodes. `None`: they talk no TLS.
    pub tls: Option<client::Tls>,
    /// The certificate shown to callers of the own cell. `None`: they talk no TLS.
    pub door: Option<Arc<tls::Server>>,
    /// The calls that clients may make.
    pub rights: Rights,
    /// Clients of other cells are told where this cell's groups are.
    pub direct: bool,
    /// Nodes of the cell above, as the configuration names them.
    pub parent: Vec<SocketAddr>,
    /// The cells that talk directly.
    pub shape: Shape,
}

/// Why the process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// The node does not answer.
    #[error(transparent)]
    Admin(#[from] admin::AdminError),
    /// The node has no place for it.
    #[error("the node takes no clients: set [listen] client, for calls of other cells come by it")]
    NoClients,
    /// Another version of the program has written the book.
    #[error("the cell's book cannot be read: let the node and this process run the same version")]
    Book,
    /// Links cannot be had.
    #[error(transparent)]
    Links(#[from] LinksError),
    /// The port for callers cannot be had.
    #[error("cannot listen at {0} for callers of other cells: {1}; is [system] calls a free port?")]
    Door(SocketAddr, std::io::Error),
    /// The system refuses something.
    #[error("the system gives no thread: {0}; raise its limits")]
    System(#[from] std::io::Error),
}
