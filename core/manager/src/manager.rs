//! The machine that compares what is wanted with what is, and asks for what differs
//! (`docs/protocol/manager.md`).
//!
//! It is driven by levels, not by events. The next look at the whole state shows everything that it
//! has missed, forgotten or asked for in vain. So nothing of it has to survive: the next leader
//! begins with the table.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::ordered::{Shedding, Usage};
use wire::{Duration, GroupId, NodeId, RingId, Share, Time, ViewNumber};

use crate::bug::{Bug, Planted};
use crate::cluster::{Group, Host};
use crate::flare;
use crate::picture::{Picture, Shape};
use crate::ranking::Ranking;
use crate::relief::{Relief, relieve};
use crate::shedding::Levels;
use qos::{Policy, Task};

/// A primary that uses less of a processor than this more than its backup does is moved by nobody:
/// its host would not feel it.
pub const LEAST_MOVED: Share = Share::percent(2);

/// The use of a primary has changed if it differs by at least this, and by an eighth.
const NOISE: Share = Share::percent(1);

/// Tasks are measured as shares: each stands for so much work in every such period.
const PERIOD: Duration = Duration::from_secs(1);

/// The knobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The test that a host must pass.
    pub policy: Policy,
    /// Backups are ranked for the loss of two hosts, too, and damped ([`ranking`](crate::ranking));
    /// else as in the paper ([`flare`]).
    pub look_ahead: bool,
    /// After a primary left a host or came to one, that host is left alone so long. Longer than the
    /// period of reports and the window of the gauges together: what is told before then has the
    /// old load in it.
    pub settle: Duration,
    /// A primary that was moved stays so long.
    pub rest: Duration,
    /// Where no move helps, calls are refused, the least critical first.
    pub shed: bool,
    /// A mistake planted on purpose, for the simulator.
    pub planted: Planted,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            policy: Policy::default(),
            look_ahead: true,
            settle: Duration::from_secs(2),
            rest: Duration::from_secs(10),
            shed: true,
            planted: Planted::default(),
        }
    }
}

/// A change that the manager proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// The backups of a group are to be tried in this order; void in another view.
    Rank {
        /// Which group.
        group: GroupId,
        /// The view that was seen.
        view: ViewNumber,
        /// Nodes of backups.
        order: Vec<NodeId>,
    },
    /// A primary is to leave a host that has too much to do.
    Move {
        /// The group of the primary.
        group: GroupId,
        /// Where it is.
        from: NodeId,
        /// The backup that is to be primary.
        to: NodeId,
    },
    /// A host that has too much to do is to refuse calls, more, less or none any more.
    Shed(Shedding),
}

/// The manager at one node. Only that of the node that leads proposes anything.
#[derive(Clone, Debug)]
pub struct Manager {
    config: Config,
    planted: Planted,
    ranking: Ranking,
    /// The picture taken over last: only differences from it cost anything at the next look.
    seen: Picture,
    /// Groups of which nothing was proposed at the last look, as they were about to change.
    left: Vec<GroupId>,
    /// For which view, on which ring, an order was asked for last: there it is on its way, or void.
    asked: BTreeMap<GroupId, (RingId, ViewNumber)>,
    /// When primaries were moved last, and hosts lost or got one.
    moved: BTreeMap<GroupId, Time>,
    touched: BTreeMap<NodeId, Time>,
    levels: Levels,
}

impl Manager {
    /// It has seen nothing yet.
    pub fn new(config: Config) -> Manager {
        let planted = config.planted;
        Manager {
            config,
            planted,
            ranking: Ranking::new(config.policy),
            seen: Picture::default(),
            left: Vec::new(),
            asked: BTreeMap::new(),
            moved: BTreeMap::new(),
            touched: BTreeMap::new(),
            levels: Levels::new(config.settle, planted),
        }
    }

    /// Returns the proposals for this picture, except those already made.
    pub fn look(&mut self, now: Time, picture: Picture) -> Vec<Proposal> {
        if !picture.leads {
            // Another leader may decide otherwise meanwhile, and the table counts. Moved primaries
            // stay moved.
            self.forget();
            self.asked.clear();
            self.levels.forget();
            return Vec::new();
        }
        if self.planted.is(Bug::ObeyNoise) {
            self.forget();
        }
        let is_new = picture.ring != self.seen.ring;
        let mut looked = self.learn(&picture);
        looked.extend(self.ranking.settle());
        looked.extend(core::mem::take(&mut self.left));
        if is_new || !self.config.look_ahead {
            // Requests made on another ring may be lost, and the paper's ranking of a group depends
            // on all hosts.
            looked.extend(picture.groups.iter().map(|shape| shape.id));
        }
        let mut proposals = self.relief(now, &picture);
        for proposal in &proposals {
            if let Proposal::Move { group, .. } = proposal {
                // Its view is about to change.
                looked.remove(group);
                self.left.push(*group);
            }
        }
        for shape in looked.into_iter().filter_map(|id| picture.group(id)) {
            if let Some(order) = self.order(picture.ring, shape) {
                proposals.push(Proposal::Rank { group: shape.id, view: shape.view, order });
            }
        }
        self.seen = picture;
        proposals
    }

    /// Forgets the last picture: everything in the next one is new.
    fn forget(&mut self) {
        self.ranking = Ranking::new(self.config.policy);
        self.seen = Picture::default();
    }

    /// The ranking of the last picture.
    pub fn ranking(&self) -> &Ranking {
        &self.ranking
    }

