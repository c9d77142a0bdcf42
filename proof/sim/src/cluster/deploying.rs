//! The group that keeps what people said, and services that it deploys: nodes do what the cluster
//! state says, people drain nodes, and faults go on (`docs/protocol/deployment.md`).

mod in_cluster;
mod plan;

pub use plan::{DeployPlan, Wanted};

use std::collections::BTreeSet;

use engine::Quorum;
use manager::Picture;
use manager::cluster_state::{ClusterState, Command, Deployment, Distribution, Labels};
use manager::placement::Placer;
use wire::limits::MAX_MEMBERS;
use wire::{Duration, GroupId, Member, NodeId, Time};

use super::upgrading::{Programs, Versions};
use crate::draw::Draw;
use crate::fabric::node_id;
use crate::options::GroupPlan;
use crate::run::Plant;

/// The interval at which nodes look at the cluster state, and people at their commands.
const LOOK: Duration = Duration::from_millis(25);

/// A command without an answer is repeated after this time.
const AGAIN: Duration = Duration::from_millis(300);

/// How long a call of a node's own may take.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The state of the plan's execution.
pub(super) struct Deploying {
    plan: DeployPlan,
    plant: Plant,
    draw: Draw,
    nodes: Vec<Desk>,
    /// The command under way: the life that it was sent to, the number of its call, and until when
    /// its answer is awaited.
    said: Option<(Command, Member, u64, Time)>,
    /// The acknowledged deployments.
    deployed: BTreeSet<usize>,
    drained: BTreeSet<NodeId>,
    /// One for each group.
    versions: Vec<Versions>,
    /// Commands that people send before any other.
    pub(super) ordered: Vec<Command>,
    /// Which nodes have said that they have changed over, for which placement.
    changed_over: BTreeSet<(String, u64, NodeId)>,
}

/// A node's part.
struct Desk {
    cluster_state: ClusterState,
    placer: Placer,
    introduced: Option<Time>,
    /// One for each group.
    programs: Vec<Programs>,
}

impl Desk {
    fn new(plant: Plant, groups: usize) -> Desk {
        let programs = (0..groups).map(|_| Programs::default()).collect();
        Desk {
            cluster_state: ClusterState::default(),
            placer: plant.placer(),
            introduced: None,
            programs,
        }
    }
}

impl Deploying {
    pub fn new(plan: DeployPlan, plant: Plant, nodes: usize) -> Deploying {
        let groups = plan.wanted.len();
        Deploying {
            draw: Draw::new(plan.seed),
            nodes: (0..nodes).map(|_| Desk::new(plant, groups)).collect(),
            plan,
            plant,
            said: None,
            deployed: BTreeSet::new(),
            drained: BTreeSet::new(),
            versions: (0..groups).map(|_| Versions::default()).collect(),
            ordered: Vec::new(),
            changed_over: BTreeSet::new(),
        }
    }

    /// The cluster state as this node has it.
    pub fn cluster_state(&self, node: usize) -> &ClusterState {
        &self.nodes[node].cluster_state
    }

    /// The first group is to run this program.
    pub fn replace_program(&mut self, groups: &[GroupPlan], program: &str) -> Command {
        self.versions[0].set(program);
        Command::Deploy(self.deployment(groups, 0))
    }

    /// A node starts in a new life.
    pub fn begin(&mut self, node: usize) {
        self.nodes[node] = Desk::new(self.plant, self.plan.wanted.len());
    }

    fn labels(&self, node: usize) -> Labels {
        let rack = self.plan.racks.map(|racks| ("rack".to_owned(), (node % racks).to_string()));
        rack.into_iter().collect()
    }

    /// Returns the deployment that people want for the group at this place.
    fn deployment(&self, groups: &[GroupPlan], place: usize) -> Deployment {
        let (group, wanted) = (&groups[place], &self.plan.wanted[place]);
        let command = self.versions[place].command();
        let spread = wanted.spread && self.plan.racks.is_some();
        Deployment {
            options: group.options,
            distribution: match spread {
                true => Distribution::Spread("rack".into()),
                false => Distribution::LeastLoaded,
            },
            replication: wanted.replication,
            ..Deployment::new(group.name.as_str(), command, wanted.replicas)
        }
    }

    /// Returns the people's next command.
    fn next(&mut self, groups: &[GroupPlan], calm: bool) -> Option<Command> {
        let all = self.plan.wanted.len();
        if let Some(place) = (0..all).find(|place| !self.deployed.contains(place)) {
            return Some(Command::Deploy(self.deployment(groups, place)));
        }
        if let Some(command) = self.ordered.pop() {
            return Some(command);
        }
        if calm {
            return None;
        }
        let place = if all == 1 { 0 } else { self.draw.count(0, all - 1) };
        // A single replica has no other to keep its state meanwhile. A group that has never run has
        // nothing to go back to.
        let filled =
            |desk: &Desk| desk.cluster_state.of(&groups[place].name).is_some_and(|it| it.filled);
        let may = self.plan.wanted[place].replicas > 1 && self.nodes.iter().any(filled);
        if may && self.draw.one_in(self.plan.upgrades) {
            self.versions[place].next(&mut self.draw);
            return Some(Command::Deploy(self.deployment(groups, place)));
        }
        if !self.draw.one_in(self.plan.drains) {
            return None;
        }
        let node = node_id(self.draw.count(0, self.nodes.len() - 1));
        match self.drained.contains(&node) {
            true => Some(Command::Return { node }),
            // If all nodes were drained, a group that has no replica yet would get none, and the
            // end demands one.
            false if self.drained.len() + 1 == self.nodes.len() => None,
            false => Some(Command::Drain { node }),
        }
    }
}

/// The group that a step of the placer is about.
fn group_of(command: &Command) -> Option<&str> {
    match command {
        Command::Place { group, .. }
        | Command::Advance { group, .. }
        | Command::Upgraded { group, .. }
        | Command::Undo { group, .. } => Some(group),
        _ => None,
    }
}

/// This node's replica has the state.
fn has_state(picture: &Picture, group: GroupId, node: NodeId) -> bool {
    let shape = picture.groups.iter().find(|shape| shape.id == group);
    shape.is_some_and(|it| it.primary == node || it.backups.contains(&node))
}

/// Seeds in which this can be shown: answered commands are kept there, and all nodes can host the
/// cluster state.
pub fn is_possible(nodes: usize, quorum: Quorum) -> bool {
    (2..=MAX_MEMBERS).contains(&nodes) && quorum == Quorum::Majority
}
