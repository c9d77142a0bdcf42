//! Several networks between the same nodes: by which of them a datagram goes.
//!
//! Below the ring and apart from it: the ring says *whether an earlier copy may have been lost*
//! ([`Route`]), this machine knows which links carry. It judges by receipts only. A node numbers
//! its *rounds* towards each peer; a round is one [`Report`] by all links, and what the peer says
//! of it tells which of them arrived. So a link that carries in one direction only is seen by
//! the side whose datagrams are lost. See `docs/protocol/ring.md`, "Links".

mod config;
mod peer;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use wire::limits::MAX_RING_LINKS;
use wire::report::Report;
use wire::{Duration, Member, NodeId, NodeList, NodeSet, Random, Time};

use crate::bug::Bug;
use crate::{Event, Route};
use peer::{Change, Peer};

pub use config::{LinkTiming, LinksConfig};
pub use peer::LinkState;

/// One thing to do or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// Send this datagram by this link.
    Report {
        /// The receiver's place in the list of nodes.
        to: usize,
        /// The link.
        link: usize,
        /// The bytes.
        datagram: Bytes,
    },
    /// Send an empty datagram by this link: a living node ignores it, a dead one's host refuses it.
    Probe {
        /// The receiver's place in the list of nodes.
        to: usize,
        /// The link.
        link: usize,
    },
    /// The node's process is gone: its host says so on every link that is up.
    Unreachable(NodeId),
    /// A link was lost or is back.
    Event(Event),
}

/// The links of one node to all others.
#[derive(Debug)]
pub struct Links {
    config: LinksConfig,
    nodes: NodeList,
    random: Random,
    /// By place.
    peers: Vec<Peer>,
    /// By each link: the peers that [`Route::Best`] reaches by it.
    best: [NodeSet; MAX_RING_LINKS],
    due: Time,
    out: VecDeque<LinkOutput>,
}

impl Links {
    /// A node that starts: nothing is known, so all links are used until something is.
    ///
    /// # Panics
    /// If `count` is not from 1 to [`MAX_RING_LINKS`].
    pub fn new(config: LinksConfig, now: Time) -> Links {
        let count = config.count;
        assert!((1..=MAX_RING_LINKS).contains(&count), "a node has 1 to {MAX_RING_LINKS} links");
        let seed = config.me.incarnation.0 ^ u64::from(config.me.node.0);
        let peers = (0..config.nodes.len()).map(|_| Peer::new(count, now)).collect();
        let mut links = Links {
            nodes: NodeList::new(&config.nodes),
            random: Random::new(seed),
            peers,
            best: Default::default(),
            due: Time::FAR,
            out: VecDeque::new(),
            config,
        };
        for place in 0..links.peers.len() {
            links.route_to(place);
        }
        links.schedule();
        links
    }

    /// These are the nodes from now on, at their places. Nothing is known of those that come.
    pub fn set_nodes(&mut self, now: Time, nodes: &NodeList) {
        for (place, (_, here)) in nodes.seats().enumerate() {
            let news = here && self.nodes.place(nodes.node(place)) != Some(place);
            let peer = Peer::new(self.config.count, now);
            match self.peers.get_mut(place) {
                Some(old) if news => *old = peer,
                Some(_) => {}
                None => self.peers.push(peer),
            }
        }
        self.nodes = nodes.clone();
        for place in 0..self.peers.len() {
            self.route_to(place);
        }
        self.schedule();
    }

    /// By each link, the nodes of `to` that a datagram is to be sent to by it.
    pub fn choose(&mut self, now: Time, to: NodeSet, route: Route) -> [NodeSet; MAX_RING_LINKS] {
        let count = self.config.count;
        let every = route == Route::Every && !self.config.planted.is(Bug::EveryByBestLink);
        if count > 1 && every {
            for place in to.iter() {
                self.doubt(now, place);
            }
        }
        core::array::from_fn(|link| match link < count {
            true if every => to,
            true => to.and(self.best[link]),
            false => NodeSet::EMPTY,
        })
    }

    /// The ring takes an earlier copy for lost: until the link in use is confirmed, all are used.
    fn doubt(&mut self, now: Time, place: usize) {
        if self.peers[place].doubt(now, &self.config.timing) {
            self.route_to(place);
            self.schedule();
        }
    }

