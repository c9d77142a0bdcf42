//! A gateway's options.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use config::Rights;
use wire::NodeId;

/// A gateway's options.
#[derive(Debug)]
pub struct Options {
    /// The port.
    pub listen: Listen,
    /// Client addresses of the cluster's nodes.
    pub nodes: Vec<SocketAddr>,
    /// The certificate that the gateway shows to nodes.
    pub tls: Option<tls::Client>,
    /// The check of callers. `None`: everybody who reaches the port may call.
    pub door: Option<Door>,
    /// The node that the gateway belongs to. `None`: it stands beside a client.
    pub place: Option<Place>,
    /// Permits callers without certificates from other hosts.
    pub insecure: bool,
}

/// The port of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket. Callers need the right to write there.
    Unix(PathBuf),
}

/// The check of callers: TLS with certificates of the cluster, and the calls that each may make.
#[derive(Clone, Debug)]
pub struct Door {
    /// TLS, for [`tls::Port::Gateway`].
    pub server: tls::Server,
    /// The calls that each caller may make. They may be replaced at any time.
    pub rights: Arc<RwLock<Rights>>,
}

/// A gateway's place in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its node.
    pub node: NodeId,
    /// The address that callers are told.
    pub address: SocketAddr,
    /// The address of its node for clients, which other gateways are told.
    pub client: SocketAddr,
}

/// Why a gateway cannot have these options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// No node is named.
    #[error("no node: give the client address of at least one (--at 127.0.0.1:7100)")]
    NoNodes,
    /// Everybody could call.
    #[error(
        "{0} can be reached from other hosts, and callers would need no certificate: listen on \
         loopback or a Unix socket, give certificates, or permit it (--insecure, or insecure = true)"
    )]
    Open(SocketAddr),
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if self.nodes.is_empty() {
            return Err(OptionsError::NoNodes);
        }
        match self.listen {
            Listen::Tcp(address)
                if !address.ip().is_loopback() && self.door.is_none() && !self.insecure =>
            {
                Err(OptionsError::Open(address))
            }
            _ => Ok(()),
        }
    }
}
