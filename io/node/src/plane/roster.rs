//! Follows the cluster's nodes as they come and go.

use config::NodeAddress;
use wire::roster::Roster;
use wire::{Duration, NodeList, Time};

use super::{Plane, Sockets};

/// Until nodes are tried again for which there was no socket.
const RETRY: Duration = Duration::from_secs(1);

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
        found.for_each(|node| self.nodes.say(node.id, node.ring.to_vec()));
        let list = self.nodes.list.clone();
        self.reach(now, list);
    }

    /// The nodes that count, and where they are reached.
    pub(super) fn counted_nodes(&self) -> Vec<NodeAddress> {
        let seats = self.stack.status().growth.seats.into_iter();
        let ring = |node| self.nodes.addresses.get(&node).cloned().unwrap_or_default();
        seats.map(|seat| NodeAddress::linked(seat.node, ring(seat.node))).collect()
    }

    /// Nodes that could not be reached are tried again.
    pub(super) fn retry_nodes(&mut self, now: Time) {
        let list = self.nodes.list.clone();
        self.reach(now, list);
    }

    /// The nodes have these places from now on.
    pub(super) fn reach(&mut self, now: Time, list: NodeList) {
        let Sockets { transport, liveness, poller, .. } = &mut self.sockets;
        let addresses = &self.nodes.addresses;
        let reached = transport.set_nodes(now, &list, addresses, (liveness, poller));
        if let Err(error) = &reached
            && matches!(self.nodes.retry_at, Time::ZERO | Time::FAR)
        {
            tracing::error!(%error, "no socket for a node, which is not reached from here: it is tried again; \
                is its address right, or the limit of open files too low?");
        }
        self.nodes.retry_at = if reached.is_ok() { Time::FAR } else { now + RETRY };
        self.streams.set_ways(addresses);
        self.nodes.list = list;
    }
}
