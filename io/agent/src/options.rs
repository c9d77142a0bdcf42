//! An agent's place: its folders, its host, its port.

use std::net::SocketAddr;
use std::path::PathBuf;

use job::Host;
use tls::{Client, Server};

/// An agent's folders, and what its host offers.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of images and logs.
    pub folder: PathBuf,
    /// The folder of socket and records, on a file system that need not last.
    pub runtime: PathBuf,
    /// The host as a place for ranks. The agent fills in where copies are given away.
    pub host: Host,
    /// Where other hosts get copies; else agents of this machine do, at a socket.
    pub port: Option<Port>,
}

/// A port for copies, with the node's certificate.
#[derive(Clone, Debug)]
pub struct Port {
    /// Where to listen, and what others are told.
    pub address: SocketAddr,
    /// The node's certificate.
    pub tls: Tls,
}

/// The node's certificate, as it is asked and as it asks. The first has the list of denied ones.
pub type Tls = (Server, Client);
