//! The draws of a seed: the cluster, its load and its faults.
//!
//! Swarm testing (A. Groce et al., ISSTA 2012): a run in which every kind of fault happens all the
//! time hides the bugs that need one kind alone, or none. So each seed first draws which kinds
//! exist for it, then how often each strikes.

use engine::{Checkpoints, Quorum};
use wire::limits::{MAX_REPLICAS, MAX_WAITING};
use wire::ordered::{AckLevel, Durability, GroupOptions, Style};
use wire::{Duration, GroupId};

use crate::check::bounded::Idle;
use crate::clock::Clock;
use crate::cluster::{
    CellPlan, DecayPlan, DeployPlan, DiskPlan, GatewayPlan, GrowthPlan, HostPlan, PoisonPlan,
    ProgramPlan, Script,
};
use crate::draw::Draw;
use crate::faults::{FaultKind, FaultPlan};
use crate::network::Weather;
use crate::trial::Trial;

mod celled;
mod comparing;
mod conditions;
mod decaying;
mod everything;
mod keyed;
mod managed;
mod nested;
mod parting;
mod passable;
mod poisonous;
mod scripted;
mod world;

pub use crate::identity::{CLUSTER, CLUSTER_ID};
pub use conditions::{ComparePlan, Load};
use conditions::{Pipe, clock, fault_plan, load, weather};
pub use world::World;

/// One group.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Its name.
    pub name: String,
    /// The nodes that host it.
    pub hosts: Vec<usize>,
    /// Its options.
    pub options: GroupOptions,
    /// If it is passive: its service tells its changes by itself.
    pub tells: bool,
    /// When its primary takes checkpoints, if it is cold passive.
    pub checkpoints: Checkpoints,
    /// Bytes that its snapshot carries beside the history.
    pub padding: usize,
    /// In a voting group: how often a replica lies, on average.
    pub lies: Option<Duration>,
    /// The group that its handlers call, and whether that one calls another.
    pub callee: Option<(String, bool)>,
    /// Styles that it may get while it runs.
    pub styles: Vec<Style>,
    /// Programs serve its replicas: they may die while their nodes live.
    pub program: bool,
    /// Some of its calls kill the service that executes them.
    pub poisonous: bool,
}

impl GroupPlan {
    /// Clients read without changing anything. Where reads are ordered only now and then, the
    /// history would have them so.
    pub fn reads(&self) -> bool {
        self.options.style != Style::Stateless && !self.orders_some_reads()
    }

    /// It votes, in one of its styles at least.
    fn votes(&self) -> bool {
        self.options.style == Style::Voting || self.styles.contains(&Style::Voting)
    }

    /// Reads are ordered in some of its styles and not in others.
    fn orders_some_reads(&self) -> bool {
        let warm = self.styles.contains(&Style::WarmPassive);
        let ordering = [Style::Voting, Style::ColdPassive];
        self.styles.iter().any(|style| ordering.contains(style))
            || (warm && self.options.ack == AckLevel::One)
    }

    /// Calls are ordered even if they change nothing: where one entry, or one replica, says too
    /// little. Where a group votes now and then, nobody reads without a change.
    pub fn orders_reads(&self) -> bool {
        let (style, ack) = (self.options.style, self.options.ack);
        matches!(style, Style::Voting | Style::ColdPassive)
            || self.orders_some_reads()
            || ack == AckLevel::One && matches!(style, Style::SemiActive | Style::Active)
    }

    /// It is cold passive, or now and then.
    pub fn is_cold(&self) -> bool {
        self.options.style == Style::ColdPassive || self.styles.contains(&Style::ColdPassive)
    }

    /// Its service may now and then be unable to give or read its state. Passive groups need that for
    /// every update.
    pub fn may_be_clumsy(&self) -> bool {
        let executes_all = matches!(self.options.style, Style::SemiActive | Style::Active);
        executes_all && self.styles.is_empty() && self.options.durability == Durability::Memory
    }

    /// Nobody lies: after all lives have ended the state of one replica may be all that is left.
    fn settle(&mut self) {
        self.lies = None;
    }
}

