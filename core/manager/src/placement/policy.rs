//! Policies: which host is the best for a replica, and how many replicas are to be there now.
//!
//! A policy is a function of its arguments, without a state or a clock of its own: the next leader
//! decides alike.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use wire::{Duration, NodeId, Share};

use crate::cluster_state::{self, Deployment, Labels};

/// A node that could have a replica.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// The node.
    pub node: NodeId,
    /// The labels of the node.
    pub labels: &'a Labels,
    /// The capacity of its processors.
    pub capacity: Share,
    /// The used part of it; `None`: it has not reported.
    pub used: Option<Share>,
    /// Replicas of other deployments that are placed there.
    pub replicas: usize,
}

/// How good a place is: the less the better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// The number of objections to the place. A replica that serves moves to have fewer of them, so
    /// this must not depend on load.
    pub flaws: u32,
    /// Between places without more flaws. No replica moves for it.
    pub load: Load,
}

/// How much a host has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load {
    /// Used, in steps of a twentieth of the capacity: what is less is noise.
    pub twentieths: u64,
    /// Replicas that are placed there.
    pub replicas: usize,
}

impl Load {
    /// The load of a host. A host that has reported nothing counts as full.
    pub fn of(host: &Host<'_>) -> Load {
        let used = host.used.unwrap_or(host.capacity);
        let twentieths = used.0.saturating_mul(20).checked_div(host.capacity.0).unwrap_or(u64::MAX);
        Load { twentieths, replicas: host.replicas }
    }
}

/// On which nodes replicas are to be.
pub trait Distribution {
    /// The cost of a replica at this host beside others at those. `None`: it may not be there.
    fn cost(&self, host: &Host<'_>, beside: &[Host<'_>]) -> Option<Cost>;
}

/// Where least is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoaded;

impl Distribution for LeastLoaded {
    fn cost(&self, host: &Host<'_>, _: &[Host<'_>]) -> Option<Cost> {
        Some(Cost { flaws: 0, load: Load::of(host) })
    }
}

/// As many different values of a label as there can be: a flaw for each other replica at the same
/// value.
#[derive(Clone, Debug)]
pub struct Spread(pub String);

impl Distribution for Spread {
    fn cost(&self, host: &Host<'_>, beside: &[Host<'_>]) -> Option<Cost> {
        let value = host.labels.get(&self.0)?;
        let same = beside.iter().filter(|other| other.labels.get(&self.0) == Some(value)).count();
        Some(Cost { flaws: u32::try_from(same).unwrap_or(u32::MAX), load: Load::of(host) })
    }
}

/// On these nodes alone.
#[derive(Clone, Debug)]
pub struct Pinned(pub Vec<NodeId>);

impl Distribution for Pinned {
    fn cost(&self, host: &Host<'_>, _: &[Host<'_>]) -> Option<Cost> {
        self.0.contains(&host.node).then(|| Cost { flaws: 0, load: Load::of(host) })
    }
}

/// The present redundancy of a deployment.
#[derive(Clone, Copy, Debug)]
pub struct Redundancy {
    /// Replicas that are wanted.
    pub wanted: usize,
    /// Replicas at hosts that may keep them, with or without the state.
    pub there: usize,
    /// All that are wanted have been there since it was deployed.
    pub filled: bool,
    /// How long some have been missing.
    pub missing_for: Duration,
}

/// How many replicas are to be there.
pub trait Replication {
    /// So many are to be there now, at most as many as are wanted.
    fn due(&self, now: &Redundancy) -> usize;
}

/// All, at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep;

impl Replication for Keep {
    fn due(&self, now: &Redundancy) -> usize {
        now.wanted
    }
}

/// All, when some have been missing for so long.
#[derive(Clone, Copy, Debug)]
pub struct KeepAfter(pub Duration);

impl Replication for KeepAfter {
    fn due(&self, now: &Redundancy) -> usize {
        if now.filled && now.missing_for < self.0 { now.there } else { now.wanted }
    }
}

/// So many. The others when a person says so.
#[derive(Clone, Copy, Debug)]
pub struct Minimum(pub usize);

impl Replication for Minimum {
    fn due(&self, now: &Redundancy) -> usize {
        if now.filled { now.there.max(self.0) } else { now.wanted }
    }
}

/// The policy of this name.
pub fn distribution(deployment: &Deployment) -> Box<dyn Distribution> {
    match &deployment.distribution {
        cluster_state::Distribution::LeastLoaded => Box::new(LeastLoaded),
        cluster_state::Distribution::Spread(label) => Box::new(Spread(label.clone())),
        cluster_state::Distribution::Pinned(nodes) => Box::new(Pinned(nodes.clone())),
    }
}

/// The policy of this name.
pub fn replication(deployment: &Deployment) -> Box<dyn Replication> {
    match deployment.replication {
        cluster_state::Replication::Keep => Box::new(Keep),
        cluster_state::Replication::KeepAfter(wait) => Box::new(KeepAfter(wait)),
        cluster_state::Replication::Minimum(least) => Box::new(Minimum(least as usize)),
    }
}
