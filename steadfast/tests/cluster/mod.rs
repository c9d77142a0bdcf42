//! Nodes in this process, for tests.
// Each test file takes what it needs.
#![allow(dead_code)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use steadfast::events::Interest;
use steadfast::status::GroupStatus;
use steadfast::{Node, NodeConfig, NodeId};

/// Longer than anything here may take: a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts this many nodes on free ports. That the machine is busy is no fault: none is left out because it is late.
pub fn start(count: usize) -> Vec<Node> {
    let rings = steadfast::free_ring_addresses(count);
    let member = |id| {
        let mut config = NodeConfig::member(NodeId(id), &rings);
        config.ring.timing.token_timeout = 2 * PATIENCE;
        config.ring.timing.token_timeout_max = 2 * PATIENCE;
        config
    };
    (1..).take(count).map(|id| Node::start(member(id)).expect("free ports")).collect()
}

/// Where clients connect to each of the nodes.
pub fn addresses(nodes: &[Node]) -> Vec<SocketAddr> {
    nodes.iter().map(|node| node.client_address().expect("it takes clients")).collect()
}

/// Waits until the node's view of the group is as wanted.
pub fn wait_for(node: &Node, group: &str, wanted: impl Fn(&GroupStatus) -> bool) -> GroupStatus {
    let end = Instant::now() + PATIENCE;
    let events = node.subscribe_to(Interest::Membership);
    loop {
        let status = node.status();
        if let Some(group) = status.groups.into_iter().find(|it| it.name == group && wanted(it)) {
            return group;
        }
        let left = end.saturating_duration_since(Instant::now());
        events.recv_timeout(left).expect("the group comes to be as wanted");
    }
}

/// Waits until the group has this many replicas with its state.
pub fn wait_for_replicas(node: &Node, group: &str, count: usize) -> GroupStatus {
    wait_for(node, group, |group| {
        group.replicas.len() == count && group.replicas.iter().all(|replica| replica.synced)
    })
}

/// The state of each node's replica, when all have executed what any of them had when this was asked.
///
/// A reply does not wait for backups: they follow what the primary has proven.
pub fn states(nodes: &[Node], group: &str) -> Vec<Vec<u8>> {
    let executed = |node: &Node| {
        let groups = node.status().groups;
        groups.into_iter().find(|it| it.name == group).and_then(|it| it.executed)
    };
    let most = nodes.iter().map(executed).max().flatten().expect("a replica");
    let end = Instant::now() + PATIENCE;
    let state = |node: &Node| {
        let events = node.subscribe();
        while executed(node) < Some(most) {
            let left = end.saturating_duration_since(Instant::now());
            events.recv_timeout(left).expect("the replica executes what others have");
        }
        node.state(group).expect("a replica")
    };
    nodes.iter().map(state).collect()
}
