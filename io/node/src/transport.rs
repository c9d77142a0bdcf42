//! The ring's datagrams between the stack and the sockets of all links. They are sealed, then sent
//! on the chosen links; received datagrams take the same way back.
//!
//! Datagrams of one turn of the loop are collected. They leave at its end, or when as many wait as
//! the kernel takes at once. There is no timer, and no datagram waits for others. Datagrams lie one
//! after the other in one piece of memory, where they are also sealed. Those of equal size that go
//! the same ways are a run, which the kernel takes in one call for each receiver.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;

use admin::status::{Counters, LinkStatus, NodeLinks, SealStatus, SocketStatus};
use bytes::Bytes;
use engine::Route;
use ring::{LinkOutput, Links, LinksConfig};
use seal::{OVERHEAD, Seal};
use wire::report::Report;
use wire::{ClusterId, NodeId, NodeList, NodeSet, Time};

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
    me: NodeId,
    nodes: NodeList,
    sealing: Sealing,
    outgoing: Outgoing,
    /// Nodes whose processes are gone, not yet told.
    unreachable: VecDeque<NodeId>,
    events: VecDeque<ring::Event>,
}

/// The nodes' addresses, one for each link.
pub(crate) type Addresses = BTreeMap<NodeId, Vec<SocketAddr>>;

impl Transport {
    /// Binds at this node's address on each link. The kernel is asked to keep `room` bytes of
    /// datagrams of each other node until they are read. With `seal`, nothing else leaves this node
    /// or is taken in.
    pub fn bind(
        config: LinksConfig,
        mine: &[SocketAddr],
        room: usize,
        seal: Option<Seal>,
        now: Time,
    ) -> io::Result<Transport> {
        let bind = |(link, address): (usize, &SocketAddr)| Udp::bind(link, *address, room);
        Ok(Transport {
            udp: mine.iter().enumerate().map(bind).collect::<io::Result<_>>()?,
            cluster: config.cluster,
            me: config.me.node,
            nodes: NodeList::new(&[]),
            sealing: Sealing::new(seal),
            links: Links::new(config, now),
            outgoing: Outgoing::default(),
            unreachable: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// These are the nodes from now on, at their places: one that has gone and asks is answered, as
    /// long as no other has its address. A node whose addresses are not known is not reached.
    ///
    /// # Errors
    /// The system has no socket for a node, which is not reached. All else is done.
    pub fn set_nodes(
        &mut self,
        now: Time,
        nodes: &NodeList,
        addresses: &Addresses,
        (liveness, poller): (&mut Liveness, &Poller),
    ) -> io::Result<()> {
        let of = |node: NodeId| addresses.get(&node).map_or(&[][..], Vec::as_slice);
        let taken: Vec<SocketAddr> = nodes.iter().flat_map(|(_, node)| of(node)).copied().collect();
        let mut failed = Ok(());
        for (place, (node, here)) in nodes.seats().enumerate().filter(|(_, it)| it.0 != self.me) {
            let theirs = of(node);
            let mut reached = false;
            for (udp, address) in self.udp.iter_mut().zip(theirs) {
                if !here && taken.contains(address) {
                    udp.disconnect(place);
                } else if !udp.reaches(place, *address) {
                    let connected = udp.connect(place, *address);
                    let connected = connected.and_then(|()| udp.register_peer(place, poller));
                    reached |= connected.is_ok();
                    if connected.is_err() {
                        udp.disconnect(place);
                    }
                    failed = failed.and(connected);
                }
            }
            match (here, self.nodes.place(node).is_some()) {
                (true, was) if reached || !was => liveness.watch(place, node, theirs, now),
                (false, true) => liveness.unwatch(place),
                _ => {}
            }
        }
        liveness.know(addresses.values().flatten().map(SocketAddr::ip));
        self.links.set_nodes(now, nodes);
        self.sealing.set_nodes(nodes);
        self.nodes = nodes.clone();
        failed
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
                for place in to.iter() {
                    udp.send(place, &bytes[start..end], size, now, counters);
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
        let (link, from) = match source {
            Source::Peer { link, place } => (link, Some(place)),
            Source::Strangers(link) => (link, None),
            _ => return,
        };
        let Transport { udp, links, cluster, sealing, .. } = self;
        let (mut heard, mut doubted, mut malformed) = (false, 0, Vec::new());
        let open = |datagram: &mut [u8]| sealing.open(now, datagram);
        let emptied =
            udp[link].receive(source, now, counters, open, |received| match (received, from) {
                (Received::Datagrams(run), from) => {
                    heard = true;
                    if let Some(place) = from {
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
                (Received::Refused, Some(place)) => {
                    if liveness.believes_refusal(place, link, now) {
                        links.handle_refused(now, place, link);
                    } else {
                        doubted += 1;
                    }
                }
                (Received::Refused, None) => {}
            });
        counters.unreachable_doubted += doubted;
        malformed.iter().for_each(|reason| counters.malformed.count(reason));
        if let (true, Some(place)) = (heard, from) {
            liveness.heard((place, link), emptied, now);
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
        if let Some(place) = self.nodes.place(to) {
            self.udp.iter_mut().for_each(|udp| udp.probe(place, now, counters));
        }
    }

    /// A refusal by the node at this place on this link has turned out to be believable.
    pub fn handle_refused(&mut self, place: usize, link: usize, now: Time) {
        self.links.handle_refused(now, place, link);
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
        while let Some((place, link)) = liveness.take_denied() {
            self.handle_refused(place, link, now);
        }
        for link in 0..self.udp.len() {
            while let Some(place) = self.udp[link].take_refused() {
                if liveness.believes_refusal(place, link, now) {
                    self.handle_refused(place, link, now);
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
        let others = self.nodes.iter().filter(|(_, node)| *node != self.me);
        let links = |place| {
            let since = |heard: Time| now.since(heard).as_nanos() as f64 / 1e6;
            let state = self.links.state(place);
            state.map(move |state| LinkStatus { up: state.up, heard_ms: state.heard.map(since) })
        };
        others.map(|(place, node)| NodeLinks { node, links: links(place).collect() }).collect()
    }

    /// Does what the links ask for.
    fn carry_out(&mut self, now: Time, counters: &mut Counters) {
        while let Some(output) = self.links.poll_output() {
            match output {
                LinkOutput::Report { to, link, datagram } => {
                    self.report(link, to, &datagram, now);
                }
                LinkOutput::Probe { to, link } => {
                    self.udp[link].probe(to, now, counters);
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
