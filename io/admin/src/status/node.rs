//! The status of a node.

use std::net::SocketAddr;

use engine::NestedStatus;
use os::clock::monotonic;
use os::closer::CloserStatus;
use os::realtime::RealtimeStatus;
use serde::{Deserialize, Serialize};
use wire::{Incarnation, Member, NodeId};

use super::counters::Counters;
use super::group::GroupStatus;
use super::host::{HostStatus, ManagerStatus};
use super::program::ProgramStatus;
use super::ring::RingStatus;
use super::security::{SealStatus, TlsStatus};
use super::storage::StorageStatus;
use super::versions::VersionsStatus;
use crate::growth::NodesStatus;

/// The status of a node, as `steadfast status --json` shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// The node's incarnation.
    pub incarnation: Incarnation,
    /// The cluster's name.
    pub cluster: String,
    /// The address for clients.
    pub client: Option<SocketAddr>,
    /// The ring.
    pub ring: RingStatus,
    /// The groups that this node knows, in order of name.
    pub groups: Vec<GroupStatus>,
    /// The load of hosts, as their nodes last reported it, in order of id.
    #[serde(default)]
    pub hosts: Vec<HostStatus>,
    /// The manager; `None`: this node has `[manager]` off.
    #[serde(default)]
    pub manager: Option<ManagerStatus>,
    /// Programs that serve replicas in separate processes, in order of group name.
    #[serde(default)]
    pub programs: Vec<ProgramStatus>,
    /// Which of the settings in `[realtime]` the system has granted.
    #[serde(default)]
    pub realtime: RealtimeStatus,
    /// The process by which this one's sockets close at once when it dies.
    #[serde(default)]
    pub closer: CloserStatus,
    /// TLS at the ports for clients and administrators.
    #[serde(default)]
    pub tls: TlsStatus,
    /// The seal of the ring's datagrams; `None`: they are not sealed.
    #[serde(default)]
    pub seal: Option<SealStatus>,
    /// The storage of groups on disk; `None`: there is none.
    #[serde(default)]
    pub storage: Option<StorageStatus>,
    /// The ring's sockets.
    #[serde(default)]
    pub sockets: SocketStatus,
    /// The nodes that count, and one that comes or goes.
    #[serde(default)]
    pub nodes: NodesStatus,
    /// The versions in use, and the nodes' programs.
    #[serde(default)]
    pub versions: VersionsStatus,
    /// Nested calls.
    #[serde(default)]
    pub nested: NestedStatus,
    /// Counters since the start.
    pub counters: Counters,
}

/// The system's grants to the ring's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketStatus {
    /// The number of the other nodes, summed over the links.
    pub peers: usize,
    /// Peers to which one system call sends several datagrams (`UDP_SEGMENT`). To the others, each
    /// datagram needs its own.
    pub runs_out: usize,
    /// One system call reads several datagrams (`UDP_GRO`).
    pub runs_in: bool,
    /// The kernel's receive buffer for one peer in bytes, with the kernel's overhead.
    pub receive_buffer: usize,
}

impl SocketStatus {
    /// Combines the status of two links.
    pub fn and(self, other: SocketStatus) -> SocketStatus {
        SocketStatus {
            peers: self.peers + other.peers,
            runs_out: self.runs_out + other.runs_out,
            runs_in: self.runs_in && other.runs_in,
            receive_buffer: self.receive_buffer.min(other.receive_buffer),
        }
    }
}

impl Status {
    /// Converts the engine's status. The I/O driver fills in the fields that only it knows.
    pub fn new(
        status: engine::Status,
        cluster: &str,
        client: Option<SocketAddr>,
        counters: Counters,
    ) -> Status {
        let ring = status.ring;
        let nodes = NodesStatus::from(status.growth);
        Status {
            node: status.me.node,
            incarnation: status.me.incarnation,
            cluster: cluster.into(),
            client,
            ring: RingStatus {
                state: ring.state.into(),
                id: ring.id,
                configured: nodes.counted.clone(),
                members: ring.members,
                quorate: ring.quorate,
                epoch: ring.epoch,
                delivered: ring.delivered,
                buffers: ring.buffers.unwrap_or_default(),
                rotations: ring.rotations,
                ..RingStatus::default()
            },
            groups: status.groups.into_iter().map(|it| GroupStatus::new(it, monotonic())).collect(),
            nested: status.nested,
            nodes,
            versions: VersionsStatus::new(status.versions, monotonic()),
            counters,
            ..Status::default()
        }
    }

    /// The status of a node that has stopped.
    pub fn stopped(me: Member, cluster: &str) -> Status {
        Status {
            node: me.node,
            incarnation: me.incarnation,
            cluster: cluster.into(),
            ring: RingStatus { state: "stopped".into(), ..RingStatus::default() },
            ..Status::default()
        }
    }
}
