//! A node's configuration: every knob, its default, and what values are possible.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ::manager::book as manager_book;
use engine::{Checkpoints, HangRule, Quorum};
use os::realtime::{MAX_PRIORITY, MAX_SPIN, MAX_WAKE_WITHIN, Realtime};
use wire::limits::{MAX_GROUPS, MAX_NAME, MAX_PROGRAMS};
use wire::ordered::{Durability, GroupOptions, Hold, Style};
use wire::{ClusterId, Duration, Incarnation, Member, NodeId};

use crate::Execution;
use crate::programs::ProgramConfig;

mod error;
mod file;
mod manager;
mod nodes;
mod registry;
mod security;

pub use error::{ConfigError, Problem};
pub use manager::ManagerKnobs;
pub use nodes::NodeAddress;
pub use registry::RegistryKnobs;
pub use security::{Security, TlsFiles};

/// The commented manual of all knobs, with their defaults: itself a valid configuration.
pub const DEFAULT_CONFIG: &str = include_str!("config/default.toml");

/// A node's configuration. [`DEFAULT_CONFIG`] explains each knob.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// This node's id.
    pub node: NodeId,
    /// The cluster's name.
    pub cluster: String,
    /// Where the incarnation is kept.
    pub data_dir: Option<PathBuf>,
    /// Where groups on disk are kept. `None`: nowhere, and this node hosts none.
    pub storage: Option<PathBuf>,
    /// Listening beyond loopback without keys is wanted.
    pub insecure: bool,
    /// Which configurations may acknowledge anything.
    pub quorum: Quorum,
    /// Keys and certificates.
    pub security: Security,
    /// Path of the admin socket.
    pub admin: Option<PathBuf>,
    /// Where the admin protocol is spoken over TLS. `None`: nowhere.
    pub admin_tls: Option<SocketAddr>,
    /// Where clients connect. `None`: nowhere.
    pub client: Option<SocketAddr>,
    /// What clients are told instead.
    pub advertise: Option<SocketAddr>,
    /// Every node of the cluster, this one included.
    pub nodes: Vec<NodeAddress>,
    /// The ring's knobs.
    pub ring: RingKnobs,
    /// How long a vote may be missing in a voting group, 1 ms to a minute.
    pub vote_patience: Duration,
    /// When a replica's service is hung.
    pub hang: HangRule,
    /// What this node tells of its host, and what follows from it.
    pub manager: ManagerKnobs,
    /// This node's part in the registry.
    pub registry: RegistryKnobs,
    /// What this node is, for deployments: rack, cell, kind of disk.
    pub labels: BTreeMap<String, String>,
    /// What is asked of the system, to be in time.
    pub realtime: Realtime,
    /// When this node's replicas take checkpoints, as primaries of cold passive groups.
    pub checkpoints: Checkpoints,
    /// Replicas of built-in services.
    pub replicas: Vec<ReplicaConfig>,
    /// Programs that serve replicas in processes of their own.
    pub programs: Vec<ProgramConfig>,
}

/// What [`Config::vote_patience`] may be.
const VOTE_PATIENCE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

/// What [`HangRule::within`] and [`HangRule::misses`] may be in [`Config::hang`].
const HUNG_WITHIN: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(3_600);
const HUNG_MISSES: u32 = 1_000;

/// The ring's knobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingKnobs {
    /// The timers.
    pub timing: ring::Timing,
    /// The timers of links, where nodes have several.
    pub links: ring::LinkTiming,
    /// Bytes of the largest datagram to send.
    pub datagram: usize,
    /// Datagrams that may be on the ring and not yet everywhere.
    pub window: usize,
    /// Datagrams that a holder may send in one turn while others want the token.
    pub turn: usize,
    /// Of those, how many may leave after the token.
    pub accelerated: usize,
    /// Percent of the time for which a member may hold up the others' sending for ever.
    pub slow_share: u32,
    /// An idle token rests.
    pub parking: bool,
}

