//! A node's configuration as one value.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use engine::{Checkpoints, HangRule, Quorum};
use os::realtime::Realtime;
use wire::{ClusterId, Duration, Member, NodeId};

use crate::error::Problem;
use crate::folders::Folders;
use crate::knobs::{JobsKnobs, ManagerKnobs, RegistryKnobs, RingKnobs};
use crate::nodes::{self, NodeAddress};
use crate::program::ProgramConfig;
use crate::replica::ReplicaConfig;
use crate::rights::Rights;
use crate::security::Security;
use crate::system::System;

/// A node's configuration. [`DEFAULT_CONFIG`](crate::DEFAULT_CONFIG) explains each knob.
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
    /// The address that clients are given instead.
    pub advertise: Option<SocketAddr>,
    /// Where programs call by gRPC and HTTP. `None`: nowhere.
    pub grpc: Option<SocketAddr>,
    /// Every node of the cluster, this one included.
    pub nodes: Vec<NodeAddress>,
    /// The ring's knobs.
    pub ring: RingKnobs,
    /// How long a vote may be missing in a voting group, 1 ms to a minute.
    pub vote_timeout: Duration,
    /// After this time, rules that all nodes know come into force. 0: only when they are asked for.
    pub settle: Duration,
    /// When a replica's service is hung.
    pub hang: HangRule,
    /// The calls that clients who connect here may make.
    pub rights: Rights,
    /// The reports of this node's load, and the manager's reaction to them.
    pub manager: ManagerKnobs,
    /// This node's part in the registry.
    pub registry: RegistryKnobs,
    /// This node's part in jobs.
    pub jobs: JobsKnobs,
    /// The cell's place in its system. `None`: the cluster stands alone.
    pub system: Option<System>,
    /// Labels of this node for deployments: rack, cell, kind of disk.
    pub labels: BTreeMap<String, String>,
    /// Requests to the system for real-time behaviour.
    pub realtime: Realtime,
    /// When this node's replicas take checkpoints, as primaries of cold passive groups.
    pub checkpoints: Checkpoints,
    /// Replicas of built-in services.
    pub replicas: Vec<ReplicaConfig>,
    /// Programs that serve replicas in processes of their own.
    pub programs: Vec<ProgramConfig>,
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
            grpc: None,
            nodes: vec![NodeAddress::new(NodeId(1), ([127, 0, 0, 1], 7201).into())],
            ring: RingKnobs::default(),
            vote_timeout: Duration::from_secs(2),
            settle: engine::Config::SETTLE,
            hang: HangRule::default(),
            rights: Rights::default(),
            manager: ManagerKnobs::default(),
            registry: RegistryKnobs::default(),
            jobs: JobsKnobs::default(),
            system: None,
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
    /// Clients connect at any free port of loopback. See [`os::ports::free_ring_addresses`].
    pub fn member(node: NodeId, rings: &[SocketAddr]) -> Config {
        let links: Vec<[SocketAddr; 1]> = rings.iter().map(|&ring| [ring]).collect();
        Config::linked(node, &links)
    }

    /// As [`Config::member`], with an address on each link for every node.
    pub fn linked(node: NodeId, rings: &[impl AsRef<[SocketAddr]>]) -> Config {
        let address = |(id, ring): (u32, &_)| {
            let ring: &[SocketAddr] = AsRef::as_ref(ring);
            NodeAddress::linked(NodeId(id), ring.to_vec())
        };
        Config { node, nodes: (1..).zip(rings).map(address).collect(), ..Config::single() }
    }

    /// Relative paths become those of these folders.
    pub fn resolve(&mut self, folders: &Folders) {
        let state = [
            &mut self.data_dir,
            &mut self.storage,
            &mut self.jobs.folder,
            &mut self.security.cluster_key,
        ];
        state.into_iter().flatten().for_each(|file| *file = folders.state.join(&*file));
        let runtime = [&mut self.admin, &mut self.realtime.daemon];
        runtime.into_iter().flatten().for_each(|file| *file = folders.runtime.join(&*file));
        self.security.resolve(&folders.config);
        for program in &mut self.programs {
            let runs_in = program.folder.take().unwrap_or_default();
            program.folder = Some(folders.config.join(runs_in));
        }
    }

    /// This node's ring address on each link.
    pub fn ring_addresses(&self) -> &[SocketAddr] {
        let mine = self.nodes.iter().find(|node| node.id == self.node);
        mine.map_or(&[], |node| &node.ring)
    }

    /// Looks the names of hosts in the list of nodes up. Returns the nodes whose names are not known
    /// now. It may take some seconds.
    ///
    /// # Errors
    /// This node's own name is not known.
    pub fn look_up_names(&mut self) -> Result<Vec<NodeId>, Problem> {
        let unknown = nodes::look_up(self.node, &mut self.nodes)?;
        Ok(unknown.into_iter().map(|place| self.nodes[place].id).collect())
    }

    /// The nodes, in order of id.
    pub fn node_ids(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.nodes.iter().map(|node| node.id).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The ring's part of the configuration, for this life of the node.
    pub fn ring_config(&self, me: Member) -> ring::Config {
        let mut ring = ring::Config::new(ClusterId::of(&self.cluster), me, self.node_ids());
        self.ring.apply(&mut ring);
        ring
    }

    /// The part that concerns links.
    pub fn links_config(&self, me: Member) -> ring::LinksConfig {
        let ring::Config { cluster, nodes, .. } = self.ring_config(me);
        let (count, timing) = (self.ring_addresses().len(), self.ring.links);
        ring::LinksConfig { cluster, me, nodes, count, timing, planted: ring::Planted::default() }
    }
}
