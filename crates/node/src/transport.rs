//! The ring's datagrams between the stack and the sockets.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use engine::Route;
use seal::Seal;
use wire::{NodeId, NodeSet, Time};

use crate::config::NodeAddress;
use crate::poller::{Poller, Source};
use crate::sockets::udp::{Received, Udp};
use crate::status::{Counters, SealStatus};

mod sealing;

use sealing::Sealing;

/// The way of a datagram out of this node and into it.
#[derive(Debug)]
pub(crate) struct Transport {
    udp: Udp,
    /// The peer at each place of the configuration's list; none at this node's own.
    peers: Vec<Option<usize>>,
    sealing: Sealing,
    /// A datagram as it is sent.
    out: Vec<u8>,
}

impl Transport {
    /// Binds at `mine`, to talk to all of `nodes` but `me`, in order of id. With `seal`, nothing
    /// else leaves this node or is taken in.
    pub fn bind(
        mine: SocketAddr,
        me: NodeId,
        nodes: &[NodeAddress],
        seal: Option<Seal>,
    ) -> io::Result<Transport> {
        let others: Vec<NodeAddress> = nodes.iter().copied().filter(|n| n.id != me).collect();
        let mut numbers = 0..;
        let peers = nodes.iter().map(|node| (node.id != me).then(|| numbers.next()).flatten());
        let (udp, peers) = (Udp::bind(mine, &others)?, peers.collect());
        let sealing = Sealing::new(seal, nodes.iter().map(|node| node.id).collect());
        Ok(Transport { udp, peers, sealing, out: Vec::with_capacity(seal::MAX_SEALED) })
    }

    pub fn address(&self) -> SocketAddr {
        self.udp.address()
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.udp.register(poller)
    }

    /// What is done to datagrams, and what was counted of it. `None`: nothing is sealed.
    pub fn seal_status(&self) -> Option<SealStatus> {
        self.sealing.status()
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
        self.out.clear();
        if self.sealing.write(now, to, datagram, &mut self.out) {
            for peer in to.iter().filter_map(|place| self.peers[place]) {
                self.udp.send(peer, &self.out, now, counters);
            }
        }
        self.send_contacts(now, counters);
    }

    /// Reads what one socket has, up to a batch, and gives it to `take`.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        take: impl FnMut(Received),
    ) {
        let sealing = &mut self.sealing;
        let open = |datagram: &mut [u8]| sealing.open(now, datagram);
        self.udp.receive(source, now, counters, open, take);
        self.send_contacts(now, counters);
    }

    fn send_contacts(&mut self, now: Time, counters: &mut Counters) {
        while let Some((place, contact)) = self.sealing.poll_contact() {
            let Some(peer) = self.peers[place] else { continue };
            self.udp.send(peer, &contact.bytes, now, counters);
            // It has been answered: what comes behind it is opened.
            if contact.answers
                && let Some(datagram) = self.sealing.take_unheard(place)
            {
                self.out.clear();
                if self.sealing.write(now, NodeSet::one(place), &datagram, &mut self.out) {
                    self.udp.send(peer, &self.out, now, counters);
                }
            }
        }
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