/// Everything that a seed decides before time starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which kind of world.
    pub world: World,
    /// How many nodes.
    pub nodes: usize,
    /// The groups.
    pub groups: Vec<GroupPlan>,
    /// The clients.
    pub load: Load,
    /// One per host: nodes, then clients.
    pub clocks: Vec<Clock>,
    /// The network while faults happen.
    pub weather: Weather,
    /// The faults.
    pub faults: FaultPlan,
    /// Which configurations may act.
    pub quorum: Quorum,
    /// Services merge the histories that are given up without one.
    pub merges: bool,
    /// Messages that are multicast as safe, of 1,000 (bare rings).
    pub safe: u64,
    /// The ring's window.
    pub window: usize,
    /// The ring's turn.
    pub turn: usize,
    /// How many datagrams of a turn leave after the token.
    pub accelerated: usize,
    /// The ring's parking.
    pub parking: bool,
    /// The longest execution of a request.
    pub execution: Duration,
    /// The faults are over after so many happenings at the latest: a busy network would else spend
    /// a hundred times the others' work on one seed, and find less by it than other seeds do.
    pub budget: u64,
    /// Datagrams are sealed, and somebody without the key acts upon so many of 1,000.
    pub outsider: Option<u64>,
    /// Nodes are asked to measure the ring while faults happen.
    pub benches: bool,
    /// Calls that may wait at a node.
    pub waiting: usize,
    /// Primaries are moved while faults happen, this often on average.
    pub moves: Option<Duration>,
    /// Groups get other styles while faults happen, this often on average.
    pub restyles: Option<Duration>,
    /// Services hang while faults happen, this often on average.
    pub hangs: Option<Duration>,
    /// Nodes tell what their hosts have to do, and one of them manages.
    pub hosts: Option<HostPlan>,
    /// The first groups are deployed: the cluster state says who hosts them.
    pub deploy: Option<DeployPlan>,
    /// Nothing else happens, and no call may wait for a time-out.
    pub smooth: bool,
    /// Nodes have disks, and all groups are on them.
    pub disks: Option<DiskPlan>,
    /// Services cannot give or read their states once in so many times, while faults happen.
    pub clumsy: Option<u64>,
    /// How these rot and fill up.
    pub decay: Option<DecayPlan>,
    /// Which calls kill, and how often programs die.
    pub poison: Option<PoisonPlan>,
    /// All states go by streams beside the order.
    pub streams: bool,
    /// Nodes run programs of several versions.
    pub programs: Option<ProgramPlan>,
    /// Nodes come and go.
    pub growth: Option<GrowthPlan>,
    /// Callers count their calls, and all clients are gateways.
    pub gateways: Option<GatewayPlan>,
    /// The cell that the cluster is, if it is one.
    pub cell: Option<CellPlan>,
    /// The one thing that people do.
    pub script: Option<Script>,
    /// Replicas are compared, and states drift.
    pub compare: Option<ComparePlan>,
    /// The trial of bare rings when their faults are over.
    pub trial: Option<Trial>,
}

impl Options {
    /// The traffic that the cluster may have when it is idle and all is well.
    pub fn idle(&self) -> Idle {
        let calm = self.weather.calm();
        Idle { nodes: self.nodes, parking: self.parking, delay: calm.latency + calm.jitter }
    }

    /// How many groups are deployed: the first ones.
    pub fn deployed(&self) -> usize {
        self.deploy.as_ref().map_or(0, |plan| plan.wanted.len())
    }

    /// The durability of the system's own groups.
    pub fn durability(&self) -> Durability {
        if self.disks.is_some() { Durability::Disk } else { Durability::Memory }
    }

    /// Messages after which a replica gives its state, where its disk or its node keeps it.
    pub fn snapshot_after(&self) -> u64 {
        let of_programs = self.poison.map(|plan| plan.snapshot_after);
        let of_disks = self.disks.map(|plan| plan.snapshot_after);
        of_disks.or(of_programs).unwrap_or(10_000)
    }

    /// No group with a state is in memory alone: all lives may end, and nothing is forgotten.
    pub fn keeps_all(&self) -> bool {
        let kept = |group: &GroupPlan| {
            let GroupOptions { style, durability, .. } = group.options;
            style == Style::Stateless || durability == Durability::Disk
        };
        self.disks.is_some() && self.groups.iter().all(kept)
    }

