//! A network between nodes of this process that can be cut: every datagram of a link goes through
//! a relay of our own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a relay's thread may take to see that it is to end.
const GLANCE: Duration = Duration::from_millis(20);

/// Between two nodes, each of which takes one of the relay's addresses for the other's.
pub struct Relay {
    /// Where the first takes the second to be.
    pub second: SocketAddr,
    /// Where the second takes the first to be.
    pub first: SocketAddr,
    cut: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Joins the nodes at these two addresses; `cut` parts them while it is true.
    pub fn between(first: SocketAddr, second: SocketAddr, cut: &Arc<AtomicBool>) -> Relay {
        let bind = || {
            let socket = UdpSocket::bind((first.ip(), 0)).expect("a free port");
            socket.set_read_timeout(Some(GLANCE)).expect("a time-out");
            socket
        };
        let (as_first, as_second) = (bind(), bind());
        let address = |socket: &UdpSocket| socket.local_addr().expect("bound");
        let mut relay = Relay {
            second: address(&as_second),
            first: address(&as_first),
            cut: cut.clone(),
            end: Arc::default(),
            threads: Vec::new(),
        };
        let copy = |socket: &UdpSocket| socket.try_clone().expect("a descriptor");
        relay.carry(copy(&as_second), copy(&as_first), second);
        relay.carry(as_first, as_second, first);
        relay
    }

    /// Forwards datagrams received at `from` out of `out`, to `to`.
    fn carry(&mut self, from: UdpSocket, out: UdpSocket, to: SocketAddr) {
        let (cut, end) = (self.cut.clone(), self.end.clone());
        self.threads.push(thread::spawn(move || {
            let mut buffer = [0; 9_000];
            while !end.load(Ordering::Relaxed) {
                let Ok(length) = from.recv(&mut buffer) else { continue };
                if !cut.load(Ordering::Relaxed) {
                    // A datagram that the receiver refuses is lost, as on any way.
                    let _ = out.send_to(&buffer[..length], to);
                }
            }
        }));
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}
