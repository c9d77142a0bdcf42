//! The cost of the loss of one host for the manager: its own time, and the bytes of messages, by
//! the number of hosts and groups.
//!
//! The pure machine alone, with the whole cluster as its picture: a real one has at most
//! [`wire::limits::MAX_NODES`] nodes.

use std::time::{Duration, Instant};

use manager::{Config, Manager, Picture, Proposal, Shape};
use serde_json::{Value, json};
use wire::client::{Bound, Frame, Target, Targets};
use wire::ordered::{Ordered, Rank, Usage};
use wire::{GroupId, NodeId, Random, Share, Time, ViewNumber};

use harness::figures::{Times, median_and_worst};
use harness::{Experiment, Outcome, Run, bail};

/// Replicas of a group.
const REPLICAS: usize = 3;
/// The largest difference between a primary's and a backup's load, in hundredths of a processor.
const MOST: u64 = 4;
/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);
/// After so many looks without an end the manager is said to find none.
const TIMEOUT: usize = 100;

/// The cost of one host's loss for the manager, by the number of nodes and groups: its time, and
/// bytes of messages.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Sizes of clusters.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 30, 100, 300, 1_000])]
    nodes: Vec<u32>,
    /// Groups for each node, of three replicas each.
    #[arg(long, default_value_t = 10)]
    groups: u64,
    /// Losses in each cluster; the cluster is whole again before the next.
    #[arg(long, default_value_t = 100)]
    losses: u64,
    /// The seed of places, tasks and losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The cost of one loss.
#[derive(Default)]
struct Loss {
    /// Groups that had a replica there.
    touched: usize,
    /// Orders of backups that were asked for.
    ranked: usize,
    /// Primaries that were moved to make room.
    moved: usize,
    /// Bytes of the ordered requests.
    ordered: usize,
    /// Bytes of the news of each new view, to one client each.
    pushed: usize,
    /// Until the first list was decided: the first look after the loss.
    first: Duration,
    /// All looks that proposed anything.
    whole: Duration,
}

/// A cluster at rest, and who manages it.
#[derive(Clone)]
struct World {
    picture: Picture,
    manager: Manager,
    now: Time,
}

impl Experiment for Options {
    const NAME: &'static str = "scale";
    const SMOKE: &'static str = "--nodes 10 --losses 2";

    fn run(&self, run: &Run) -> Outcome<()> {
        run.begin(&format!(
            "one host is lost, {} times in each; medians and worst; looks in µs",
            self.losses
        ));
        let table = run.table(
            "nodes:6, groups:8, on host=touched:9.0, ranked:8.0, worst=ranked_most:7.0, moved:7.0, \
             worst=moved_most:7.0, ordered B=ordered_bytes:11.0, worst=ordered_bytes_most:8.0, \
             pushed B=pushed_bytes:10.0, first look=first_look_us:12.0, \
             worst=first_look_us_most:8.0, all looks=all_looks_us:11.0, \
             worst=all_looks_us_most:8.0, idle look=idle_look_us:11.0",
        );
        for &nodes in &self.nodes {
            if nodes < REPLICAS as u32 + 1 {
                let least = REPLICAS + 1;
                bail!("a cluster of {nodes} cannot lose a host: --nodes needs at least {least}");
            }
            let mut draw = Random::new(self.seed);
            let mut world = World::new(&mut draw, nodes, u64::from(nodes) * self.groups);
            world.settle(|_, _| ())?;
            let idle = world.idle();
            let losses: Vec<Loss> = (0..self.losses)
                .map(|_| world.clone().lose(NodeId(1 + draw.below(u64::from(nodes)) as u32)))
                .collect::<Outcome<_>>()?;
            table.row(&self.row(nodes, idle, &losses)?);
        }
        Ok(())
    }
}