impl RingKnobs {
    /// Bytes that the kernel must be able to keep of what one peer sends while this node does not
    /// read: at most a full window, of which it charges up to twice each datagram's size. Each peer
    /// has a socket of its own, so senders do not share it.
    pub fn receive_room(&self) -> usize {
        2 * self.window * self.datagram
    }
}

impl Default for RingKnobs {
    fn default() -> Self {
        // The ring owns its defaults; who and where do not matter to them.
        let me = Member { node: NodeId(1), incarnation: Incarnation(0) };
        let ring = ring::Config::new(ClusterId::of(""), me, vec![me.node]);
        RingKnobs {
            timing: ring.timing,
            links: ring::LinkTiming::default(),
            datagram: ring.datagram,
            window: ring.window,
            turn: ring.turn,
            accelerated: ring.accelerated,
            slow_share: ring.slow_share,
            parking: ring.parking,
        }
    }
}

/// A replica of a service that is built into the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// The group's name.
    pub group: String,
    /// The service's name, for the program to look up.
    pub service: String,
    /// How the group is replicated.
    pub style: Style,
    /// Who must hold a request before its reply may leave; `None`: as by default. A stateless group has no
    /// such thing.
    pub hold: Option<Hold>,
    /// Where the group is kept.
    pub durability: Durability,
    /// Where handlers run.
    pub execution: Execution,
}

impl ReplicaConfig {
    /// What all replicas of its group must agree on.
    pub fn options(&self) -> GroupOptions {
        let hold = self.hold.unwrap_or(GroupOptions::default().hold);
        GroupOptions { style: self.style, hold, durability: self.durability }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node: NodeId(1),
            cluster: "steadfast".into(),
            data_dir: None,
            storage: None,
            insecure: false,
            quorum: Quorum::Majority,
            security: Security::default(),
            admin: None,
            admin_tls: None,
            client: Some(SocketAddr::from(([127, 0, 0, 1], 7100))),
            advertise: None,
            nodes: vec![NodeAddress::new(NodeId(1), ([127, 0, 0, 1], 7201).into())],
            ring: RingKnobs::default(),
            vote_patience: Duration::from_secs(2),
            hang: HangRule::default(),
            manager: ManagerKnobs::default(),
            registry: RegistryKnobs::default(),
            labels: BTreeMap::new(),
            realtime: Realtime::default(),
            checkpoints: Checkpoints::default(),
            replicas: Vec::new(),
            programs: Vec::new(),
        }
    }
}

impl Config {
    /// A cluster of one on loopback, on any free ports: for tests and first steps.
    pub fn single() -> Config {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Config {
            client: Some(any),
            nodes: vec![NodeAddress::new(NodeId(1), any)],
            ..Config::default()
        }
    }

    /// Node `node` of a cluster whose nodes have the ids 1, 2, ... and these ring addresses.
    /// Clients connect at any free port of loopback. See [`crate::free_ring_addresses`].
    pub fn member(node: NodeId, rings: &[SocketAddr]) -> Config {
        let links: Vec<[SocketAddr; 1]> = rings.iter().map(|&ring| [ring]).collect();
        Config::linked(node, &links)
    }

    /// As [`Config::member`], with an address on each link for every node.
    pub fn linked(node: NodeId, rings: &[impl AsRef<[SocketAddr]>]) -> Config {
        let address = |(id, ring): (u32, &_)| {
            let ring: &[SocketAddr] = AsRef::as_ref(ring);
            NodeAddress { id: NodeId(id), ring: ring.to_vec() }
        };
        Config { node, nodes: (1..).zip(rings).map(address).collect(), ..Config::single() }
    }

    /// Reads a configuration file's text.
    ///
    /// # Errors
    /// What is wrong, in which line, and the remedy.
    pub fn from_toml(text: &str) -> Result<Config, ConfigError> {
        let config = file::parse(text)?;
        config.check().map_err(|problem| {
            let line = file::line_of(text, &problem.place());
            ConfigError::Value { line, problem }
        })?;
        Ok(config)
    }

