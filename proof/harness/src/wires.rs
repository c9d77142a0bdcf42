//! Wires between the nodes of a cluster, on which something of an experiment's own is done to every
//! datagram.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;

use crate::Outcome;

/// One direction between two nodes.
pub struct Wire {
    /// The sender, counted from 0.
    pub from: usize,
    /// The receiver, counted from 0.
    pub to: usize,
    /// The socket at which the sender's datagrams arrive.
    pub taken: Arc<UdpSocket>,
    given: Arc<UdpSocket>,
    address: SocketAddr,
}

impl Wire {
    /// Hands a datagram to the receiver. Lost on the way is lost.
    pub fn give(&self, bytes: &[u8]) {
        let _ = self.given.send_to(bytes, self.address);
    }
}

/// All of them: node i takes `sockets[i][j]` for node j, and node j takes `sockets[j][i]` for node
/// i.
pub struct Wires {
    nodes: Vec<SocketAddr>,
    sockets: Vec<Vec<Arc<UdpSocket>>>,
}

impl Wires {
    /// Between nodes at these addresses. A thread of each wire's own carries what comes, as long as
    /// the process lives.
    pub fn start(
        nodes: &[SocketAddr],
        carry: impl Fn(Wire) + Clone + Send + 'static,
    ) -> Outcome<Wires> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut sockets = Vec::new();
        for _ in nodes {
            let row: Result<Vec<_>, _> = nodes.iter().map(|_| UdpSocket::bind(any)).collect();
            sockets.push(row?.into_iter().map(Arc::new).collect::<Vec<_>>());
        }
        let pairs = (0..nodes.len()).flat_map(|from| (0..nodes.len()).map(move |to| (from, to)));
        for (from, to) in pairs.filter(|(from, to)| from != to) {
            let (taken, given) = (sockets[from][to].clone(), sockets[to][from].clone());
            let wire = Wire { from, to, taken, given, address: nodes[to] };
            let carry = carry.clone();
            thread::spawn(move || carry(wire));
        }
        Ok(Wires { nodes: nodes.to_vec(), sockets })
    }

    /// The addresses of all nodes as one node sees them: its own is real.
    pub fn seen_by(&self, node: usize) -> Outcome<Vec<SocketAddr>> {
        let address = |other: usize| match other == node {
            true => Ok(self.nodes[node]),
            false => self.sockets[node][other].local_addr(),
        };
        Ok((0..self.nodes.len()).map(address).collect::<Result<_, _>>()?)
    }

    /// Sends bytes to a node in the name of another. False if the kernel does not take them.
    pub fn inject(&self, from: usize, to: usize, bytes: &[u8]) -> bool {
        self.sockets[to][from].send_to(bytes, self.nodes[to]).is_ok()
    }
}
