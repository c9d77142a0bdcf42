//! The cluster's nodes: where they are reached, and the roster on this node's disk.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use wire::roster::{Roster, Seat};
use wire::{NodeId, NodeList, Time};

use crate::roster_file::RosterFile;
use crate::transport::Addresses;

/// The room.
pub(crate) struct Nodes {
    /// As people say, and of others as rosters do.
    pub addresses: Addresses,
    /// Nodes of which people say where they are: in the configuration, or by a name.
    pub said: BTreeSet<NodeId>,
    /// As the ring counts them.
    pub list: NodeList,
    /// When those are tried again that could not be reached: a network may come up late.
    pub retry_at: Time,
    /// `None`: this node keeps nothing, and confirms nothing.
    pub file: Option<RosterFile>,
}

impl Nodes {
    /// Learns where nodes are reached. A node may have moved since it came, if people say so.
    pub fn learn(&mut self, roster: &Roster) {
        let news = |seat: &&Seat| !seat.ring.is_empty() && !self.said.contains(&seat.node);
        let news: Vec<&Seat> = roster.all().filter(news).collect();
        self.addresses.extend(news.into_iter().map(|seat| (seat.node, seat.ring.clone())));
    }

    /// People say where a node is.
    pub fn say(&mut self, node: NodeId, ring: Vec<SocketAddr>) {
        self.said.insert(node);
        self.addresses.insert(node, ring);
    }
}