    /// Relative paths become those of this folder, the configuration file's own.
    pub fn resolve(&mut self, folder: &Path) {
        let files = [&mut self.data_dir, &mut self.storage, &mut self.admin];
        files.into_iter().flatten().for_each(|file| *file = folder.join(&*file));
        self.security.resolve(folder);
        for program in &mut self.programs {
            let runs_in = program.folder.take().unwrap_or_default();
            program.folder = Some(folder.join(runs_in));
        }
    }

    /// The file's text that gives this configuration.
    pub fn to_toml(&self) -> String {
        file::print(self)
    }

    /// Checks what no single knob can: ranges, and knobs against each other. `Node::start` does
    /// it too.
    ///
    /// # Errors
    /// The first problem, with the remedy.
    pub fn check(&self) -> Result<(), Problem> {
        check_name("cluster", &self.cluster)?;
        nodes::check(self.node, &self.nodes)?;
        self.check_listening()?;
        self.check_realtime()?;
        if !VOTE_PATIENCE.contains(&self.vote_patience) {
            return Err(Problem::VotePatience(self.vote_patience));
        }
        if !HUNG_WITHIN.contains(&self.hang.within) || self.hang.misses > HUNG_MISSES {
            return Err(Problem::Hung(self.hang));
        }
        self.manager.check()?;
        self.registry.check()?;
        manager_book::check_labels(&self.labels)
            .map_err(|refusal| Problem::Labels(refusal.to_string()))?;
        if !self.checkpoints.is_possible() {
            return Err(Problem::Checkpoints);
        }
        self.check_replicas()?;
        self.check_programs()?;
        self.check_storage()?;
        let me = Member { node: self.node, incarnation: Incarnation(0) };
        self.ring_config(me).check().map_err(Problem::Ring)
    }

    /// This node's ring address on each link.
    pub(crate) fn ring_addresses(&self) -> &[SocketAddr] {
        let mine = self.nodes.iter().find(|node| node.id == self.node);
        mine.map_or(&[], |node| &node.ring)
    }

    /// The ring's part of the configuration, for this life of the node.
    pub(crate) fn ring_config(&self, me: Member) -> ring::Config {
        let mut nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        nodes.sort_unstable();
        let mut ring = ring::Config::new(ClusterId::of(&self.cluster), me, nodes);
        ring.timing = self.ring.timing;
        ring.datagram = self.ring.datagram;
        ring.window = self.ring.window;
        ring.turn = self.ring.turn;
        ring.accelerated = self.ring.accelerated;
        ring.slow_share = self.ring.slow_share;
        ring.parking = self.ring.parking;
        ring
    }

    /// The part that concerns links.
    pub(crate) fn links_config(&self, me: Member) -> ring::LinksConfig {
        let ring::Config { cluster, nodes, .. } = self.ring_config(me);
        let (count, timing) = (self.ring_addresses().len(), self.ring.links);
        ring::LinksConfig {
            cluster,
            me,
            nodes,
            count,
            timing,
            #[cfg(feature = "planted-bugs")]
            bug: None,
        }
    }

    fn check_realtime(&self) -> Result<(), Problem> {
        let wishes = [
            ("priority", self.realtime.priority),
            ("executor_priority", self.realtime.executor_priority),
        ];
        if let Some((key, value)) = wishes.into_iter().find(|(_, value)| *value > MAX_PRIORITY) {
            return Err(Problem::Priority { key, value });
        }
        if self.realtime.spin > MAX_SPIN {
            return Err(Problem::Spin(self.realtime.spin));
        }
        if let Some(within) = self.realtime.wake_within.filter(|within| *within > MAX_WAKE_WITHIN) {
            return Err(Problem::WakeWithin(within));
        }
        Ok(())
    }

