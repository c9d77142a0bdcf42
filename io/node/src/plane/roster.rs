//! Follows the cluster's nodes as they come and go.

use config::NodeAddress;
use wire::roster::Roster;
use wire::{NodeList, Time};

use super::{Plane, Sockets};

impl Plane {
    /// This roster is to be kept.
    pub(super) fn keep_roster(&mut self, now: Time, roster: Roster) {
        self.know_roster(now, &roster);
        let nodes = roster.nodes().collect();
        self.events.set_nodes(nodes);
        match &self.nodes.file {
            Some(file) => file.keep(roster),
            // Without a disk it counts on nothing: the others wait for those that have one.
            None => tracing::warn!(
                "this node has no data_dir: it does not confirm changes of the nodes"
            ),
        }
    }

    /// Its nodes are to be reached from now on.
    pub(super) fn know_roster(&mut self, now: Time, roster: &Roster) {
        self.nodes.learn(roster);
        let list = self.nodes.list.clone();
        self.reach(now, list);
    }

    /// Nodes are at these addresses now. This one's own waits for a restart.
    pub(super) fn are_at(&mut self, now: Time, nodes: Vec<NodeAddress>) {
        let me = self.profile.me.node;
        let found = nodes.into_iter().filter(|node| node.id != me && !node.ring.is_empty());
        let found = found.map(|node| (node.id, node.ring.to_vec()));
        let list = self.nodes.list.clone();
        self.nodes.addresses.extend(found);
        self.reach(now, list);
    }

    /// The nodes that count, and where they are reached.
    pub(super) fn counted_nodes(&self) -> Vec<NodeAddress> {
        let seats = self.stack.status().growth.seats.into_iter();
        let ring = |node| self.nodes.addresses.get(&node).cloned().unwrap_or_default();
        seats.map(|seat| NodeAddress::linked(seat.node, ring(seat.node))).collect()
    }

    /// The nodes have these places from now on.
    pub(super) fn reach(&mut self, now: Time, list: NodeList) {
        let Sockets { transport, liveness, poller, .. } = &mut self.sockets;
        let addresses = &self.nodes.addresses;
        if let Err(error) = transport.set_nodes(now, &list, addresses, (liveness, poller)) {
            tracing::error!(%error, "no socket for a node, which is not reached from here: is its address \
                right (`steadfast status` tells which is missing), or the limit of open files too low?");
        }
        self.streams.set_ways(addresses);
        self.nodes.list = list;
    }
}