    /// Takes over what is new in the picture: hosts that have told what they have to do, and groups
    /// whose primary's host is one. Returns the groups that had to do with it.
    fn learn(&mut self, picture: &Picture) -> BTreeSet<GroupId> {
        let (mut hosts, groups) = picture.differs_from(&self.seen);
        for node in hosts.iter().filter(|node| picture.usage(**node).is_none()) {
            self.ranking.remove_host(*node);
        }
        for id in &groups {
            let cluster = self.ranking.cluster();
            hosts.extend(cluster.group(*id).map(|group| group.primary));
            let is_known = |shape: &&Shape| picture.usage(shape.primary).is_some();
            let Some(shape) = picture.group(*id).filter(is_known) else {
                self.ranking.remove_group(*id);
                self.asked.remove(id);
                continue;
            };
            hosts.insert(shape.primary);
            self.learn_group(picture, shape);
        }
        for node in hosts {
            let Some(Usage { used, capacity, .. }) = picture.usage(node) else { continue };
            let cluster = self.ranking.cluster();
            let tasks = cluster.primaries(node).filter_map(|id| cluster.group(id));
            let primaries: Share = tasks.map(|group| group.task.share()).sum();
            let host = Host { capacity: *capacity, other: used.saturating_sub(primaries) };
            self.ranking.set_host(node, host);
        }
        groups
    }

    fn learn_group(&mut self, picture: &Picture, shape: &Shape) {
        let mut backups = shape.backups.clone();
        backups.retain(|node| picture.usage(*node).is_some());
        let task = self.task(picture, shape, &backups);
        // The order in which they are listed decides nothing, and changes with each proposal that
        // comes true.
        let ranked = backups.clone();
        backups.sort_unstable();
        let group = Group { primary: shape.primary, backups, task };
        let is_new = self.ranking.cluster().group(shape.id).is_none();
        self.ranking.set_group(shape.id, group);
        if is_new && !self.planted.is(Bug::ObeyNoise) {
            self.ranking.adopt(shape.id, ranked);
        }
    }

    /// The load that moves with a group's primary: the use of its replica there, less that of the
    /// least busy other replica. Where all replicas execute, that is nearly nothing.
    fn task(&self, picture: &Picture, shape: &Shape, backups: &[NodeId]) -> Task {
        let uses =
            |node: &NodeId| picture.usage(*node).map_or(Share::ZERO, |usage| usage.of(shape.id));
        let least = backups.iter().map(uses).min().unwrap_or(Share::ZERO);
        let share = uses(&shape.primary).saturating_sub(least);
        let known = self.ranking.cluster().group(shape.id).filter(|group| {
            let before = group.task.share();
            let apart = before.0.abs_diff(share.0);
            group.primary == shape.primary && (apart < NOISE.0 || apart < before.0 / 8)
        });
        match known {
            Some(group) => group.task,
            None => Task::new(Duration::from_micros(share.0), PERIOD),
        }
    }

    /// The order in which a group's backups are to be tried, if the table's is another one where it
    /// matters: in the first two.
    fn order(&mut self, ring: RingId, shape: &Shape) -> Option<Vec<NodeId>> {
        let mut wanted = if self.config.look_ahead {
            self.ranking.targets(shape.id).to_vec()
        } else {
            flare::targets(self.ranking.cluster(), shape.id)
        };
        if self.planted.is(Bug::MostUsedFirst) {
            wanted.reverse();
        }
        let known: Vec<NodeId> =
            shape.backups.iter().copied().filter(|node| wanted.contains(node)).collect();
        if wanted.iter().take(2).eq(known.iter().take(2)) {
            return None;
        }
        let asked = self.asked.insert(shape.id, (ring, shape.view));
        let again = match asked {
            Some(_) if self.planted.is(Bug::AskOnce) => true,
            Some(asked) => asked == (ring, shape.view),
            None => false,
        };
        (!again).then_some(wanted)
    }

    /// Primaries that are to leave hosts with too much to do, each host and each primary at most
    /// once in a while. Where no move helps, calls are to be refused.
    fn relief(&mut self, now: Time, picture: &Picture) -> Vec<Proposal> {
        let Config { settle, rest, .. } = self.config;
        self.touched.retain(|_, at| now < *at + settle);
        self.moved.retain(|_, at| now < *at + rest);
        let cluster = self.ranking.cluster();
        let feels =
            |id: GroupId| cluster.group(id).is_some_and(|group| group.task.share() >= LEAST_MOVED);
        let again = self.planted.is(Bug::RelieveAgain);
        let closed = self.levels.closed(now, picture);
        let Relief { mut moves, unsolved } = relieve(cluster, &closed);
        let mut unsolved: BTreeSet<NodeId> = unsolved.into_iter().collect();
        if self.planted.is(Bug::ShedThoughMoveHelps) {
            unsolved.extend(moves.iter().map(|it| it.from));
        }
        moves.retain(|it| {
            let rests = self.touched.contains_key(&it.from)
                || self.touched.contains_key(&it.to)
                || self.moved.contains_key(&it.group);
            feels(it.group) && (!rests || again)
        });
        for it in &moves {
            self.moved.insert(it.group, now);
            self.touched.insert(it.from, now);
            self.touched.insert(it.to, now);
        }
        let moves = moves.into_iter();
        let mut proposals: Vec<Proposal> =
            moves.map(|it| Proposal::Move { group: it.group, from: it.from, to: it.to }).collect();
        if self.config.shed {
            let regardless = self.planted.is(Bug::ShedThoughMoveHelps);
            let unsettled = |node| self.touched.contains_key(&node) && !regardless;
            let orders = self.levels.look(now, cluster, picture, &unsolved, unsettled);
            proposals.extend(orders.into_iter().map(Proposal::Shed));
        }
        proposals
    }
}
