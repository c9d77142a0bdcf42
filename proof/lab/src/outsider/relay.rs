//! A network that an attacker owns: every datagram between two nodes passes here, is recorded, and
//! some are overtaken by the next one.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use harness::Outcome;
use harness::wires::{Wire, Wires};

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

/// The wires, and the datagrams that have passed.
pub struct Relay {
    wires: Wires,
    recorded: Arc<Mutex<Vec<Recorded>>>,
}

impl Relay {
    /// Between nodes at these addresses.
    pub fn start(nodes: &[SocketAddr]) -> Outcome<Relay> {
        let recorded = Arc::<Mutex<_>>::default();
        let noted = recorded.clone();
        Ok(Relay { wires: Wires::start(nodes, move |wire| forward(&wire, &noted))?, recorded })
    }

    /// The addresses of all nodes as one node sees them.
    pub fn seen_by(&self, node: usize) -> Outcome<Vec<SocketAddr>> {
        self.wires.seen_by(node)
    }

    /// The datagrams that have passed so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends bytes to a node in the name of another. False if the kernel does not take them.
    pub fn inject(&self, from: usize, to: usize, bytes: &[u8]) -> bool {
        self.wires.inject(from, to, bytes)
    }
}

fn forward(wire: &Wire, recorded: &Mutex<Vec<Recorded>>) {
    let mut room = [0; 9_216];
    let mut held: Option<Vec<u8>> = None;
    for number in 0.. {
        // The error is the answer to a datagram for a node that is gone.
        let Ok(length) = wire.taken.recv(&mut room) else { continue };
        let bytes = &room[..length];
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.len() < MAX_RECORDED && length > 0 {
            recorded.push(Recorded { from: wire.from, to: wire.to, bytes: bytes.to_vec() });
        }
        drop(recorded);
        if held.is_none() && number % HELD == 0 {
            held = Some(bytes.to_vec());
            continue;
        }
        wire.give(bytes);
        if let Some(late) = held.take() {
            wire.give(&late);
        }
    }
}