    /// Groups that promise less: an answered request may be lost with the one node that had it
    /// (`AckLevel::One`), or with the side of a partition that does not go on (`Quorum::Off`).
    pub fn loose(&self) -> Vec<GroupId> {
        let one =
            |group: &&GroupPlan| group.options.ack == AckLevel::One || self.quorum == Quorum::Off;
        self.groups.iter().filter(one).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Groups whose calls are not ordered.
    pub fn stateless(&self) -> Vec<GroupId> {
        let stateless = |group: &&GroupPlan| group.options.style == Style::Stateless;
        self.groups.iter().filter(stateless).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Groups whose calls are ordered even if they change nothing.
    pub fn ordering_reads(&self) -> Vec<GroupId> {
        let groups = self.groups.iter().filter(|group| group.orders_reads());
        groups.map(|group| GroupId::of(&group.name)).collect()
    }

    /// Groups that begin with the primary's service alone running.
    pub fn cold(&self) -> Vec<GroupId> {
        let cold = |group: &&GroupPlan| group.options.style == Style::ColdPassive;
        self.groups.iter().filter(cold).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Groups whose replies leave when all hold the request.
    pub fn by_all(&self) -> Vec<GroupId> {
        let all = |group: &&GroupPlan| group.options.ack == AckLevel::All;
        self.groups.iter().filter(all).map(|group| GroupId::of(&group.name)).collect()
    }

    /// Groups that vote, in one of their styles at least.
    pub fn voting(&self) -> Vec<GroupId> {
        self.groups
            .iter()
            .filter(|group| group.votes())
            .map(|group| GroupId::of(&group.name))
            .collect()
    }

    /// Groups whose replicas lie.
    pub fn lying(&self) -> Vec<GroupId> {
        let lying = self.groups.iter().filter(|group| group.lies.is_some());
        lying.map(|group| GroupId::of(&group.name)).collect()
    }

    /// Draws the options of a seed in this kind of world.
    pub fn draw(draw: &mut Draw, world: World) -> Options {
        let options = Options::drawn(draw, world);
        // Beside the others.
        options.with_comparisons(draw.clone().bits())
    }

    fn drawn(draw: &mut Draw, world: World) -> Options {
        let nodes = if draw.one_in(64) {
            draw.count(8, 32)
        } else {
            draw.pick(&[1, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7])
        };
        let mut load = load(&mut draw.fork());
        let gateways = (world == World::Gateways)
            .then(|| GatewayPlan::draw(&mut draw.clone().fork(), &mut load));
        let mut faults = draw.fork();
        let weather = weather(&mut faults);
        let plan = fault_plan(&mut faults, world);
        let mut clocks = draw.fork();
        let window = draw.pick(&[4, 16, 64, 256, 256]);
        let mut groups = groups(&mut draw.fork(), nodes);
        if world.has_disks() {
            groups.iter_mut().for_each(GroupPlan::settle);
        }
        if world == World::Gateways {
            groups.iter_mut().for_each(GroupPlan::keep);
        }
        let turn = draw.pick(&[1, 4, 64]).min(window);
        let options = Options {
            world,
            nodes,
            groups,
            clocks: (0..nodes + load.clients).map(|_| clock(&mut clocks)).collect(),
            load,
            weather: if nodes > 7 { weather.near() } else { weather },
            faults: plan,
            quorum: if draw.one_in(24) { Quorum::Off } else { Quorum::Majority },
            merges: false,
            safe: draw.pick(&[0, 100, 500, 1_000]),
            window,
            turn,
            accelerated: draw.pick(&[0, 2, 16, 64]),
            parking: !draw.one_in(4),
            execution: draw.pick(&[20, 20, 200, 3_000]).pipe(Duration::from_micros),
            budget: draw.pick(&[3_000, 6_000, 6_000, 12_000, 12_000, 40_000]),
            outsider: draw.one_in(12).then(|| draw.pick(&[20, 100, 500])),
            benches: draw.one_in(16),
            waiting: if draw.one_in(6) { draw.pick(&[1, 2, 8]) } else { MAX_WAITING },
            moves: draw
                .one_in(3)
                .then(|| draw.pick(&[5, 30, 100, 300]).pipe(Duration::from_millis)),
            restyles: None,
            hangs: None,
            hosts: None,
            deploy: None,
            smooth: draw.one_in(24) && gateways.is_none(),
            disks: None,
            clumsy: None,
            decay: None,
            poison: None,
            programs: None,
            growth: None,
            gateways: None,
            cell: None,
            script: None,
            streams: false,
            compare: None,
            trial: None,
        };
        let options = options.with_trial(&mut draw.fork()).smoothed().passable();
        let options = options.with_disks(&mut draw.fork());
        let options = options.with_nested(&mut draw.fork());
        // Beside the others: whatever is drawn after this is the same as if there were no changes
        // of style.
        let options = options.with_restyles(&mut draw.clone().fork());
        // So is this.
        let seed = draw.clone().bits();
        if world == World::Everything {
            return options.with_everything(seed);
        }
        if world == World::Decay {
            return options.with_decay(seed);
        }
        if let Some(plan) = gateways {
            return options.with_gateways(plan, seed);
        }
        let options = match (Draw::new(seed ^ 0x3a4a).one_in(8), Draw::new(seed ^ 0xb00c).one_in(8))
        {
            (true, _) => options.with_manager(seed),
            (_, true) => options.with_deployment(seed),
            _ if Draw::new(seed ^ 0x4a46).one_in(8) => options.with_hangs(seed),
            _ => options,
        };
        let options = options.with_programs(world, seed).with_growth(seed);
        let options = options.with_poison(seed).with_clumsy(seed).with_merges(seed);
        Options { streams: Draw::new(seed ^ 0x57e4).one_in(4), ..options }
    }

    /// Nodes run programs of several versions.
    fn with_programs(self, world: World, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0x9406);
        let drawn = draw.one_in(8) || world == World::Versions;
        // By older rules not every node can host the cluster state.
        let fits = self.deploy.is_none() || self.nodes <= MAX_REPLICAS;
        let wanted = drawn && world.is_cluster() && !self.smooth && fits;
        Options { programs: wanted.then(|| ProgramPlan::draw(&mut draw)), ..self }
    }

    /// Services cannot always give or read their states. By older rules nobody asks again, and the
    /// journal of a program grows while it cannot give its state.
    fn with_clumsy(self, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0xc105);
        let possible = self.world == World::Cluster && !self.smooth && self.programs.is_none();
        let possible = possible && self.poison.is_none();
        let wanted = draw.one_in(6) && possible && self.deploy.is_none();
        Options { clumsy: wanted.then(|| draw.pick(&[2, 3, 8])), ..self }
    }

    /// Nodes come and go: where all have disks, so that a lone founder may die.
    fn with_growth(self, seed: u64) -> Options {
        let mut draw = Draw::new(seed ^ 0x9207);
        let possible = self.keeps_all() && self.nodes > 1 && self.quorum == Quorum::Majority;
        // The manager's checkers count on all hosts.
        let possible = possible && self.hosts.is_none() && self.deploy.is_none();
        let wanted = self.world == World::Growth && possible && self.programs.is_none();
        let growth = wanted.then(|| GrowthPlan::draw(&mut draw, self.nodes));
        // A node that comes gets the key from people: they give it the one that is in use.
        let outsider = self.outsider.filter(|_| growth.is_none());
        Options { growth, outsider, ..self }
    }

    /// Where nodes have disks, any life may end at any time, and all at once, for no data is lost.
    /// A node that is taken out of a group on purpose takes its state along.
    fn with_disks(self, draw: &mut Draw) -> Options {
        let plan = DiskPlan::draw(draw);
        if !self.world.has_disks() || self.smooth || self.quorum != Quorum::Majority {
            return self;
        }
        self.on_disks(plan)
    }

    fn on_disks(mut self, plan: DiskPlan) -> Options {
        for group in &mut self.groups {
            group.options.durability = match group.options.style {
                Style::Stateless => Durability::Memory,
                _ => Durability::Disk,
            };
            if plan.is_behind() {
                group.pass_with(self.waiting);
            }
        }
        self.faults
            .kinds
            .retain(|(kind, _)| !matches!(kind, FaultKind::Unhost | FaultKind::Orphan));
        Options { disks: Some(plan), ..self }
    }

    /// Groups with a state get other such styles. Where a replica lies, votes have to find it.
    fn with_restyles(mut self, draw: &mut Draw) -> Options {
        let wanted = draw.one_in(3) && self.world.is_cluster() && !self.smooth;
        let every = draw.pick(&[5, 30, 100, 300]).pipe(Duration::from_millis);
        let votes = self.world == World::Cluster && draw.one_in(2);
        for group in self.groups.iter_mut().filter(|_| wanted) {
            let style = group.options.style;
            if group.lies.is_none() && style.has_state() {
                group.styles = vec![Style::SemiActive, Style::Active, Style::WarmPassive];
                group.pass_with(self.waiting);
                // Where it is that now and then nobody reads.
                if style == Style::ColdPassive || draw.one_in(2) {
                    group.styles.push(Style::ColdPassive);
                }
                if style == Style::Voting || votes {
                    group.styles.push(Style::Voting);
                }
            }
        }
        Options { restyles: wanted.then_some(every), ..self }
    }

    /// Bare rings are put to a trial now and then. Formulas of time are about near hosts; half of
    /// the times also about nodes that have seen nothing bad yet.
    fn with_trial(self, draw: &mut Draw) -> Options {
        let Some(trial) = Trial::draw(draw, self.nodes).filter(|_| self.world == World::Rings)
        else {
            return self;
        };
        let near = if trial.is_timed() { self.weather.near() } else { self.weather };
        let options = match trial {
            // Two seconds of a full window are enough as they are.
            Trial::Slow if self.parking => Options { window: self.window.min(16), ..self },
            // The token waits for the slow one with every turn: each is to be longer than its
            // copies take.
            Trial::Slow => Options { window: 32, turn: 16, ..self },
            _ => self,
        };
        let turn = options.turn.min(options.window);
        let options = Options { trial: Some(trial), weather: near, turn, ..options };
        match draw.one_in(2) {
            true => options.without_faults(),
            false => options,
        }
    }

    /// Smooth seeds demand only moves, and clients that do not notice them.
    fn smoothed(self) -> Options {
        let smooth = self.smooth && self.world.is_cluster() && self.nodes > 1;
        if !smooth {
            return Options { smooth, ..self };
        }
        let weather = self.weather.near();
        let calm = Options { weather, ..self }.without_faults();
        let mut groups = calm.groups;
        for group in &mut groups {
            (group.padding, group.lies) = (0, None);
        }
        // Patient clients: an attempt is given up after a quarter of the timeout, and after no more
        // than a tenth of a second.
        let load = Load { timeout: Duration::from_secs(2), body: 40, ..calm.load };
        let phase = Duration::from_millis(900);
        let faults = FaultPlan { phase, ..calm.faults };
        let moves = calm.moves.unwrap_or(Duration::from_millis(5)).min(Duration::from_millis(30));
        Options {
            groups,
            load,
            faults,
            moves: Some(moves),
            execution: Duration::from_micros(20),
            budget: calm.budget.max(40_000),
            waiting: MAX_WAITING,
            benches: false,
            outsider: None,
            ..calm
        }
    }

    /// All groups have this style, if any is given: a mistake that only such a group can show is
    /// found sooner.
    pub fn all_of(mut self, style: Option<Style>) -> Options {
        let Some(style) = style else { return self };
        for group in &mut self.groups {
            group.options = GroupOptions { style, durability: Durability::Memory, ..group.options };
            group.lies = None;
            group.styles = Vec::new();
        }
        Options { disks: None, restyles: None, ..self.passable() }
    }

    /// Nothing goes wrong.
    pub fn without_faults(self) -> Options {
        let (phase, kinds) = (Duration::from_millis(150), Vec::new());
        let faults = FaultPlan { phase, kinds, ..self.faults };
        Options { weather: self.weather.calm(), faults, ..self }
    }
}

fn groups(draw: &mut Draw, nodes: usize) -> Vec<GroupPlan> {
    let mut groups: Vec<GroupPlan> = (0..draw.pick(&[1, 1, 2, 3]))
        .map(|number| {
            let replicas = draw.pick(&[1, 2, 3, 3, 3, 4, 5]).min(nodes);
            let ack = match draw.between(0, 15) {
                0 => AckLevel::One,
                1..=4 => AckLevel::All,
                _ => AckLevel::Majority,
            };
            GroupPlan {
                name: format!("group-{number}"),
                hosts: draw.distinct(replicas, nodes),
                options: GroupOptions { ack, ..GroupOptions::default() },
                tells: false,
                checkpoints: Checkpoints::default(),
                padding: draw.pick(&[0, 0, 0, 1_000, 40_000, 100_000]),
                lies: None,
                callee: None,
                styles: Vec::new(),
                program: false,
                poisonous: false,
            }
        })
        .collect();
    // Last of all, so that a seed draws the same of everything else whatever styles there are.
    for group in &mut groups {
        let style = draw.pick(&[
            Style::SemiActive,
            Style::SemiActive,
            Style::WarmPassive,
            Style::WarmPassive,
            Style::ColdPassive,
            Style::ColdPassive,
            Style::Active,
            Style::Active,
            Style::Stateless,
        ]);
        let ack = match style {
            Style::Stateless => GroupOptions::default().ack,
            _ => group.options.ack,
        };
        group.options = GroupOptions { style, ack, ..group.options };
        group.tells = draw.one_in(2);
        group.checkpoints = Checkpoints {
            requests: draw.pick(&[1, 2, 5, 20, 1_000]),
            bytes: draw.pick(&[100, 10_000, 1 << 20]),
            interval: draw.pick(&[2, 20, 200, 5_000]).pipe(Duration::from_millis),
        };
    }
    for group in groups.iter_mut().filter(|group| group.options.style != Style::Stateless) {
        if draw.one_in(4) {
            group.options.style = Style::Voting;
            let every = draw.pick(&[0, 50, 200, 500]);
            group.lies = (every > 0).then_some(Duration::from_millis(every));
        }
    }
    groups
}
