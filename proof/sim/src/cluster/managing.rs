//! Hosts have something to do, nodes tell it, and one of them manages.

use manager::{Config, Manager, Picture, Wish};
use wire::ordered::Usage;
use wire::{Duration, GroupId, Member, RingId, Share, Time};

use super::{Cluster, Epilogue, Extra};
use crate::check::Verdict;
use crate::check::liveness;
use crate::check::ranks::{Ranks, twin};
use crate::check::shedding::{self, Sheds};
use crate::draw::Draw;
use crate::fabric::node_id;
use crate::run::Plant;

/// How often a node looks at its host.
const SAMPLE: Duration = Duration::from_millis(25);

/// A host that uses more than this tells it at once.
const LEVEL: Share = Share::percent(69);

/// Whoever uses less than this is in time by any bound: that of the rate-monotonic test, less what is damped of what hosts have to do beside,
/// and of what primaries use.
const BOUND: Share = Share::percent(69 - 5 - 2 * 6);

/// What hosts have at least to do beside in every third cluster: there is little room then, and calls are refused.
const CROWDED: u64 = 65;

/// Reports until all know what is so now.
const KNOWN: u32 = 4;

/// Reports that are awaited when nothing changes any more.
const REPORTS: u32 = 10;

/// What hosts have to do.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Between two reports of a node.
    pub period: Duration,
    /// What each host has to do beside, in percent of a processor.
    pub others: Vec<u64>,
    /// What each group's primary uses, in percent, and whether its backups do the same.
    pub costs: Vec<(u64, bool)>,
    /// What is told differs by so many percent at most from what is.
    pub noise: u64,
    /// How often what a host has to do beside changes while faults happen: once in so many looks.
    pub restless: u64,
    /// All that is drawn later.
    pub seed: u64,
    /// What hosts have to do beside at least.
    pub least: u64,
}

impl HostPlan {
    /// What a seed draws.
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

/// What becomes of the plan.
pub(super) struct Management {
    plan: HostPlan,
    config: Config,
    draw: Draw,
    ranks: Ranks,
    sheds: Sheds,
    /// Since when nothing happens but noise, on this ring: no fault, and nobody comes, goes or moves.
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
        plant.into_manager(&mut config);
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

    /// Whatever moves, no host comes near its bound. There noise makes an overload and ends it, and orders follow.
    fn has_room(&self) -> bool {
        let moving = self.plan.costs.iter().map(|(cost, _)| cost).sum::<u64>();
        let most = self.plan.others.iter().max().copied().unwrap_or_default();
        Share::percent(most + moving + self.plan.noise) < LEVEL
    }

    /// What a node finds when it looks at its host.
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

impl Cluster {
    pub(super) fn plan_samples(&mut self) {
        if let Some(management) = &mut self.management {
            for node in 0..self.options.nodes {
                let wait = management.draw.span(Duration::ZERO, SAMPLE);
                self.fabric.later(wait, Extra::Sample(node));
            }
        }
    }

    /// A node looks at its host and tells what it sees, if that is due; its manager looks at the cluster.
    pub(super) fn sample(&mut self, node: usize) -> Verdict {
        let Some(management) = &mut self.management else { return Ok(()) };
        // Whoever has nothing to tell lets the ring rest.
        if matches!(self.epilogue, Epilogue::Quiet(_) | Epilogue::Over) {
            return Ok(());
        }
        self.fabric.later(SAMPLE, Extra::Sample(node));
        if self.calm.is_none() && management.draw.one_in(management.plan.restless) {
            let other = other(&mut management.draw);
            management.plan.others[node] = other.max(management.plan.least);
        }
        if !self.fabric.hosts[node].runs() {
            return Ok(());
        }
        let (at, now, me) = (self.fabric.now(), self.fabric.local(node), self.fabric.member(node));
        let stack = self.fabric.hosts[node].process.as_mut().expect("it runs");
        let groups: Vec<GroupId> =
            self.options.groups.iter().map(|group| GroupId::of(&group.name)).collect();
        let usage = management.usage(node, &stack.picture(), &groups);
        let told = &mut management.nodes[node].told;
        let above = usage.above;
        let due = told.is_none_or(|(told, was_above)| {
            now >= told + management.plan.period || above != was_above
        });
        if due && stack.tell_usage(now, usage) {
            *told = Some((now, above));
        }
        let picture = stack.picture();
        let wishes = management.nodes[node].manager.look(now, picture.clone());
        management.sheds.wished((at, now), BOUND, &picture, &wishes)?;
        management.ranks.wished(at, me, management.config.settle / 2, &wishes)?;
        for wish in wishes {
            self.fabric.trace.say(at, || format!("{me} wishes {wish:?}"));
            match wish {
                Wish::Shed(shedding) => {
                    stack.shed(now, shedding);
                }
                Wish::Rank { group, view, order } => {
                    stack.rank(now, group, view, order);
                }
                Wish::Move { group, to, .. } => {
                    (management.still.0, management.steady) = (at, None);
                    // One that somebody asked for is under way: the next look shows what comes of it.
                    let begun = stack.move_primary(now, group, to);
                    self.fabric.trace.say(at, || format!("{begun:?}"));
                }
            }
        }
        self.drain(node)
    }

