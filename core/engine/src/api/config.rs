//! A node's identity and its settings.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use wire::keys::KeyName;
use wire::limits::{MAX_WAITING, STREAMED_STATE};
use wire::roster::Roster;
use wire::{Duration, Member, NodeId, Program};

use super::HangRule;

/// Which configurations may acknowledge anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Quorum {
    /// A majority of the last quorate configuration, and of the configured nodes.
    #[default]
    Majority,
    /// Every configuration. A partition then splits every group. Use it only for a single node, or
    /// for two hosts between which a partition is impossible while both live.
    Off,
}

/// The identity and the settings of a node's [`Stack`](crate::Stack). The sockets and the ring have
/// their own.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node, in this life.
    pub me: Member,
    /// All nodes of the cluster, this one included, in order of id, as they were configured.
    pub nodes: Vec<NodeId>,
    /// The roster on the node's disk; `None`: the nodes were never changed, as far as it knows.
    pub roster: Option<Roster>,
    /// Seed of the random numbers that are ordered with requests.
    pub seed: u64,
    /// The cluster's name, sent to clients.
    pub cluster: String,
    /// Which configurations may acknowledge requests.
    pub quorum: Quorum,
    /// The disk shows that this node never ran before, so it cannot have forgotten anything.
    /// Without a disk this is unknown, hence false: a cluster's first start waits for every node.
    pub first_life: bool,
    /// The address for clients, sent to them. `None`: this node accepts no clients.
    pub address: Option<SocketAddr>,
    /// This node's program.
    pub program: Program,
    /// Rules that every configured node knows come into force after this time. `None`: only when
    /// they are [asked for](crate::Stack::finish_upgrade).
    pub settle: Option<Duration>,
    /// The key that seals this node's datagrams. `None`: they are not sealed.
    pub sealing: Option<KeyName>,
    /// The most calls that may wait here for a view, an execution or acknowledgement, up to
    /// [`MAX_WAITING`]. Further calls are refused as busy.
    pub waiting: usize,
    /// The state that this node's store recovered. `None`: there is no storage, so this node cannot
    /// host groups on disk.
    pub storage: Option<crate::Recovery>,
    /// A group's snapshot is taken after this many records, or after
    /// [`SNAPSHOT_BYTES`](Config::SNAPSHOT_BYTES). A restart replays the records after it.
    pub snapshot_after: u64,
    /// In a voting group: how long a vote may be missing, after a majority has voted, before it is
    /// reported. If the slowest replica usually takes longer, eight times its usual delay.
    pub vote_timeout: Duration,
    /// Time between two comparisons of a group's replicas.
    pub compare_every: Duration,
    /// Bytes from which on a state is fetched by a stream ([`STREAMED_STATE`]).
    pub streamed: usize,
    /// When a replica's service is hung.
    pub hang: HangRule,
    /// A mistake planted on purpose, for the simulator.
    #[cfg(feature = "planted-bugs")]
    pub bug: Option<crate::Bug>,
}

impl Config {
    /// See [`snapshot_after`](Config::snapshot_after).
    pub const SNAPSHOT_BYTES: usize = 32 << 20;

    /// See [`compare_every`](Config::compare_every).
    pub const COMPARE_EVERY: Duration = Duration::from_secs(60);

    /// See [`settle`](Config::settle).
    pub const SETTLE: Duration = Duration::from_secs(600);

    /// Default settings for `me` among `nodes`, in the cluster of this name.
    pub fn new(me: Member, nodes: Vec<NodeId>, cluster: String) -> Self {
        Config {
            me,
            nodes,
            roster: None,
            seed: me.incarnation.0 ^ u64::from(me.node.0),
            cluster,
            quorum: Quorum::default(),
            first_life: false,
            address: None,
            program: Program::this(env!("CARGO_PKG_VERSION")),
            settle: Some(Config::SETTLE),
            sealing: None,
            waiting: MAX_WAITING,
            storage: None,
            snapshot_after: 10_000,
            vote_timeout: Duration::from_secs(2),
            compare_every: Config::COMPARE_EVERY,
            streamed: STREAMED_STATE,
            hang: HangRule::default(),
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }
}
