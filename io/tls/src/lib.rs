//! Authentication of peers: certificates, the names in them, and TLS records without sockets.
//!
//! - [`Identity`]: the name that a certificate proves, and the role in it.
//! - [`Credentials`]: what a node or client shows of itself, and what it checks others against.
//! - [`Server`] and [`Client`] begin connections; [`Records`] carries one of them over whatever
//!   moves its bytes: epoll in nodes, `poll(2)` or tokio in clients. [`SecureStream`] is for threads
//!   that wait for a socket.
//! - [`Reach`]: whether the other side must be of the same cluster, or of the same system of cells.
//! - `issue` (feature `issue`) makes authorities and certificates.
//!
//! TLS 1.3 only, and certificates on both sides always (RFC 8446). The decisions and their reasons
//! are in `docs/decisions/0013-tls.md`.
#![forbid(unsafe_code)]

mod client;
mod credentials;
mod denied;
mod explain;
#[cfg(feature = "issue")]
pub mod issue;
mod name;
mod reach;
mod records;
mod server;
mod stream;
mod twin;

pub use client::Client;
pub use credentials::{Credentials, CredentialsError};
pub use denied::{Denied, DeniedError, MAX_DENIED, NotDenied, Peer};
pub use explain::explain;
pub use name::{
    Identity, NameError, Role, any_node, cell, check_cluster, check_path, parent_of, path_of,
    root_of,
};
pub use reach::Reach;
pub use records::Records;
pub use server::{Server, Visitor};
pub use stream::SecureStream;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The purpose of a port, so that a client that dials the wrong one is refused (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Calls of services.
    Client,
    /// Looking into a node.
    Admin,
    /// Copies of images, between nodes' agents.
    Copies,
    /// States of replicas, between nodes.
    States,
    /// Calls of services by gRPC and HTTP.
    Gateway,
    /// Messages between nodes of two cells.
    Cell,
}

impl Port {
    /// The protocols that are spoken there, the preferred one first.
    fn protocols(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Port::Client => &[b"steadfast-client"],
            Port::Admin => &[b"steadfast-admin"],
            Port::Copies => &[b"steadfast-copies"],
            Port::States => &[b"steadfast-states"],
            Port::Gateway => &[b"h2", b"http/1.1"],
            Port::Cell => &[b"steadfast-cell/1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
