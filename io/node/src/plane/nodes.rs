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
    /// `None`: this node keeps nothing, and a start forgets what it has known.
    pub file: Option<RosterFile>,
}

impl Nodes {
    /// Learns where nodes are reached.
    pub fn learn(&mut self, roster: &Roster) {
        for seat in roster.all().filter(|seat| !seat.ring.is_empty()) {
            self.addresses.insert(seat.node, seat.ring.clone());
        }
    }
}
