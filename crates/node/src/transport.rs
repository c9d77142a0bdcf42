//! The ring's datagrams between the stack and the sockets of all links: sealed, then sent by those
//! links that are to carry them, and the same backwards.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use engine::Route;
use ring::{LinkOutput, Links, LinksConfig};
use seal::Seal;
use wire::report::Report;
use wire::{ClusterId, NodeId, NodeSet, Time};

use crate::config::NodeAddress;
use crate::liveness::Liveness;
use crate::poller::{Poller, Source};
use crate::sockets::udp::{Received, Udp};
use crate::status::{Counters, LinkStatus, NodeLinks, SealStatus};

mod sealing;

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
    /// A datagram as it is sent.
    out: Vec<u8>,
    /// Nodes whose processes are gone, not yet told.
    unreachable: VecDeque<NodeId>,
    events: VecDeque<ring::Event>,
}

impl Transport {
    /// Binds at this node's address on each link, to talk to all others of `nodes`, in order of id.
    /// With `seal`, nothing else leaves this node or is taken in.
    pub fn bind(
        config: LinksConfig,
        nodes: &[NodeAddress],
        seal: Option<Seal>,
        now: Time,
    ) -> io::Result<Transport> {
        let me = config.me.node;
        let mine = nodes.iter().find(|node| node.id == me).map_or(&[][..], |node| &node.ring);
        let bind = |(link, address): (usize, &SocketAddr)| {
            let others = nodes.iter().filter(|node| node.id != me);
            let others: Vec<SocketAddr> = others.map(|node| node.ring[link]).collect();
            Udp::bind(link, *address, &others)
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
            out: Vec::with_capacity(seal::MAX_SEALED),
            unreachable: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// This node's address on the first link.
    pub fn address(&self) -> SocketAddr {
        self.udp[0].address()
    }

    pub fn register(&self, poller: &Poller) -> io::Result<()> {
        self.udp.iter().try_for_each(|udp| udp.register(poller))
    }

    /// What is done to datagrams, and what was counted of it. `None`: nothing is sealed.
    pub fn seal_status(&self) -> Option<SealStatus> {
        self.sealing.status()
    }

    /// The machine that seals, if there are keys.
    pub fn seal(&mut self) -> Option<&mut Seal> {
        self.sealing.seal()
    }

    /// Sends a datagram to each node of `to`: sealed once, whatever the number of copies.
    pub fn send(
        &mut self,
        to: NodeSet,
        datagram: &Bytes,
        route: Route,
        now: Time,
        counters: &mut Counters,
    ) {
        self.out.clear();
        if self.sealing.write(now, to, datagram, &mut self.out) {
            let chosen = self.links.choose(now, to, route);
            for (udp, to) in self.udp.iter_mut().zip(chosen) {
                for peer in to.iter().filter_map(|place| self.peers[place]) {
                    udp.send(peer, &self.out, now, counters);
                }
            }
        }
        self.send_contacts(now, counters);
    }

    /// Reads what one socket has, up to a batch, and gives what is the stack's to `take`.
    pub fn receive(
        &mut self,
        source: Source,
        now: Time,
        counters: &mut Counters,
        liveness: &mut Liveness,
        mut take: impl FnMut(Bytes),
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
            (Received::Datagram(bytes), from) => {
                heard = true;
                if let Some((_, place)) = from {
                    links.handle_received(now, place, link);
                }
                if !Report::is_in(&bytes) {
                    return take(bytes);
                }
                match Report::decode(*cluster, &bytes) {
                    Ok((sender, report)) => links.handle_report(now, sender, link, &report),
                    Err(reason) => malformed.push(reason),
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
        self.send_contacts(now, counters);
    }

    fn send_contacts(&mut self, now: Time, counters: &mut Counters) {
        while let Some((place, contact)) = self.sealing.poll_contact() {
            self.copy_to(place, &contact.bytes, now, counters);
            // It has been answered: what comes behind it is opened.
            if contact.answers
                && let Some(datagram) = self.sealing.take_unheard(place)
            {
                let mut out = std::mem::take(&mut self.out);
                out.clear();
                if self.sealing.write(now, NodeSet::one(place), &datagram, &mut out) {
                    self.copy_to(place, &out, now, counters);
                }
                self.out = out;
            }
        }
    }

    /// Sends these bytes as they are, by all links: little is known of a node that was not met.
    fn copy_to(&mut self, place: usize, bytes: &[u8], now: Time, counters: &mut Counters) {
        let Some(peer) = self.peers[place] else { return };
        let chosen = self.links.choose(now, NodeSet::one(place), Route::Every);
        for (udp, to) in self.udp.iter_mut().zip(chosen) {
            if to.contains(place) {
                udp.send(peer, bytes, now, counters);
            }
        }
    }

    /// Sends, by all links, what means nothing to a living node and is refused by the host of a
    /// dead one.
    pub fn probe(&mut self, to: NodeId, now: Time, counters: &mut Counters) {
        let place = self.nodes.binary_search(&to).ok();
        if let Some(peer) = place.and_then(|place| self.peers[place]) {
            self.udp.iter_mut().for_each(|udp| udp.send(peer, &[], now, counters));
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
        self.send_contacts(now, counters);
    }

    /// The next node whose process is gone, as its host says.
    pub fn take_unreachable(
        &mut self,
        now: Time,
        counters: &mut Counters,
        liveness: &mut Liveness,
    ) -> Option<NodeId> {
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

    /// What is known of the links to all others.
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
                    self.report(link, to, &datagram, now, counters);
                }
                LinkOutput::Probe { to, link } => {
                    if let Some(peer) = self.peers[to] {
                        self.udp[link].send(peer, &[], now, counters);
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
    fn report(
        &mut self,
        link: usize,
        to: usize,
        report: &Bytes,
        now: Time,
        counters: &mut Counters,
    ) {
        let Some(peer) = self.peers[to] else { return };
        self.out.clear();
        if self.sealing.write(now, NodeSet::one(to), report, &mut self.out) {
            self.udp[link].send(peer, &self.out, now, counters);
        }
    }
}

/// The place of the peer of this number in the list of nodes.
fn place_of(peers: &[Option<usize>], number: usize) -> Option<usize> {
    peers.iter().position(|peer| *peer == Some(number))
}
