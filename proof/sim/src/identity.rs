//! The identity of the simulated cluster, and of its nodes.

use std::net::{Ipv4Addr, SocketAddr};

use wire::ClusterId;

/// The name of every simulated cluster.
pub const CLUSTER: &str = "sim";

/// Its id.
pub const CLUSTER_ID: ClusterId = ClusterId::of(CLUSTER);

/// The port of node 1 is one higher.
const PORT: u16 = 7_000;

/// Where clients reach this node.
pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, PORT + 1 + node as u16))
}

/// Which node has this address.
pub fn node_at(address: SocketAddr) -> usize {
    usize::from(address.port() - PORT - 1)
}
