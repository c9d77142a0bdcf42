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

use wire::{NodeId, Time};

use crate::poller::{EventFlags, Poller, Source};

mod watched;
mod watchers;

use watched::Watched;
use watchers::Watchers;

#[derive(Debug)]
pub(crate) struct Liveness {
    watchers: Watchers,
    /// All links to the node at the first place, then all to that at the second, ...
    watched: Vec<Option<Watched>>,
    /// This node's address on each link.
    mine: Vec<IpAddr>,
    /// Nodes' places, with a link each, that have refused connections and are to be believed.
    denied: VecDeque<(usize, usize)>,
}

impl Liveness {
    /// Listens at this node's address on each link.
    ///
    /// # Errors
    /// With the address that cannot be had.
    pub fn listen(mine: &[SocketAddr]) -> Result<Liveness, (SocketAddr, io::Error)> {
        Ok(Liveness {
            watchers: Watchers::listen(mine)?,
            watched: Vec::new(),
            mine: mine.iter().map(SocketAddr::ip).collect(),
            denied: VecDeque::new(),
        })
    }

    /// Watches the node at this place from now on, which has these addresses.
    pub fn watch(&mut self, place: usize, id: NodeId, addresses: &[SocketAddr], now: Time) {
        self.unwatch(place);
        let ways = addresses.iter().zip(self.mine.clone()).enumerate();
        for (link, (address, from)) in ways {
            let index = self.index(place, link);
            if self.watched.len() <= index {
                self.watched.resize_with(index + 1, || None);
            }
            let source = Source::Watched(index);
            self.watched[index] = Some(Watched::new(id, *address, from, source, now));
        }
    }

    /// The node at this place is not watched any more.
    pub fn unwatch(&mut self, place: usize) {
        let (first, links) = (self.index(place, 0), self.mine.len());
        self.watched.iter_mut().skip(first).take(links).for_each(|watched| *watched = None);
    }

    /// Connections from these addresses are nodes'.
    pub fn know(&mut self, nodes: impl Iterator<Item = IpAddr>) {
        self.watchers.know(nodes);
    }

    fn index(&self, place: usize, link: usize) -> usize {
        place * self.mine.len() + link
    }

    fn watched(&mut self, place: usize, link: usize) -> Option<&mut Watched> {
        let index = self.index(place, link);
        self.watched.get_mut(index)?.as_mut()
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

    /// The port of the node at this place has refused a datagram on this link. True if that is to
    /// be believed.
    pub fn believes_refusal(&mut self, place: usize, link: usize, now: Time) -> bool {
        self.watched(place, link).is_some_and(|watched| watched.believes_refusal(now))
    }

    /// This node's connection to another is established, or has ended. If the other's port has
    /// refused datagrams just before, that is to be believed now: its place and the link.
    pub fn handle_watched(
        &mut self,
        index: usize,
        flags: EventFlags,
        now: Time,
        poller: &Poller,
    ) -> Option<(usize, usize)> {
        let watched = self.watched.get_mut(index)?.as_mut()?;
        let refused = watched.handle_ready(flags, now, poller);
        refused.then_some((index / self.mine.len(), index % self.mine.len()))
    }

    /// Datagrams came from the node at this place by this link. `emptied`: no more are waiting.
    pub fn heard(&mut self, (place, link): (usize, usize), emptied: bool, now: Time) {
        self.watched(place, link).into_iter().for_each(|watched| watched.hear(now, emptied));
    }

    pub fn next_timeout(&self) -> Time {
        let watched = self.watched.iter().flatten().map(Watched::next_timeout);
        watched.min().unwrap_or(Time::FAR).min(self.watchers.next_timeout())
    }

    /// Dials what is due, and says which nodes to probe now.
    pub fn handle_timeout(&mut self, now: Time, poller: &Poller, mut probe: impl FnMut(NodeId)) {
        self.watchers.handle_timeout(now, poller);
        let links = self.mine.len();
        for (index, watched) in self.watched.iter_mut().enumerate() {
            let Some(watched) = watched else { continue };
            let due = watched.handle_timeout(now, poller);
            if due.probe {
                probe(watched.id);
            }
            if due.denied {
                self.denied.push_back((index / links, index % links));
            }
        }
    }

    /// The place of the next node that has refused a connection on this link, and is to be
    /// believed.
    pub fn take_denied(&mut self) -> Option<(usize, usize)> {
        self.denied.pop_front()
    }
}
