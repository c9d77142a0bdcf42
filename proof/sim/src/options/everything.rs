//! The world in which all that the manager does happens together: several deployments of every
//! style, in memory and on disk, hosts with too much to do, hung services, upgrades and drains,
//! under faults.
//!
//! Each kind is drawn as in the worlds where it is alone. Their exclusions hold here too: replicas
//! that lie, and faults after which nobody can say whether a replica that leaves is the last.

use engine::{Checkpoints, Quorum};
use wire::Duration;
use wire::limits::MAX_WAITING;
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};

use super::{GroupPlan, Options, Pipe, clock};
use crate::cluster::{DeployPlan, DiskPlan};
use crate::draw::Draw;
use crate::faults::{FaultKind, FaultPlan};

/// The durability of groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// Memory alone: nodes have no disks.
    Memory,
    /// Some are on disk, others not.
    Mixed,
    /// All that have a state are on disk: all lives may end at once.
    Disk,
}

/// Styles that a deployment may have.
const STYLES: [Style; 6] = [
    Style::SemiActive,
    Style::Active,
    Style::Voting,
    Style::WarmPassive,
    Style::ColdPassive,
    Style::Stateless,
];

/// How long faults go on at least: a drain and an upgrade take some hundred milliseconds each.
const PHASE: Duration = Duration::from_secs(3);

impl Options {
    /// All that the manager has to do with happens. To add a fault of services: its span here,
    /// beside `hanging`, and what befalls the service in `cluster/hangs.rs`.
    pub(super) fn with_everything(mut self, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0xe7e2);
        self.resize(draw.pick(&[3, 4, 5, 5, 6, 7]), &mut draw);
        let ground = draw.pick(&[Ground::Memory, Ground::Mixed, Ground::Disk]);
        self = self.stands(ground, &mut draw);
        self = self.deploys(ground, &mut draw);
        let plan = self.faults.clone();
        self.faults = FaultPlan { phase: plan.phase.max(PHASE), ..self.faults };
        if self.faults.kinds.is_empty() {
            self.faults.kinds = vec![(FaultKind::Kill, 3), (FaultKind::Partition, 1)];
        }
        self.hanging(seed).with_manager(seed).with_poison(seed)
    }

    /// So many nodes, all of which promise all.
    pub(super) fn resize(&mut self, nodes: usize, draw: &mut Draw) {
        let clients = self.clocks.split_off(self.nodes);
        self.clocks.truncate(nodes);
        self.clocks.resize_with(nodes, || clock(draw));
        self.clocks.extend(clients);
        (self.nodes, self.quorum, self.smooth, self.trial) = (nodes, Quorum::Majority, false, None);
        (self.budget, self.waiting) = (self.budget.max(40_000), MAX_WAITING);
        // Slowness everywhere is not the subject of this world.
        self.weather = self.weather.near();
    }

    /// Nodes have disks, or not.
    fn stands(self, ground: Ground, draw: &mut Draw) -> Options {
        let mut plan = DiskPlan::draw(draw);
        // A node whose disk fails leaves, and what it alone had in memory is gone.
        if ground == Ground::Mixed {
            plan.unsynced = 0;
        }
        let disks = (ground != Ground::Memory).then_some(plan);
        let mut faults = self.faults;
        faults.kinds.retain(|(kind, _)| !matches!(kind, FaultKind::Unhost | FaultKind::Orphan));
        Options { disks, faults, ..self }
    }

    /// Some groups are deployed, and one is hosted as ever beside them in some seeds.
    fn deploys(mut self, ground: Ground, draw: &mut Draw) -> Options {
        let many = draw.count(1, 3);
        let mut groups: Vec<GroupPlan> =
            (0..many).map(|number| placed(number, self.nodes, ground, draw)).collect();
        let mut beside = self.groups.swap_remove(0);
        if draw.one_in(2) && beside.options.style != Style::Voting {
            (beside.callee, beside.lies, beside.name) = (None, None, "beside".into());
            beside.hosts = draw.distinct(beside.hosts.len().min(self.nodes), self.nodes);
            if ground == Ground::Disk {
                beside.settle();
                beside.styles.clear();
                beside.options.durability = ground.durability(beside.options.style, draw);
            }
            groups.push(beside);
        }
        groups.iter_mut().for_each(|group| group.padding = group.padding.min(1_000));
        let plan = DeployPlan::draw(draw, self.nodes).of(many, self.nodes, draw);
        let restyles = self.restyles.filter(|_| groups.iter().any(|it| !it.styles.is_empty()));
        Options { groups, restyles, deploy: Some(plan), ..self }
    }
}

impl Ground {
    /// Returns the durability of a group of this style.
    fn durability(self, style: Style, draw: &mut Draw) -> Durability {
        let can = style.has_state();
        let wants = match self {
            Ground::Memory => false,
            Ground::Mixed => draw.one_in(2),
            Ground::Disk => true,
        };
        if can && wants { Durability::Disk } else { Durability::Memory }
    }
}

/// A group that people deploy.
fn placed(number: usize, nodes: usize, ground: Ground, draw: &mut Draw) -> GroupPlan {
    let style = draw.pick(&STYLES);
    let durability = ground.durability(style, draw);
    GroupPlan {
        name: format!("placed-{number}"),
        hosts: (0..nodes).collect(),
        options: GroupOptions { style, durability, ack: AckLevel::Majority },
        tells: draw.one_in(2),
        checkpoints: Checkpoints {
            requests: draw.pick(&[1, 5, 20, 1_000]),
            bytes: draw.pick(&[100, 10_000]),
            interval: draw.pick(&[20, 200, 5_000]).pipe(Duration::from_millis),
        },
        padding: draw.pick(&[0, 0, 1_000]),
        lies: None,
        callee: None,
        styles: Vec::new(),
        program: false,
        poisonous: false,
    }
}