    fn check_listening(&self) -> Result<(), Problem> {
        if self.client.is_none() && self.advertise.is_some() {
            return Err(Problem::AdvertiseWithoutClient);
        }
        if let Some(address) = self.advertise
            && (address.ip().is_unspecified() || address.port() == 0)
        {
            return Err(Problem::Advertise(address));
        }
        let meets = |client: SocketAddr, ring: &SocketAddr| {
            client.port() == ring.port()
                && client.port() != 0
                && (client.ip() == ring.ip() || client.ip().is_unspecified())
        };
        if let Some(client) = self.client
            && self.ring_addresses().iter().any(|ring| meets(client, ring))
        {
            return Err(Problem::ClientIsRing(client));
        }
        if let Some(key) = self.security.gap() {
            return Err(Problem::TlsIncomplete(key));
        }
        if let Some(admin) = self.admin_tls {
            if self.security.tls().is_none() {
                return Err(Problem::AdminWithoutTls(admin));
            }
            let mut taken = self.client.iter().chain(self.ring_addresses());
            if admin.port() != 0 && taken.any(|other| other.port() == admin.port()) {
                return Err(Problem::AdminPortTaken(admin));
            }
        }
        let missing = self.security.missing();
        if self.insecure || missing.is_empty() {
            return Ok(());
        }
        if let Some(address) = self.client
            && !address.ip().is_loopback()
        {
            return Err(Problem::InsecureClient { address, missing: missing.join(", ") });
        }
        let open = self.ring_addresses().iter().find(|ring| !ring.ip().is_loopback());
        if let Some(&address) = open {
            let index = self.nodes.iter().position(|node| node.id == self.node).unwrap_or(0);
            return Err(Problem::InsecureRing { index, address, missing: missing.join(", ") });
        }
        match self.admin_tls {
            Some(address) if !address.ip().is_loopback() => {
                Err(Problem::InsecureAdmin { address, missing: missing.join(", ") })
            }
            _ => Ok(()),
        }
    }

    fn check_replicas(&self) -> Result<(), Problem> {
        if self.replicas.len() > MAX_GROUPS {
            return Err(Problem::TooManyReplicas(self.replicas.len()));
        }
        for (index, replica) in self.replicas.iter().enumerate() {
            if !(1..=MAX_NAME).contains(&replica.group.len()) {
                return Err(Problem::GroupName { index, length: replica.group.len() });
            }
            if self.replicas[..index].iter().any(|other| other.group == replica.group) {
                return Err(Problem::ReplicaTwice { index, group: replica.group.clone() });
            }
            if replica.style == Style::Stateless && replica.hold.is_some() {
                return Err(Problem::HoldOfStateless { index });
            }
            if replica.durability == Durability::Disk && !replica.style.has_state() {
                return Err(Problem::DiskOfStateless { index });
            }
        }
        Ok(())
    }

    fn check_storage(&self) -> Result<(), Problem> {
        if self.storage.is_some() {
            return match self.data_dir {
                Some(_) => Ok(()),
                None => Err(Problem::StorageWithoutDataDir),
            };
        }
        let disk = |durability: Durability| durability == Durability::Disk;
        if let Some(index) = self.replicas.iter().position(|replica| disk(replica.durability)) {
            return Err(Problem::NoStorage { table: "replica", index });
        }
        let programs = &mut self.programs.iter();
        match programs.position(|program| disk(program.options.durability)) {
            Some(index) => Err(Problem::NoStorage { table: "program", index }),
            None => Ok(()),
        }
    }

    fn check_programs(&self) -> Result<(), Problem> {
        if self.admin.is_none() && !self.programs.is_empty() {
            return Err(Problem::ProgramsWithoutAdmin);
        }
        if self.programs.len() > MAX_PROGRAMS {
            return Err(Problem::TooManyPrograms(self.programs.len()));
        }
        for (index, program) in self.programs.iter().enumerate() {
            if let Err(error) = program.check() {
                return Err(Problem::Program { index, problem: error.to_string() });
            }
            let earlier = self.programs[..index].iter().map(|other| &other.group);
            let mut taken = earlier.chain(self.replicas.iter().map(|replica| &replica.group));
            if taken.any(|group| *group == program.group) {
                return Err(Problem::ProgramTwice { index, group: program.group.clone() });
            }
        }
        Ok(())
    }
}

fn check_name(key: &'static str, name: &str) -> Result<(), Problem> {
    if (1..=MAX_NAME).contains(&name.len()) {
        Ok(())
    } else {
        Err(Problem::Name { key, length: name.len() })
    }
}

#[cfg(test)]
mod tests;
