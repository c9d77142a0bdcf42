//! A network that an attacker owns: every datagram between two nodes passes here, is recorded, and
//! some are overtaken by the next one.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::Outcome;

/// Datagrams that are remembered for playing back.
const MAX_RECORDED: usize = 20_000;
/// One in so many is overtaken by its successor.
const HELD: usize = 61;

/// A datagram that passed, and its way.
#[derive(Clone)]
pub struct Recorded {
    pub from: usize,
    pub to: usize,
    pub bytes: Vec<u8>,
}

/// The sockets: node i takes `sockets[i][j]` for node j, and node j takes `sockets[j][i]` for node i.
pub struct Relay {
    nodes: Vec<SocketAddr>,
    sockets: Vec<Vec<Arc<UdpSocket>>>,
    recorded: Arc<Mutex<Vec<Recorded>>>,
}

impl Relay {
    /// Between nodes at these addresses.
    pub fn start(nodes: &[SocketAddr]) -> Outcome<Relay> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut sockets = Vec::new();
        for _ in nodes {
            let row: Result<Vec<_>, _> = nodes.iter().map(|_| UdpSocket::bind(any)).collect();
            sockets.push(row?.into_iter().map(Arc::new).collect::<Vec<_>>());
        }
        let relay = Relay { nodes: nodes.to_vec(), sockets, recorded: Arc::default() };
        for from in 0..nodes.len() {
            for to in (0..nodes.len()).filter(|to| *to != from) {
                relay.forward(from, to);
            }
        }
        Ok(relay)
    }

    /// What one node takes for all nodes' addresses: its own is real.
    pub fn seen_by(&self, node: usize) -> Outcome<Vec<SocketAddr>> {
        let address = |other: usize| match other == node {
            true => Ok(self.nodes[node]),
            false => self.sockets[node][other].local_addr(),
        };
        Ok((0..self.nodes.len()).map(address).collect::<Result<_, _>>()?)
    }

    fn forward(&self, from: usize, to: usize) {
        let (taken, given) = (self.sockets[from][to].clone(), self.sockets[to][from].clone());
        let (address, recorded) = (self.nodes[to], self.recorded.clone());
        // Ends with the process.
        thread::spawn(move || {
            let mut room = [0; 9_216];
            let mut held: Option<Vec<u8>> = None;
            for number in 0.. {
                // A refusal of what was sent to a node that is gone.
                let Ok(length) = taken.recv(&mut room) else { continue };
                let bytes = &room[..length];
                let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
                if recorded.len() < MAX_RECORDED && length > 0 {
                    recorded.push(Recorded { from, to, bytes: bytes.to_vec() });
                }
                drop(recorded);
                if held.is_none() && number % HELD == 0 {
                    held = Some(bytes.to_vec());
                    continue;
                }
                // Lost on the way is lost.
                let _ = given.send_to(bytes, address);
                if let Some(late) = held.take() {
                    let _ = given.send_to(&late, address);
                }
            }
        });
    }

    /// What has passed so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends bytes to a node in the name of another. False if the kernel does not take them.
    pub fn inject(&self, from: usize, to: usize, bytes: &[u8]) -> bool {
        self.sockets[to][from].send_to(bytes, self.nodes[to]).is_ok()
    }
}
