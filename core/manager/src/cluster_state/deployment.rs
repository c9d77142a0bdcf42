//! The description of one service, as people deploy it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use wire::limits::{MAX_DISKS, MAX_LABEL, MAX_LABELS, MAX_MEMBERS, MAX_NAME};
use wire::ordered::GroupOptions;
use wire::{Duration, NodeId};

use super::refusal::Refusal;
use qos::Task;

/// Names with values, in order of name: what a node is, or is to be.
pub type Labels = alloc::collections::BTreeMap<String, String>;

/// A service that is to run on some of the cluster's nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// The group's name.
    pub group: String,
    /// The program that each replica runs.
    pub program: Program,
    /// The options on which all replicas agree.
    pub options: GroupOptions,
    /// How many replicas are wanted.
    pub replicas: u32,
    /// The share of a processor that a replica needs; `None`: it is not counted.
    pub need: Option<Need>,
    /// The reserve of each replica at its host's daemon, with the processor time of the need;
    /// `None`: nothing.
    pub reserve: Option<Box<Reservation>>,
    /// How critical calls are whose clients do not say it. Where not all can be served, the most
    /// critical are.
    pub priority: u8,
    /// Labels that a node must have.
    pub labels: Labels,
    /// On which of the nodes.
    pub distribution: Distribution,
    /// When a replica that is lost is replaced.
    pub replication: Replication,
}

/// A program that serves a replica. It must be at the same path on every host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: Option<String>,
    /// Added to the node's own environment.
    pub environment: Labels,
}

/// The share of a processor that a replica needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// The cost of a call, in time of one processor.
    pub cost: Duration,
    /// Between two calls.
    pub period: Duration,
    /// Within which a call is to be answered.
    pub deadline: Duration,
}

impl Need {
    /// As a task for a bound.
    pub fn task(&self) -> Task {
        Task { cost: self.cost, period: self.period, deadline: self.deadline }
    }
}

/// The reserve of each replica at its host, beside processor time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Bytes of memory that are kept for it.
    pub memory: u64,
    /// Bytes of memory that it may not exceed; 0: no limit.
    pub memory_most: u64,
    /// Bytes a second of disks.
    pub disks: Vec<Disk>,
}

/// Bytes a second of the disk that has a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The folder.
    pub folder: String,
    /// Read; 0: no limit.
    pub read: u64,
    /// Written; 0: no limit.
    pub write: u64,
}

impl Reservation {
    fn is_possible(&self) -> bool {
        let memory = self.memory_most == 0 || self.memory <= self.memory_most;
        memory && self.disks.len() <= MAX_DISKS && self.disks.iter().all(|it| !it.folder.is_empty())
    }
}

/// On which nodes replicas are to be: the policies of [`placement`](crate::placement) by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Where least is used.
    #[default]
    LeastLoaded,
    /// On nodes with different values of this label, as far as there are such.
    Spread(String),
    /// On these nodes and no others.
    Pinned(Vec<NodeId>),
}

/// When replicas that are lost are replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replication {
    /// At once.
    #[default]
    Keep,
    /// When they have been missing for so long: a host that is started anew is back before.
    KeepAfter(Duration),
    /// Only so many: the others when a person deploys it again.
    Minimum(u32),
}

impl Deployment {
    /// So many replicas of a group, each run by this command, and everything else as by default:
    /// see the fields.
    pub fn new(group: impl Into<String>, command: Vec<String>, replicas: u32) -> Deployment {
        Deployment {
            group: group.into(),
            program: Program { command, folder: None, environment: Labels::new() },
            options: GroupOptions::default(),
            replicas,
            need: None,
            reserve: None,
            priority: 0,
            labels: Labels::new(),
            distribution: Distribution::default(),
            replication: Replication::default(),
        }
    }

    /// # Errors
    /// The reason why the deployment is impossible, and the remedy.
    pub fn check(&self) -> Result<(), Refusal> {
        let named = (1..=MAX_NAME).contains(&self.group.len());
        if !named || wire::system::is_system(&self.group) {
            return Err(Refusal::Name(self.group.clone()));
        }
        if self.program.command.first().is_none_or(String::is_empty) {
            return Err(Refusal::NoCommand);
        }
        let wanted = self.replicas;
        if !(1..=MAX_MEMBERS as u32).contains(&wanted) {
            return Err(Refusal::Replicas(wanted));
        }
        if let Replication::Minimum(least) = self.replication
            && !(1..=wanted).contains(&least)
        {
            return Err(Refusal::Least { least, wanted });
        }
        // A call runs on one processor at a time, so it ends after its cost at the earliest.
        let possible = |need: &Need| {
            !need.cost.is_zero() && need.cost <= need.deadline && need.deadline <= need.period
        };
        if !self.need.as_ref().is_none_or(possible) {
            return Err(Refusal::Need);
        }
        if !self.reserve.as_ref().is_none_or(|reserve| reserve.is_possible()) {
            return Err(Refusal::Reservation);
        }
        if let Distribution::Spread(label) = &self.distribution
            && !is_label(label)
        {
            return Err(Refusal::Label(label.clone()));
        }
        check_labels(&self.labels)
    }

    /// Bytes that it takes.
    pub fn encoded_len(&self) -> usize {
        postcard::experimental::serialized_size(self).unwrap_or(usize::MAX)
    }
}

fn is_label(text: &str) -> bool {
    (1..=MAX_LABEL).contains(&text.len())
}

/// # Errors
/// A label cannot be.
pub fn check_labels(labels: &Labels) -> Result<(), Refusal> {
    if labels.len() > MAX_LABELS {
        return Err(Refusal::Label(format!("{} labels", labels.len())));
    }
    match labels.iter().find(|(name, value)| !is_label(name) || !is_label(value)) {
        Some((name, _)) => Err(Refusal::Label(name.to_string())),
        None => Ok(()),
    }
}
