//! The draws of a cluster that is a cell.

use engine::Quorum;
use wire::Duration;
use wire::limits::MAX_WAITING;

use super::{GroupPlan, Options, Pipe, World};
use crate::cluster::{CellPlan, GatewayPlan};
use crate::draw::Draw;
use crate::faults::{FaultKind, FaultPlan};

/// Faults after which nobody knows which replica is the last, that are told of by nobody, or that
/// befall callers' connections are left out. So is the setting of clocks: ages are told by them.
const LEFT_OUT: [FaultKind; 5] = [
    FaultKind::Unhost,
    FaultKind::Orphan,
    FaultKind::Ambush,
    FaultKind::Reset,
    FaultKind::WallJump,
];

/// Clocks of hosts differ by so much.
const APART: Duration = Duration::from_millis(1);

impl Options {
    /// A cluster of so many nodes that is a cell for so long, of a seed that says the rest.
    pub fn of_cell(nodes: usize, plan: CellPlan, phase: Duration, draw: &mut Draw) -> Options {
        let mut options = Options::draw(&mut draw.fork(), World::Gateways);
        options.resize(nodes, draw);
        options.quorum = Quorum::Majority;
        // Half of the networks only take time, and faults leave it: gaps are measured there
        // (`check/licence.rs`).
        let is_measured = draw.one_in(2);
        if is_measured {
            options.weather = options.weather.calm();
        }
        let wall = draw.between(0, 20_000_000_000);
        let callers = plan.homes.len();
        options.load.clients = callers * nodes;
        options.load.parallel = draw.pick(&[1, 2, 4]);
        options.load.think = draw.pick(&[20, 60, 200]).pipe(Duration::from_millis);
        options.load.timeout = draw.pick(&[400, 2_000]).pipe(Duration::from_millis);
        options.load.calls = draw.pick(&[20, 40]);
        options.load.body = options.load.body.min(3_000);
        options.clocks.resize(nodes + options.load.clients, options.clocks[0]);
        for clock in &mut options.clocks {
            let epoch = 1_800_000_000_000_000_000 + wall;
            clock.wall = epoch + draw.between(0, APART.as_nanos() as u64);
        }
        options.groups.truncate(2);
        for group in &mut options.groups {
            group.be_plain(nodes, draw);
        }
        let FaultPlan { mut kinds, every, longest, .. } = options.faults;
        kinds.retain(|(kind, _)| !LEFT_OUT.contains(kind));
        options.faults = match is_measured {
            true => measured(phase),
            false => FaultPlan { kinds, every: every.max(FEW), phase, longest },
        };
        let gateways = GatewayPlan {
            each: nodes,
            beside: 0,
            patience: draw.pick(&[100, 400]).pipe(Duration::from_millis),
            cancels: 0,
            leaves: draw.pick(&[0, 20]),
            delays: 0,
            strays: 0,
            leaps: false,
        };
        Options {
            world: World::Cells,
            moves: options.moves.map(|every| every.max(FEW)),
            gateways: Some(gateways),
            cell: Some(plan),
            budget: u64::MAX,
            waiting: MAX_WAITING,
            outsider: None,
            benches: false,
            restyles: None,
            hangs: None,
            hosts: None,
            deploy: None,
            poison: None,
            programs: None,
            growth: None,
            smooth: false,
            trial: None,
            ..options
        }
    }
}

/// Between two faults of a cell, at least: there are several cells.
const FEW: Duration = Duration::from_millis(200);

/// Nodes die and stop, one at a time.
fn measured(phase: Duration) -> FaultPlan {
    let kinds = [FaultKind::Kill, FaultKind::PowerLoss, FaultKind::Pause];
    FaultPlan {
        kinds: kinds.map(|kind| (kind, 1)).to_vec(),
        every: Duration::from_millis(900),
        phase,
        longest: Duration::from_millis(1_500),
    }
}

impl GroupPlan {
    /// Calls between groups, and faults of single services, are for other worlds.
    fn be_plain(&mut self, nodes: usize, draw: &mut Draw) {
        self.hosts = draw.distinct(self.hosts.len().min(nodes), nodes);
        self.padding = self.padding.min(1_000);
        self.styles.clear();
        (self.callee, self.lies) = (None, None);
        (self.program, self.poisonous) = (false, false);
    }
}
