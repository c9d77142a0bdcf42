//! The cluster's nodes: where they are reached, and the roster on this node's disk.

use wire::NodeList;
use wire::roster::Roster;

use crate::roster_file::RosterFile;
use crate::transport::Addresses;

/// The room.
pub(crate) struct Nodes {
    /// As configured, and as rosters say.
    pub addresses: Addresses,
    /// As the ring counts them.
    pub list: NodeList,
    /// `None`: this node keeps nothing, and confirms nothing.
    pub file: Option<RosterFile>,
}

impl Nodes {
    /// Learns where nodes are reached of which nothing is configured: a node may have moved since it
    /// came, and people said so.
    pub fn learn(&mut self, roster: &Roster) {
        for seat in roster.all().filter(|seat| !seat.ring.is_empty()) {
            let known = self.addresses.entry(seat.node).or_default();
            if known.is_empty() {
                known.clone_from(&seat.ring);
            }
        }
    }
}