    /// A datagram came from the node at this place, by this link.
    pub fn handle_received(&mut self, now: Time, from: usize, link: usize) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.heard(now, link);
        }
    }

    /// The peer's report came by this link.
    pub fn handle_report(&mut self, now: Time, sender: Member, link: usize, report: &Report) {
        let LinksConfig { me, count, .. } = self.config;
        let Some(place) = self.nodes.place(sender.node) else { return };
        if sender.node == me.node || link >= count || count == 1 {
            return;
        }
        let peer = &mut self.peers[place];
        if !peer.is_of_life(now, sender.incarnation, &self.config.timing) {
            return;
        }
        peer.heard(now, link);
        peer.reported(now, link, report, &self.config.timing);
        if report.wanted {
            // The peer is in doubt. Links mostly fail both ways: what does not come from there may
            // not arrive there either.
            if peer.misses_rounds(now, &self.config.timing) {
                self.doubt(now, place);
            }
            self.report(place, link, false);
        }
        self.judge(now, place);
    }

    /// The host of the node at this place refused a datagram on this link.
    pub fn handle_refused(&mut self, now: Time, from: usize, link: usize) {
        let Some(peer) = self.peers.get_mut(from) else { return };
        if peer.refused(now, link) {
            self.out.push_back(LinkOutput::Unreachable(self.nodes.node(from)));
        }
        self.schedule();
    }

    /// When [`Links::handle_timeout`] is due; never with a single link.
    pub fn next_timeout(&self) -> Option<Time> {
        (self.due != Time::FAR).then_some(self.due)
    }

    /// The time that [`Links::next_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        let me = self.config.me.node;
        let others: Vec<usize> =
            self.nodes.iter().filter(|(_, node)| *node != me).map(|(place, _)| place).collect();
        for place in others {
            for link in self.peers[place].take_probes(now) {
                self.out.push_back(LinkOutput::Probe { to: place, link });
            }
            if self.config.count > 1 && self.peers[place].next_round <= now {
                self.begin_round(now, place);
            }
        }
        self.schedule();
    }

    fn begin_round(&mut self, now: Time, place: usize) {
        // Spread: the nodes' rounds would otherwise fall together for ever.
        let eighth = u64::try_from(self.config.timing.probe.as_nanos() / 8).unwrap_or(1).max(1);
        let spread = Duration::from_nanos(self.random.below(eighth));
        let wanted = self.peers[place].begin_round(now, &self.config.timing, spread);
        for link in 0..self.config.count {
            self.report(place, link, wanted);
        }
        self.judge(now, place);
    }

    /// The next thing to do or to know, in order.
    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        self.out.pop_front()
    }

    /// The state of the links to the node at this place, in order of the configuration.
    pub fn state(&self, place: usize) -> impl Iterator<Item = LinkState> + '_ {
        self.peers.get(place).into_iter().flat_map(Peer::state)
    }

    /// How many links there are.
    pub fn count(&self) -> usize {
        self.config.count
    }

    /// Asserts what must hold between any two calls.
    pub fn check_invariants(&self) {
        for (place, peer) in self.peers.iter().enumerate() {
            peer.check();
            let reached = (0..self.config.count).any(|link| self.best[link].contains(place));
            assert!(reached, "some link leads to every node, living or not");
        }
    }

    fn report(&mut self, to: usize, link: usize, wanted: bool) {
        let report = self.peers[to].report(wanted);
        let datagram = report.encode(self.config.cluster, self.config.me);
        self.out.push_back(LinkOutput::Report { to, link, datagram });
    }

    fn judge(&mut self, now: Time, place: usize) {
        for change in self.peers[place].judge(now, &self.config.timing) {
            // For people, links count from 1, as the configuration lists them.
            let node = self.nodes.node(place);
            let event = match change {
                Change::Lost(link) => Event::LinkLost { node, link: link + 1 },
                Change::Back(link) => Event::LinkBack { node, link: link + 1 },
            };
            self.out.push_back(LinkOutput::Event(event));
        }
        self.route_to(place);
        self.schedule();
    }

    /// Which links reach this peer now.
    fn route_to(&mut self, place: usize) {
        let lowest = self.config.planted.is(Bug::KeepDeadLink).then_some(0);
        let best = lowest.or_else(|| self.peers[place].best());
        for link in 0..self.config.count {
            match best {
                Some(best) if best != link => self.best[link].remove(place),
                _ => self.best[link].insert(place),
            }
        }
    }

    fn schedule(&mut self) {
        let me = self.config.me.node;
        let others = self.nodes.iter().filter(|(_, node)| *node != me);
        let several = self.config.count > 1;
        let due = others.map(|(place, _)| self.peers[place].due(several));
        self.due = due.min().unwrap_or(Time::FAR);
    }
}