    /// A node refuses a call of this criticality.
    pub(super) fn refused(&mut self, by: Member, criticality: u8) -> Verdict {
        self.summary.refused += 1;
        let (now, sheds) = (self.fabric.now(), self.management.as_ref().map(|it| &it.sheds));
        sheds.map_or_else(
            || Sheds::default().refused(now, by, criticality),
            |sheds| sheds.refused(now, by, criticality),
        )
    }

    /// A host that has room and refuses calls all the same.
    fn sheds_with_room(&self) -> Option<String> {
        let mut running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        running.find_map(|stack| {
            let picture = stack.picture();
            let roomy =
                |node| picture.usage(node).is_some_and(|usage| usage.used < shedding::ROOMY);
            let (node, level, _) = stack.sheds().find(|(node, ..)| roomy(*node))?;
            Some(format!("{node} has room, and refuses calls below {level}"))
        })
    }

    /// The faults are over.
    pub(super) fn calm_hosts(&mut self) {
        let now = self.fabric.now();
        self.management.iter_mut().for_each(|management| management.still.0 = now);
    }

    /// A node says that a group's backups have another order.
    pub(super) fn ranked(&mut self, by: Member, group: GroupId) -> Verdict {
        self.summary.ranks += 1;
        match &mut self.management {
            Some(management) if management.steady.is_some() && management.has_room() => {
                management.ranks.ranked(by, group)
            }
            _ => Ok(()),
        }
    }

    /// Sees since when all is as it should be, once rings and groups are whole; at the end the twin looks as well.
    pub(super) fn mind_ranks(&mut self, whole: bool) -> Verdict {
        let settled = self.unranked().is_none();
        let pictures = self.pictures();
        let now = self.fabric.now();
        let (Some(management), Some(picture)) = (&mut self.management, pictures.first()) else {
            return Ok(());
        };
        let (since, ring) = management.still;
        if ring != picture.ring || !whole {
            management.still = (now, picture.ring);
            management.steady = None;
        } else if settled
            && management.steady.is_none()
            && now >= since + management.plan.period * KNOWN
        {
            management.ranks.steady();
            management.steady = Some(now);
        }
        match self.epilogue {
            Epilogue::Calling if settled => twin(picture),
            _ => Ok(()),
        }
    }

    /// What is still to come of what hosts have told.
    pub(super) fn missing_rank(&self) -> Option<String> {
        let management = self.management.as_ref()?;
        if matches!(self.epilogue, Epilogue::Quiet(_)) {
            return None;
        }
        let since = match (self.unranked().or_else(|| self.sheds_with_room()), management.steady) {
            (Some(missing), _) => return Some(missing),
            (None, Some(since)) => since,
            (None, None) => return Some("hosts have yet to tell what is so now".into()),
        };
        // Whoever was whole late is looked at for a shorter time.
        let last = self.calm.unwrap_or(since) + liveness::WITHIN / 2;
        let awaited = (since + management.plan.period * REPORTS).min(last);
        (self.fabric.now() < awaited).then(|| "nothing is to be ranked so far".into())
    }

    fn pictures(&self) -> Vec<Picture> {
        let running = self.fabric.hosts.iter().filter_map(|host| host.process.as_ref());
        running.map(|stack| stack.picture()).collect()
    }

    /// What nodes do not know yet of hosts, or does not follow yet from what they know.
    fn unranked(&self) -> Option<String> {
        let management = self.management.as_ref()?;
        let pictures = self.pictures();
        let all = |picture: &Picture| {
            picture.nodes.len() == self.options.nodes
                && picture.nodes.iter().all(|(_, usage)| usage.is_some())
        };
        if let Some(place) = pictures.iter().position(|picture| !all(picture)) {
            return Some(format!("{} has not heard from all hosts", node_id(place)));
        }
        let place = pictures.iter().position(|picture| picture.leads)?;
        let ranking = management.nodes[place].manager.ranking();
        let unlike = pictures[place].groups.iter().find(|shape| {
            let wanted = ranking.targets(shape.id);
            shape.backups.len() > 1 && !wanted.iter().take(2).eq(shape.backups.iter().take(2))
        });
        unlike.map(|shape| {
            format!("{} should be tried {:?}: {shape:?}", shape.id, ranking.targets(shape.id))
        })
    }
}
