//! Hosts have something to do, nodes tell it, and one of them manages.

mod in_cluster;

use manager::{Config, Manager, Picture};
use wire::ordered::Usage;
use wire::{Duration, GroupId, RingId, Share, Time};

use crate::check::ranks::Ranks;
use crate::check::shedding::Sheds;
use crate::draw::Draw;
use crate::fabric::node_id;
use crate::run::Plant;

/// How often a node looks at its host.
const SAMPLE: Duration = Duration::from_millis(25);

/// A host that uses more than this tells it at once.
const LEVEL: Share = Share::percent(69);

/// A host that uses less than this is in time by any bound: that of the rate-monotonic test, less
/// the damping of the hosts' other load and of the primaries' use.
const BOUND: Share = Share::percent(69 - 5 - 2 * 6);

/// The least other load of hosts in every third cluster: there is little room then, and calls are
/// refused.
const CROWDED: u64 = 65;

/// Reports until all nodes know the present load.
const KNOWN: u32 = 4;

/// Reports that are awaited when nothing changes any more.
const REPORTS: u32 = 10;

/// The load of hosts.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Between two reports of a node.
    pub period: Duration,
    /// The other load of each host, in percent of a processor.
    pub others: Vec<u64>,
    /// The load of each group's primary, in percent, and whether its backups use the same.
    pub costs: Vec<(u64, bool)>,
    /// The largest difference between the reported and the real load, in percent.
    pub noise: u64,
    /// How often the other load of a host changes while faults happen: once in so many looks.
    pub restless: u64,
    /// All that is drawn later.
    pub seed: u64,
    /// The least other load of hosts.
    pub least: u64,
}

impl HostPlan {
    /// Draws the plan.
    pub fn draw(draw: &mut Draw, nodes: usize, groups: usize) -> HostPlan {
        let mut plan = HostPlan {
            period: Duration::from_millis(draw.pick(&[50, 100, 200])),
            others: (0..nodes).map(|_| other(draw)).collect(),
            costs: (0..groups).map(|_| (draw.pick(&[0, 5, 20, 40]), draw.one_in(3))).collect(),
            noise: draw.pick(&[0, 1, 2]),
            restless: draw.pick(&[8, 64, 1_000]),
            seed: draw.bits(),
            least: 0,
        };
        if plan.seed.is_multiple_of(3) {
            plan.least = CROWDED;
            plan.others.iter_mut().for_each(|other| *other = (*other).max(CROWDED));
        }
        plan
    }
}

fn other(draw: &mut Draw) -> u64 {
    draw.pick(&[5, 30, 30, 30, 50, 65, 90])
}

/// The state of the plan's execution.
pub(super) struct Management {
    plan: HostPlan,
    config: Config,
    draw: Draw,
    ranks: Ranks,
    sheds: Sheds,
    /// Since when nothing happens but noise, on this ring: no fault, and nobody comes, goes or
    /// moves.
    still: (Time, RingId),
    /// Since when all hosts have told of it, and backups are ranked so.
    steady: Option<Time>,
    nodes: Vec<Desk>,
}

/// A node's part.
#[derive(Clone)]
struct Desk {
    manager: Manager,
    /// When it told last, and whether it was above the level then.
    told: Option<(Time, bool)>,
}

impl Management {
    pub fn new(plan: HostPlan, plant: Plant) -> Management {
        let settle = plan.period * 2 + SAMPLE * 2;
        let mut config = Config { settle, rest: settle * 2, ..Config::default() };
        config.planted = plant.manager;
        let desk = Desk { manager: Manager::new(config), told: None };
        Management {
            draw: Draw::new(plan.seed),
            nodes: vec![desk; plan.others.len()],
            config,
            plan,
            ranks: Ranks::default(),
            sheds: Sheds::default(),
            still: (Time::ZERO, RingId::default()),
            steady: None,
        }
    }

    /// A node starts in a new life.
    pub fn begin(&mut self, node: usize) {
        self.nodes[node] = Desk { manager: Manager::new(self.config), told: None };
    }

    /// No move brings a host near its bound. Near the bound noise makes an overload and ends it,
    /// and orders follow.
    fn has_room(&self) -> bool {
        let moving = self.plan.costs.iter().map(|(cost, _)| cost).sum::<u64>();
        let most = self.plan.others.iter().max().copied().unwrap_or_default();
        Share::percent(most + moving + self.plan.noise) < LEVEL
    }

    /// Returns the load that a node finds when it looks at its host.
    fn usage(&mut self, node: usize, picture: &Picture, groups: &[GroupId]) -> Usage {
        let mut noise = || Share::percent(self.draw.between(0, self.plan.noise));
        let mut used = Share::percent(self.plan.others[node]) + noise();
        let mut replicas = Vec::new();
        for (group, (cost, everywhere)) in groups.iter().zip(&self.plan.costs) {
            let shape = picture.groups.iter().find(|shape| shape.id == *group);
            let executes = shape.is_some_and(|shape| {
                let (me, backups) = (node_id(node), &shape.backups);
                shape.primary == me || (*everywhere && backups.contains(&me))
            });
            if executes {
                let share = Share::percent(*cost);
                used += share;
                replicas.push((*group, share));
            }
        }
        replicas.sort_unstable();
        let capacity = Share::ONE;
        Usage { used, capacity, above: used > LEVEL, replicas, ..Usage::default() }
    }
}
