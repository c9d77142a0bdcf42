//! The ring's datagrams between the stack and the sockets of all links. They are sealed, then sent
//! on the chosen links; received datagrams take the same way back.
//!
//! Datagrams of one turn of the loop are collected. They leave at its end, or when as many wait as
//! the kernel takes at once. There is no timer, and no datagram waits for others. Datagrams lie one
//! after the other in one piece of memory, where they are also sealed. Those of equal size that go
//! the same ways are a run, which the kernel takes in one call for each receiver.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use admin::status::{Counters, LinkStatus, NodeLinks, SealStatus, SocketStatus};
use bytes::Bytes;
use config::NodeAddress;
use engine::Route;
use ring::{LinkOutput, Links, LinksConfig};
use seal::{OVERHEAD, Seal};
use wire::report::Report;
use wire::{ClusterId, NodeId, NodeSet, Time};

use crate::liveness::Liveness;
use crate::poller::{Poller, Source};
use crate::sockets::udp::{Received, Udp};

mod outgoing;
mod sealing;

use outgoing::{Outgoing, Run, Ways};
use sealing::Sealing;

/// The way of a datagram out of this node and into it.
#[derive(Debug)]
pub(crate) struct Transport {
    /// The sockets of each link.
    udp: Vec<Udp>,
    links: Links,
    cluster: ClusterId,
    nodes: Vec<NodeId>,
    /// The peer's number at each place of the configuration's list; none at this node's own.
    peers: Vec<Option<usize>>,
    sealing: Sealing,
    outgoing: Outgoing,
    /// Nodes whose processes are gone, not yet told.
    unreachable: VecDeque<NodeId>,
    events: VecDeque<ring::Event>,
}

