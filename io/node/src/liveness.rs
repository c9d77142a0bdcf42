//! Seeing at once that another node's process is gone.
//!
//! Each node keeps a TCP connection to every other node by every link, at the ring port's number.
//! Nothing is sent on it; a connection that speaks asks for a [state](crate::streams). When a
//! process dies, its kernel closes the connection, which is no proof (a firewall could do it), but
//! a reason to send an empty datagram to the node's ring port by all links. Their refusal, told by
//! the ring's sockets, is the proof; how many it takes is known to `ring::Links`. By every link,
//! because a connection over a network that is cut tells nothing, least of all that the process
//! behind it dies.
//!
//! Hosts tell of refused datagrams seldom, once a second for each other host. So the connection is
//! dialled anew with each probe, and its refusal proves as much, unless a datagram has come from
//! the node since.
//!
//! One without the other proves nothing. Any sender of packets can forge a refusal (ICMP has no
//! secret), but has to guess or read sequence numbers to end an established connection. An attacker
//! that makes a node lose a connection cannot close its port. So a refusal is believed only while
//! this node's connection to the peer by the same link is ended or was refused too.
//!
//! On the other side the connections only have to exist, and losing one accuses nobody: the node
//! that made it asks the port, hears no refusal, and connects again. Strangers' connections are
//! kept apart, and never push out a node's.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};

use config::NodeAddress;
use wire::{NodeId, Time};

use crate::poller::{EventFlags, Poller, Source};

mod watched;
mod watchers;

use watched::Watched;
use watchers::Watchers;

#[derive(Debug)]
pub(crate) struct Liveness {
    watchers: Watchers,
    /// All links of the first peer, then all of the second, ...
    watched: Vec<Watched>,
    links: usize,
    /// Peers, by link, that have refused connections and are to be believed.
    denied: VecDeque<(usize, usize)>,
}

impl Liveness {
    /// Listens at this node's address on each link, and is to watch the others.
    ///
    /// # Errors
    /// With the address that cannot be had.
    pub fn listen(
        mine: &[SocketAddr],
        others: &[NodeAddress],
        now: Time,
    ) -> Result<Liveness, (SocketAddr, io::Error)> {
        let addresses = || others.iter().flat_map(|node| node.ring.iter().map(|at| (node.id, *at)));
        let from = mine.iter().map(SocketAddr::ip).cycle();
        let watched = |((index, (id, address)), from): ((usize, (NodeId, SocketAddr)), IpAddr)| {
            Watched::new(id, address, from, Source::Watched(index), now)
        };
        Ok(Liveness {
            watchers: Watchers::listen(mine, addresses().map(|(_, address)| address.ip()))?,
            watched: addresses().enumerate().zip(from).map(watched).collect(),
            links: mine.len(),
            denied: VecDeque::new(),
        })
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.watchers.register(poller)
    }

    /// Takes other nodes' connections by this link.
    pub fn accept(&mut self, link: usize, now: Time, poller: &Poller) {
        self.watchers.accept(link, now, poller);
    }

    /// Something happened to another's connection: it has ended, or sent something. A node's that
    /// speaks is returned: it asks for a state.
    pub fn handle_watcher(&mut self, number: u64, poller: &Poller) -> Option<TcpStream> {
        self.watchers.end(number, poller)
    }

    /// A peer's port has refused a datagram on this link. True if that is to be believed.
    pub fn believes_refusal(&mut self, peer: usize, link: usize, now: Time) -> bool {
        let watched = self.watched.get_mut(peer * self.links + link);
        watched.is_some_and(|watched| watched.believes_refusal(now))
    }

    /// This node's connection to a peer is established, or has ended. If the peer's port has
    /// refused datagrams just before, that is to be believed now: the peer and the link.
    pub fn handle_watched(
        &mut self,
        index: usize,
        flags: EventFlags,
        now: Time,
        poller: &Poller,
    ) -> Option<(usize, usize)> {
        let refused = self.watched[index].handle_ready(flags, now, poller);
        refused.then_some((index / self.links, index % self.links))
    }

    /// A datagram came from a peer by this link.
    pub fn heard(&mut self, peer: usize, link: usize, now: Time) {
        self.watched[peer * self.links + link].hear(now);
    }

    pub fn next_timeout(&self) -> Time {
        let watched = self.watched.iter().map(Watched::next_timeout).min().unwrap_or(Time::FAR);
        watched.min(self.watchers.next_timeout())
    }

    /// Dials what is due, and says which nodes to probe now.
    pub fn handle_timeout(&mut self, now: Time, poller: &Poller, mut probe: impl FnMut(NodeId)) {
        self.watchers.handle_timeout(now, poller);
        for (index, watched) in self.watched.iter_mut().enumerate() {
            let due = watched.handle_timeout(now, poller);
            if due.probe {
                probe(watched.id);
            }
            if due.denied {
                self.denied.push_back((index / self.links, index % self.links));
            }
        }
    }

    /// The next peer that has refused a connection on this link, and is to be believed.
    pub fn take_denied(&mut self) -> Option<(usize, usize)> {
        self.denied.pop_front()
    }
}
