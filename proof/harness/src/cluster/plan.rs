//! The plan of a cluster: its parts, and where its nodes are.

use std::path::PathBuf;
use std::time::Duration;

use node::sched::Class;
use steadfast::{GroupOptions, ManagerKnobs, RegistryKnobs};

use crate::protect::Protect;

/// The plan of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Node processes.
    pub nodes: u32,
    /// Replicas of each group, on the first nodes.
    pub replicas: u32,
    /// The groups, by names that a child knows.
    pub groups: Vec<&'static str>,
    /// The groups are served by programs that the nodes run, not by the nodes.
    pub programs: Option<Programs>,
    /// Groups whose replicas are on the last nodes instead.
    pub on_last: &'static [&'static str],
    /// Groups that have one replica, on the first node.
    pub alone: &'static [&'static str],
    /// Groups that have nodes of their own, the primary's first.
    pub placed: Vec<(&'static str, &'static [u32])>,
    /// The protected parts.
    pub protect: Protect,
    /// Where the nodes are.
    pub placement: Placement,
    /// The scheduling class of each data plane. With a priority, handlers have one less.
    pub class: Class,
    /// The nodes keep the host's processors from sleeping.
    pub awake: bool,
    /// Each node has so many percent of a processor, in each span of this length.
    pub processor: Option<(u32, Duration)>,
    /// The knobs of the nodes' managers, if they have one.
    pub manager: Option<ManagerKnobs>,
    /// The books that the nodes keep.
    pub books: Books,
    /// The token always circulates, as in the paper; else it rests when nobody wants it.
    pub classic: bool,
    /// The ring's `accelerated`, if not that by default.
    pub accelerated: Option<usize>,
    /// The ring's `slow_share`, if not that by default.
    pub slow_share: Option<u32>,
    /// The ring's `token_timeout`, if not that by default.
    pub token_timeout: Option<Duration>,
    /// In a folder of its own here nodes keep what is on disk. Groups on disk need it.
    pub storage: Option<PathBuf>,
    /// Nodes' events are kept: see [`Cluster::copy_logs`](crate::cluster::Cluster::copy_logs).
    pub keep_logs: bool,
}

impl Plan {
    /// So many nodes, of which the first have replicas of these groups.
    pub fn of(nodes: u32, replicas: u32, groups: &[&'static str]) -> Plan {
        Plan { nodes, replicas, groups: groups.to_vec(), ..Plan::default() }
    }
}

/// Programs that serve the groups of a cluster, which have these options.
#[derive(Clone, Debug)]
pub enum Programs {
    /// Programs of [objects](crate::objects), which nodes run when an experiment says so: see
    /// [`Cluster::run_programs`](crate::cluster::Cluster::run_programs).
    WhenTold(GroupOptions),
    /// This program with these arguments, which nodes run at each of their starts.
    AtStart(GroupOptions, Vec<String>),
}

/// Books that the nodes of a cluster may keep.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Whether they keep the registry, and how.
    pub registry: Option<RegistryKnobs>,
    /// They keep the book of jobs: see [`Scene`](crate::jobs::Scene).
    pub jobs: bool,
}

/// Where the nodes of a cluster are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// All on this host, talking by its loopback interface.
    #[default]
    Loopback,
    /// Each on a host of its own, with so many links: see [`Hosts`](crate::hosts::Hosts).
    Hosts {
        /// Networks of the ring.
        links: usize,
    },
}

/// Where the nodes are to be, as an experiment is told.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Where {
    /// Each node on a host of its own: a network namespace (needs root, `ip` and `nft`).
    #[arg(long)]
    pub hosts: bool,
    /// Networks between these hosts, 1 to 4.
    #[arg(long, default_value_t = 1, requires = "hosts")]
    pub links: usize,
}

impl Where {
    /// The place.
    pub fn placement(self) -> Placement {
        let Where { hosts, links } = self;
        if hosts { Placement::Hosts { links } } else { Placement::Loopback }
    }
}