impl Options {
    fn row(&self, nodes: u32, idle: Duration, losses: &[Loss]) -> Outcome<Value> {
        let none = "no losses: --losses needs at least 1";
        let of = |figure: fn(&Loss) -> usize| {
            let figures = losses.iter().map(|loss| figure(loss) as f64).collect();
            median_and_worst(figures).ok_or(none)
        };
        let times = |time: fn(&Loss) -> Duration| {
            let mut times = Times::default();
            losses.iter().for_each(|loss| times.push(time(loss)));
            times.summary().ok_or(none)
        };
        let (ranked, moved) = (of(|loss| loss.ranked)?, of(|loss| loss.moved)?);
        let (ordered, pushed) = (of(|loss| loss.ordered)?, of(|loss| loss.pushed)?);
        let (first, whole) = (times(|loss| loss.first)?, times(|loss| loss.whole)?);
        Ok(json!({
            "nodes": nodes, "groups": u64::from(nodes) * self.groups, "losses": losses.len(),
            "touched": of(|loss| loss.touched)?.0, "ranked": ranked.0, "ranked_most": ranked.1,
            "moved": moved.0, "moved_most": moved.1, "ordered_bytes": ordered.0,
            "ordered_bytes_most": ordered.1, "pushed_bytes": pushed.0,
            "pushed_bytes_most": pushed.1, "first_look_us": first.p50,
            "first_look_us_most": first.max, "all_looks_us": whole.p50,
            "all_looks_us_most": whole.max, "idle_look_us": idle.as_nanos() as f64 / 1e3,
        }))
    }
}

impl World {
    fn new(draw: &mut Random, nodes: u32, groups: u64) -> World {
        let ids = (1..=nodes).map(NodeId);
        let usage = || Usage { capacity: Share::ONE, ..Usage::default() };
        let nodes: Vec<_> = ids.map(|node| (node, Some(usage()))).collect();
        let mut picture = Picture { leads: true, nodes, ..Picture::default() };
        for number in 0..groups {
            let id = GroupId::of(&format!("group {number}"));
            let mut replicas: Vec<NodeId> = Vec::new();
            while replicas.len() < REPLICAS {
                let node = NodeId(1 + draw.below(picture.nodes.len() as u64) as u32);
                if !replicas.contains(&node) {
                    replicas.push(node);
                }
            }
            let most = Share::percent(1 + draw.below(MOST));
            for (place, node) in replicas.iter().enumerate() {
                let share = if place == 0 { most } else { Share(most.0 / 8) };
                tell(&mut picture, *node, id, share);
            }
            let (primary, backups) = (replicas[0], replicas[1..].to_vec());
            picture.groups.push(Shape { id, view: ViewNumber(1), primary, backups });
        }
        picture.groups.sort_by_key(|shape| shape.id);
        World { picture, manager: Manager::new(Config::default()), now: Time::ZERO }
    }

    /// Looks until nothing is proposed any more; reports the time and the proposals of each look.
    fn settle(&mut self, mut told: impl FnMut(Duration, &[Proposal])) -> Outcome<()> {
        for _ in 0..TIMEOUT {
            self.now += PERIOD;
            let picture = self.picture.clone();
            let started = Instant::now();
            let proposals = self.manager.look(self.now, picture);
            told(started.elapsed(), &proposals);
            if proposals.is_empty() {
                return Ok(());
            }
            proposals.iter().for_each(|proposal| self.come_true(proposal));
        }
        Err(format!("the manager proposes something after {TIMEOUT} looks at the same hosts")
            .into())
    }

    fn come_true(&mut self, proposal: &Proposal) {
        let (id, to) = match proposal {
            Proposal::Rank { group, order, .. } => {
                let shape = self.shape(*group);
                shape.backups.clone_from(order);
                shape.view = ViewNumber(shape.view.0 + 1);
                return;
            }
            Proposal::Move { group, to, .. } => (*group, *to),
            // Nobody calls.
            Proposal::Shed(_) => return,
        };
        let shape = self.shape(id);
        let from = std::mem::replace(&mut shape.primary, to);
        shape.backups.retain(|node| *node != to);
        shape.backups.insert(0, from);
        shape.view = ViewNumber(shape.view.0 + 1);
        let of = |node| self.picture.usage(node).map_or(Share::ZERO, |usage| usage.of(id));
        let (least, most) = (of(to), of(from));
        tell(&mut self.picture, from, id, least);
        tell(&mut self.picture, to, id, most);
    }