impl Transport {
    /// Binds at this node's address on each link, to talk to all others of `nodes`, in order of id.
    /// The kernel is asked to keep `room` bytes of datagrams of each of them until they are read.
    /// With `seal`, nothing else leaves this node or is taken in.
    pub fn bind(
        config: LinksConfig,
        nodes: &[NodeAddress],
        room: usize,
        seal: Option<Seal>,
        now: Time,
    ) -> io::Result<Transport> {
        let me = config.me.node;
        let mine = nodes.iter().find(|node| node.id == me).map_or(&[][..], |node| &node.ring);
        let bind = |(link, address): (usize, &SocketAddr)| {
            let others = nodes.iter().filter(|node| node.id != me);
            let others: Vec<SocketAddr> = others.map(|node| node.ring[link]).collect();
            Udp::bind(link, *address, &others, room)
        };
        let mut numbers = 0..;
        let peers = nodes.iter().map(|node| (node.id != me).then(|| numbers.next()).flatten());
        let ids: Vec<NodeId> = nodes.iter().map(|node| node.id).collect();
        Ok(Transport {
            udp: mine.iter().enumerate().map(bind).collect::<io::Result<_>>()?,
            cluster: config.cluster,
            peers: peers.collect(),
            sealing: Sealing::new(seal, ids.clone()),
            nodes: ids,
            links: Links::new(config, now),
            outgoing: Outgoing::default(),
            unreachable: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// This node's address on the first link.
    pub fn address(&self) -> SocketAddr {
        self.udp[0].address()
    }

    /// This node's ports, one for each link.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.udp.iter().map(|udp| udp.address().port())
    }

    /// The system's grants for the sockets of all links.
    pub fn sockets(&self) -> SocketStatus {
        self.udp.iter().map(Udp::status).reduce(SocketStatus::and).unwrap_or_default()
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.udp.iter().try_for_each(|udp| udp.register(poller))
    }

    /// Status and counts of the seal. `None`: nothing is sealed.
    pub fn seal_status(&self) -> Option<SealStatus> {
        self.sealing.status()
    }

    /// The machine that seals, if there are keys.
    pub fn seal(&mut self) -> Option<&mut Seal> {
        self.sealing.seal()
    }

    /// Takes a datagram for each node of `to`: sealed once, whatever the number of copies. It
    /// leaves with [`flush`](Transport::flush).
    pub fn send(
        &mut self,
        to: NodeSet,
        datagram: &Bytes,
        route: Route,
        now: Time,
        counters: &mut Counters,
    ) {
        if self.outgoing.is_full_for(datagram.len() + OVERHEAD) {
            self.flush(now, counters);
        }
        let ways = self.links.choose(now, to, route);
        self.write(to, ways, datagram, now);
        self.take_contacts(now);
    }

    /// Puts a datagram to the others that are to leave, sealed in its place.
    fn write(&mut self, to: NodeSet, ways: Ways, datagram: &Bytes, now: Time) {
        let start = self.outgoing.bytes.len();
        if self.sealing.write(now, to, datagram, &mut self.outgoing.bytes) {
            self.outgoing.push(ways, start);
        } else {
            self.outgoing.bytes.truncate(start);
        }
    }

    /// Sends what was taken since the last time.
    pub fn flush(&mut self, now: Time, counters: &mut Counters) {
        let Outgoing { bytes, runs } = &mut self.outgoing;
        for Run { ways, start, end, size } in runs.drain(..) {
            for (udp, to) in self.udp.iter_mut().zip(ways) {
                for peer in to.iter().filter_map(|place| self.peers[place]) {
                    udp.send(peer, &bytes[start..end], size, now, counters);
                }
            }
        }
        bytes.clear();
    }

    /// Reads what one socket has, up to a batch, and gives what is the stack's to `take`.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        liveness: &mut Liveness,
        mut take: impl FnMut(&[Bytes]),
    ) {
        let (link, number) = match source {
            Source::Peer { link, number } => (link, Some(number)),
            Source::Strangers(link) => (link, None),
            _ => return,
        };
        let Transport { udp, links, cluster, peers, sealing, .. } = self;
        let from = number.and_then(|number| Some((number, place_of(peers, number)?)));
        let (mut heard, mut doubted, mut malformed) = (false, 0, Vec::new());
        let open = |datagram: &mut [u8]| sealing.open(now, datagram);
        udp[link].receive(source, now, counters, open, |received| match (received, from) {
            (Received::Datagrams(run), from) => {
                heard = true;
                if let Some((_, place)) = from {
                    links.handle_received(now, place, link);
                }
                // Reports are few; what lies between two of them goes on together.
                let mut rest = run;
                while let Some(at) = rest.iter().position(|bytes| Report::is_in(bytes)) {
                    match Report::decode(*cluster, &rest[at]) {
                        Ok((sender, report)) => links.handle_report(now, sender, link, &report),
                        Err(reason) => malformed.push(reason),
                    }
                    if at > 0 {
                        take(&rest[..at]);
                    }
                    rest = &rest[at + 1..];
                }
                if !rest.is_empty() {
                    take(rest);
                }
            }
            (Received::Refused, Some((number, place))) => {
                if liveness.believes_refusal(number, link, now) {
                    links.handle_refused(now, place, link);
                } else {
                    doubted += 1;
                }
            }
            (Received::Refused, None) => {}
        });
        counters.unreachable_doubted += doubted;
        malformed.iter().for_each(|reason| counters.malformed.count(reason));
        if let (true, Some(number)) = (heard, number) {
            liveness.heard(number, link, now);
        }
        self.carry_out(now, counters);
        self.take_contacts(now);
    }

    /// Puts what sealing has to say itself to the datagrams that are to leave.
    fn take_contacts(&mut self, now: Time) {
        while let Some((place, contact)) = self.sealing.poll_contact() {
            let to = NodeSet::one(place);
            // By all links: little is known of a node that was not met.
            let ways = self.links.choose(now, to, Route::Every);
            let start = self.outgoing.bytes.len();
            self.outgoing.bytes.extend_from_slice(&contact.bytes);
            self.outgoing.push(ways, start);
            // It has been answered: what comes behind it is opened.
            if contact.answers
                && let Some(datagram) = self.sealing.take_unheard(place)
            {
                self.write(to, ways, &datagram, now);
            }
        }
    }

    /// Sends, by all links, what means nothing to a living node and is refused by the host of a
    /// dead one.
    pub fn probe(&mut self, to: NodeId, now: Time, counters: &mut Counters) {
        let place = self.nodes.binary_search(&to).ok();
        if let Some(peer) = place.and_then(|place| self.peers[place]) {
            self.udp.iter_mut().for_each(|udp| udp.probe(peer, now, counters));
        }
    }

    /// A refusal by this peer on this link has turned out to be believable.
    pub fn handle_refused(&mut self, peer: usize, link: usize, now: Time) {
        if let Some(place) = place_of(&self.peers, peer) {
            self.links.handle_refused(now, place, link);
        }
    }

    pub fn next_timeout(&self) -> Time {
        self.links.next_timeout().unwrap_or(Time::FAR)
    }

    pub fn handle_timeout(&mut self, now: Time, counters: &mut Counters) {
        self.links.handle_timeout(now);
        self.carry_out(now, counters);
        self.take_contacts(now);
    }

    /// The next node whose process is gone, as its host says.
    pub fn take_unreachable(
        &mut self,
        now: Time,
        counters: &mut Counters,
        liveness: &mut Liveness,
    ) -> Option<NodeId> {
        while let Some((peer, link)) = liveness.take_denied() {
            self.handle_refused(peer, link, now);
        }
        for link in 0..self.udp.len() {
            while let Some(peer) = self.udp[link].take_refused() {
                if liveness.believes_refusal(peer, link, now) {
                    self.handle_refused(peer, link, now);
                } else {
                    counters.unreachable_doubted += 1;
                }
            }
        }
        self.carry_out(now, counters);
        let node = self.unreachable.pop_front()?;
        counters.unreachable += 1;
        Some(node)
    }

    /// The next thing that happened to a link.
    pub fn take_event(&mut self) -> Option<ring::Event> {
        self.events.pop_front()
    }

    /// The state of the links to all others.
    pub fn status(&self, now: Time) -> Vec<NodeLinks> {
        let places = (0..self.nodes.len()).filter(|place| self.peers[*place].is_some());
        let links = |place| {
            let since = |heard: Time| now.since(heard).as_nanos() as f64 / 1e6;
            let state = self.links.state(place);
            state.map(move |state| LinkStatus { up: state.up, heard_ms: state.heard.map(since) })
        };
        places
            .map(|place| NodeLinks { node: self.nodes[place], links: links(place).collect() })
            .collect()
    }

    /// Does what the links ask for.
    fn carry_out(&mut self, now: Time, counters: &mut Counters) {
        while let Some(output) = self.links.poll_output() {
            match output {
                LinkOutput::Report { to, link, datagram } => {
                    self.report(link, to, &datagram, now);
                }
                LinkOutput::Probe { to, link } => {
                    if let Some(peer) = self.peers[to] {
                        self.udp[link].probe(peer, now, counters);
                    }
                }
                LinkOutput::Unreachable(node) => {
                    if !self.unreachable.contains(&node) {
                        self.unreachable.push_back(node);
                    }
                }
                LinkOutput::Event(event) => {
                    counters.links_lost += u64::from(matches!(event, ring::Event::LinkLost { .. }));
                    counters.links_back += u64::from(matches!(event, ring::Event::LinkBack { .. }));
                    self.events.push_back(event);
                }
            }
        }
    }

    /// Sends a report by one link, sealed for itself: it is about this link.
    fn report(&mut self, link: usize, to: usize, report: &Bytes, now: Time) {
        let to = NodeSet::one(to);
        let ways = std::array::from_fn(|l| if l == link { to } else { NodeSet::EMPTY });
        self.write(to, ways, report, now);
    }
}

/// The place of the peer of this number in the list of nodes.
fn place_of(peers: &[Option<usize>], number: usize) -> Option<usize> {
    peers.iter().position(|peer| *peer == Some(number))
}
