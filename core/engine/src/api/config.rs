//! Who a node is, and its knobs.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::keys::KeyName;
use wire::limits::MAX_WAITING;
use wire::{Duration, Member, NodeId};

use super::HangRule;

/// Which configurations may acknowledge anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Quorum {
    /// A majority of the last quorate configuration, and of the configured nodes.
    #[default]
    Majority,
    /// Every configuration. A partition then splits every group: only for two hosts that cannot
    /// lose sight of each other without one of them being dead, or for a single node.
    Off,
}

/// A node without its sockets and what orders its messages: who it is and its knobs.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node, in this life.
    pub me: Member,
    /// Every node that may be there, this one included, in order of id.
    pub nodes: Vec<NodeId>,
    /// Seed of the random numbers that are ordered with requests.
    pub seed: u64,
    /// The cluster's name, told to clients.
    pub cluster: String,
    /// Which configurations may acknowledge anything.
    pub quorum: Quorum,
    /// This node never ran before, as its disk knows: it cannot have forgotten anything. Without
    /// a disk nobody knows, so it is false, and a cluster's first start waits for every node.
    pub first_life: bool,
    /// Where clients connect to this node, as told to them. `None`: it takes no clients.
    pub address: Option<SocketAddr>,
    /// The key that seals this node's datagrams. `None`: they are not sealed.
    pub sealing: Option<KeyName>,
    /// Calls that may wait here for a view, an execution or their hold, at most [`MAX_WAITING`]. More are refused as busy.
    pub waiting: usize,
    /// What this node's store gave back; `None`: it has no storage, and cannot host groups on disk.
    pub storage: Option<crate::Recovery>,
    /// After so many records of a group, or [`SNAPSHOT_BYTES`](Config::SNAPSHOT_BYTES), a snapshot stands for
    /// them: so much a restart has to give to its service again.
    pub snapshot_after: u64,
    /// In a voting group: how long a replica's vote may be missing after a majority has told theirs, before it is said so.
    /// Where the slowest replica takes long as a rule, eight times as long as that.
    pub vote_timeout: Duration,
    /// When a replica's service is hung.
    pub hang: HangRule,
    /// A mistake planted on purpose, for the simulator.
    #[cfg(feature = "planted-bugs")]
    pub bug: Option<crate::Bug>,
}

impl Config {
    /// See [`snapshot_after`](Config::snapshot_after).
    pub const SNAPSHOT_BYTES: usize = 32 << 20;

    /// Default knobs for `me` among `nodes`, in the cluster of this name.
    pub fn new(me: Member, nodes: Vec<NodeId>, cluster: String) -> Self {
        Config {
            me,
            nodes,
            seed: me.incarnation.0 ^ u64::from(me.node.0),
            cluster,
            quorum: Quorum::default(),
            first_life: false,
            address: None,
            sealing: None,
            waiting: MAX_WAITING,
            storage: None,
            snapshot_after: 10_000,
            vote_timeout: Duration::from_secs(2),
            hang: HangRule::default(),
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }
}