    fn shape(&mut self, id: GroupId) -> &mut Shape {
        let place = self.picture.groups.binary_search_by_key(&id, |shape| shape.id);
        &mut self.picture.groups[place.expect("proposals are of groups that are there")]
    }

    /// The time of a look that finds nothing to do.
    fn idle(&mut self) -> Duration {
        let picture = self.picture.clone();
        let started = Instant::now();
        let proposals = self.manager.look(self.now, picture);
        assert_eq!(proposals, [], "it has settled");
        started.elapsed()
    }

    /// A host is lost: the first of the backups is primary, and uses what the lost one did.
    fn lose(mut self, lost: NodeId) -> Outcome<Loss> {
        let mut loss = Loss::default();
        let usage = self.picture.usage(lost).cloned().unwrap_or_default();
        self.picture.nodes.retain(|(node, _)| *node != lost);
        for (id, _) in &usage.replicas {
            let shape = self.shape(*id);
            loss.touched += 1;
            shape.view = ViewNumber(shape.view.0 + 1);
            if shape.primary == lost {
                shape.primary = shape.backups.remove(0);
                let primary = shape.primary;
                tell(&mut self.picture, primary, *id, usage.of(*id));
            } else {
                shape.backups.retain(|node| *node != lost);
            }
            loss.pushed += self.news(*id);
        }
        let mut all = Vec::new();
        let mut looks = Vec::new();
        self.settle(|took, proposals| {
            looks.push((took, proposals.is_empty()));
            all.extend_from_slice(proposals);
        })?;
        loss.first = looks[0].0;
        loss.whole = looks.iter().filter(|(_, idle)| !idle).map(|(took, _)| *took).sum();
        for proposal in &all {
            match proposal {
                Proposal::Rank { group, view, order } => {
                    let rank = Rank { group: *group, view: *view, order: order.clone() };
                    loss.ranked += 1;
                    loss.ordered += Ordered::Rank(rank).encode().len();
                    loss.pushed += self.news(*group);
                }
                Proposal::Move { group, .. } => {
                    loss.moved += 1;
                    loss.pushed += self.news(*group);
                }
                Proposal::Shed(shedding) => {
                    loss.ordered += Ordered::Shedding(shedding.clone()).encode().len();
                }
            }
        }
        Ok(loss)
    }

    /// Bytes that tell one client of a group's view.
    fn news(&mut self, id: GroupId) -> usize {
        let shape = self.shape(id);
        let address = std::net::SocketAddr::from(([10, 0, 0, 1], 7_100));
        let nodes = [shape.primary].into_iter().chain(shape.backups.iter().copied());
        let targets = nodes.map(|node| Target { node, address }).collect();
        let targets = Targets { view: shape.view, nodes: targets, ..Targets::default() };
        Frame::News(Bound { group: id, targets: Some(targets) }).encode().len()
    }
}

/// Sets a replica's load, as its host reports it.
fn tell(picture: &mut Picture, node: NodeId, id: GroupId, share: Share) {
    let place = picture.nodes.binary_search_by_key(&node, |(node, _)| *node);
    let usage = place.ok().and_then(|place| picture.nodes[place].1.as_mut());
    let Some(usage) = usage else { return };
    match usage.replicas.binary_search_by_key(&id, |(group, _)| *group) {
        Ok(place) => usage.replicas[place].1 = share,
        Err(place) => usage.replicas.insert(place, (id, share)),
    }
    usage.used = usage.replicas.iter().map(|(_, share)| *share).sum();
}
