//! The ring's datagrams between the stack and the sockets.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use engine::Route;
use wire::{NodeId, NodeSet, Time};

use crate::config::NodeAddress;
use crate::poller::{Poller, Source};
use crate::sockets::udp::{Received, Udp};
use crate::status::Counters;

/// The way of a datagram out of this node and into it.
#[derive(Debug)]
pub(crate) struct Transport {
    udp: Udp,
    /// The peer at each place of the configuration's list; none at this node's own.
    peers: Vec<Option<usize>>,
}

impl Transport {
    /// Binds at `mine`, to talk to all of `nodes` but `me`. They are in order of id.
    pub fn bind(mine: SocketAddr, me: NodeId, nodes: &[NodeAddress]) -> io::Result<Transport> {
        let others: Vec<NodeAddress> = nodes.iter().copied().filter(|n| n.id != me).collect();
        let mut numbers = 0..;
        let peers = nodes.iter().map(|node| (node.id != me).then(|| numbers.next()).flatten());
        Ok(Transport { udp: Udp::bind(mine, &others)?, peers: peers.collect() })
    }

    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.udp.register(poller)
    }

    /// Sends a datagram to each node of `to`.
    pub fn send(
        &mut self,
        to: NodeSet,
        datagram: &Bytes,
        _route: Route,
        now: Time,
        counters: &mut Counters,
    ) {
        for peer in to.iter().filter_map(|place| self.peers[place]) {
            self.udp.send(peer, datagram, now, counters);
        }
    }

    /// Reads what one socket has, up to a batch, and gives it to `take`.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        take: impl FnMut(Received),
    ) {
        self.udp.receive(source, now, counters, take);
    }

    /// Sends what means nothing to a living node and is refused by the host of a dead one.
    pub fn probe(&mut self, to: NodeId, now: Time, counters: &mut Counters) {
        self.udp.probe(to, now, counters);
    }

    /// The next node of which a send was refused.
    pub fn take_refused(&mut self, counters: &mut Counters) -> Option<NodeId> {
        self.udp.take_refused(counters)
    }
}
