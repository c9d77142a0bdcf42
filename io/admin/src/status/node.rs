//! All that a node knows.

use std::net::SocketAddr;

use engine::NestedStatus;
use os::clock::monotonic;
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

/// What a node knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// This node.
    pub node: NodeId,
    /// Which of its lives.
    pub incarnation: Incarnation,
    /// The cluster's name.
    pub cluster: String,
    /// Where clients connect.
    pub client: Option<SocketAddr>,
    /// The ring.
    pub ring: RingStatus,
    /// The groups that this node knows, in order of name.
    pub groups: Vec<GroupStatus>,
    /// What hosts have to do, as their nodes have told, in order of id.
    #[serde(default)]
    pub hosts: Vec<HostStatus>,
    /// Who manages; `None` where this node has `[manager]` off.
    #[serde(default)]
    pub manager: Option<ManagerStatus>,
    /// Programs that serve replicas in processes of their own, in order of their groups' names.
    #[serde(default)]
    pub programs: Vec<ProgramStatus>,
    /// What of the requests in `[realtime]` the system has granted.
    #[serde(default)]
    pub realtime: RealtimeStatus,
    /// TLS at the ports for clients and administrators.
    #[serde(default)]
    pub tls: TlsStatus,
    /// How the ring's datagrams are sealed; `None`: not at all.
    #[serde(default)]
    pub seal: Option<SealStatus>,
    /// Where groups on disk are kept; `None`: nowhere.
    #[serde(default)]
    pub storage: Option<StorageStatus>,
    /// The ring's sockets.
    #[serde(default)]
    pub sockets: SocketStatus,
    /// Calls between groups.
    #[serde(default)]
    pub nested: NestedStatus,
    /// What was counted since the start.
    pub counters: Counters,
}

/// What the system grants the ring's sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketStatus {
    /// The other nodes, on each link.
    pub peers: usize,
    /// To so many of them runs of datagrams leave in one system call (`UDP_SEGMENT`); to the rest
    /// one by one.
    pub runs_out: usize,
    /// Runs of datagrams are read in one system call (`UDP_GRO`).
    pub runs_in: bool,
    /// Bytes that the kernel keeps of what one peer has sent until it is read, its own
    /// bookkeeping included.
    pub receive_buffer: usize,
}

impl SocketStatus {
    /// Of two links together.
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
    /// The engine's status, and who says it. the driver adds what it knows of itself.
    pub fn new(
        status: engine::Status,
        cluster: &str,
        configured: Vec<NodeId>,
        client: Option<SocketAddr>,
        counters: Counters,
    ) -> Status {
        let ring = status.ring;
        Status {
            node: status.me.node,
            incarnation: status.me.incarnation,
            cluster: cluster.into(),
            client,
            ring: RingStatus {
                state: ring.state.into(),
                id: ring.id,
                configured,
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
            counters,
            ..Status::default()
        }
    }

    /// What is left to say of a node that runs no more.
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
