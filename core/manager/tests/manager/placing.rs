//! The cluster state and the placer, in a world as small as can be: nodes die and return, are
//! drained, and have programs that fail. Commands are late or lost, and the leader changes. The
//! right end is found by trying all placements.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use steadfast_manager::cluster_state::{
    Answer, ClusterState, Command, Deployment, Distribution, Fault, Labels, Need, Program, Refusal,
    Replication,
};
use steadfast_manager::placement::{Placer, Why};
use steadfast_manager::{Picture, Planted, Shape};
use wire::ordered::{Durability, Usage};
use wire::{GroupId, NodeId, Random, RingId, Share, Time, ViewNumber};

mod upgrading;

const TICK: Duration = Duration::from_millis(100);

pub fn deployment(group: &str, replicas: u32) -> Deployment {
    Deployment::new(group, vec!["./program".into()], replicas)
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

/// A group's replicas, and which of them have the state.
type Replicas = BTreeMap<NodeId, bool>;

struct World {
    random: Random,
    now: Time,
    cluster_state: ClusterState,
    placer: Placer,
    ring: u64,
    up: BTreeSet<NodeId>,
    groups: BTreeMap<String, Replicas>,
    /// Programs that do not serve.
    bad: BTreeSet<(String, NodeId)>,
    /// The program of each replica.
    runs: BTreeMap<(String, NodeId), Program>,
    /// A program that serves nowhere, and whether it ends or is silent.
    broken: Option<(Program, Fault)>,
    late: Vec<Command>,
    steps: usize,
}

impl World {
    fn new(seed: u64, nodes: u32) -> World {
        let mut world = World {
            random: Random::new(seed),
            now: Time(1_000_000_000),
            cluster_state: ClusterState::default(),
            placer: placer(),
            ring: 1,
            up: (1..=nodes).map(NodeId).collect(),
            groups: BTreeMap::new(),
            bad: BTreeSet::new(),
            runs: BTreeMap::new(),
            broken: None,
            late: Vec::new(),
            steps: 0,
        };
        for node in 1..=nodes {
            let rack = ["a", "b", "c"][(node % 3) as usize];
            let disk = if node % 2 == 0 { "fast" } else { "slow" };
            let labels = labels(&[("rack", rack), ("disk", disk)]);
            let capacity = Share::percent(400);
            world.say(Command::Introduce { node: NodeId(node), labels, capacity }).unwrap();
        }
        world
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.random.next_u64().is_multiple_of(n)
    }

    fn say(&mut self, command: Command) -> Result<Answer, Refusal> {
        let before = self.cluster_state.clone();
        let said = self.cluster_state.apply(self.now, command);
        if said.is_err() {
            assert_eq!(self.cluster_state, before, "a refusal changes nothing");
        }
        assert_eq!(
            ClusterState::decode(&self.cluster_state.encode()).as_ref(),
            Ok(&self.cluster_state)
        );
        said
    }

    fn picture(&mut self) -> Picture {
        let mut nodes = Vec::new();
        for node in self.up.clone() {
            // Noise.
            let used = Share::percent(self.random.next_u64() % 60);
            let usage = Usage { used, capacity: Share::percent(400), ..Usage::default() };
            nodes.push((node, Some(usage)));
        }
        let shapes = self.groups.iter().filter_map(|(name, replicas)| {
            let mut synced = replicas.iter().filter(|(_, synced)| **synced).map(|(node, _)| *node);
            let primary = synced.next()?;
            let (id, view) = (GroupId::of(name), ViewNumber(1));
            Some(Shape { id, view, primary, backups: synced.collect() })
        });
        let mut groups: Vec<Shape> = shapes.collect();
        groups.sort_unstable_by_key(|shape| shape.id);
        let ring = RingId { sequence: self.ring, representative: NodeId(1) };
        Picture { ring, leads: true, nodes, groups, ..Picture::default() }
    }

    /// Nodes do what the cluster state says, replicas get the state, who leads looks.
    fn tick(&mut self, span: Duration) {
        self.now += span;
        self.reconcile();
        let picture = self.picture();
        let (now, wall) = (self.now, self.now);
        let steps = self.placer.look(now, wall, &picture, &self.cluster_state);
        self.steps += steps.len();
        for (step, command) in steps {
            match &command {
                Command::Place { group, .. } => self.check_step(group, &step.on, step.why),
                Command::Advance { group, node, .. } => self.check_advance(group, *node),
                Command::Undo { .. } => {}
                other => panic!("{other:?}"),
            }
            match self.random.next_u64() % 10 {
                0 => {}
                1 => self.late.push(command),
                _ => drop(self.say(command).unwrap()),
            }
        }
        if !self.late.is_empty() && self.one_in(3) {
            let late = self.late.remove(0);
            self.say(late).unwrap();
        }
    }

    fn check_step(&self, group: &str, on: &[NodeId], why: Why) {
        let placed = self.cluster_state.of(group).unwrap();
        for node in on.iter().filter(|node| !placed.on.contains(node)) {
            assert!(matches!(why, Why::Missing | Why::Better));
            assert!(
                self.up.contains(node) && !self.cluster_state.is_drained(*node),
                "{group} on {node}"
            );
            let introduced = self.cluster_state.node(*node).unwrap();
            let deployment = &placed.deployment;
            assert!(deployment.labels.iter().all(|(n, v)| introduced.labels.get(n) == Some(v)));
            if let Distribution::Pinned(nodes) = &deployment.distribution {
                assert!(nodes.contains(node));
            }
        }
        assert!(on.len().abs_diff(placed.on.len()) <= 1 || why == Why::Left, "{why:?}");
        // One with the state goes only if as many as there are places for stay that have it: seeds
        // 880 and 1029 of the simulator.
        let has = |node: &&NodeId| self.groups[group].get(*node) == Some(&true);
        if placed.on.iter().filter(|node| !on.contains(node)).any(|node| has(&node)) {
            let failing = |node: &NodeId| {
                placed.failing.get(node).is_some_and(|failing| self.now < failing.until)
            };
            let deployment = &placed.deployment;
            let places = self.up.iter().filter(|node| {
                !self.cluster_state.is_drained(**node)
                    && !failing(node)
                    && self.may(deployment, **node)
            });
            let wanted = (deployment.replicas as usize).min(places.count()).max(1);
            // A replica that changes over to another program is about to restart without the state
            // (seed 9021386).
            let leaves = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
            let left = on.iter().filter(|node| has(node) && leaves != Some(**node)).count();
            assert!(left >= wanted, "{left} of {wanted}: {why:?}, {on:?}, {placed:?}");
        }
    }

    fn reconcile(&mut self) {
        for node in self.up.clone() {
            let wanted: BTreeSet<String> =
                self.cluster_state.at(node).map(|deployment| deployment.group.clone()).collect();
            for (name, replicas) in &mut self.groups {
                let others = replicas.iter().any(|(other, synced)| *other != node && *synced);
                // As at a real node: who alone has the state keeps it, whatever was decided before
                // the others were lost.
                if !wanted.contains(name) && (others || self.cluster_state.of(name).is_none()) {
                    replicas.remove(&node);
                }
            }
            for name in wanted {
                self.change_over(&name, node);
                let bad = self.bad.contains(&(name.clone(), node)) || self.ends(&name, node);
                let begun = self.groups.contains_key(&name);
                let lucky = self.random.next_u64().is_multiple_of(4);
                let replicas = self.groups.entry(name.clone()).or_default();
                if bad {
                    replicas.remove(&node);
                    let placed = self.cluster_state.of(&name).unwrap();
                    let (number, failing) = (placed.number, placed.failing.get(&node).copied());
                    if failing.is_none_or(|failing| failing.until <= self.now) {
                        self.say(Command::Failing { group: name, number, node }).unwrap();
                    }
                    continue;
                }
                let donor = replicas.values().any(|synced| *synced);
                let synced = replicas.entry(node).or_insert(false);
                *synced |= (donor && lucky) || !begun;
                if *synced {
                    self.tell_upgraded(name, node);
                }
            }
        }
    }

    /// Something happens.
    fn fault(&mut self, nodes: u32) {
        let node = NodeId((self.random.next_u64() % u64::from(nodes)) as u32 + 1);
        match self.random.next_u64() % 8 {
            0 | 1 if self.may_die(node) => {
                self.up.remove(&node);
                self.groups.values_mut().for_each(|replicas| _ = replicas.remove(&node));
                self.ring += 1;
            }
            2 | 3 => {
                self.up.insert(node);
                self.ring += 1;
            }
            4 => drop(self.say(Command::Drain { node }).unwrap()),
            5 => drop(self.say(Command::Return { node })),
            6 => self.placer = placer(),
            _ => {
                let group = "g1".to_string();
                if self.has_another(&group, node) {
                    self.bad.insert((group, node));
                }
            }
        }
    }

    /// No group loses its state by what the world does.
    fn may_die(&self, node: NodeId) -> bool {
        let mut groups = self.groups.iter();
        groups.all(|(group, replicas)| replicas.is_empty() || self.has_another(group, node))
    }

    /// Another node has the state, and is not about to leave.
    fn has_another(&self, group: &str, node: NodeId) -> bool {
        let stays =
            |other: &NodeId| self.cluster_state.of(group).is_some_and(|it| it.on.contains(other));
        self.groups.get(group).is_some_and(|replicas| {
            replicas.iter().any(|(other, synced)| *other != node && *synced && stays(other))
        })
    }

    /// Flaws of replicas at these nodes.
    fn flaws(&self, label: &str, on: &[NodeId]) -> usize {
        let value = |node: &NodeId| self.cluster_state.node(*node).unwrap().labels.get(label);
        let pairs = on.iter().enumerate().flat_map(|(i, a)| on[..i].iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| value(a) == value(b)).count()
    }

    /// Labels and pins allow it.
    fn may(&self, deployment: &Deployment, node: NodeId) -> bool {
        let labels = &self.cluster_state.node(node).unwrap().labels;
        let pinned = match &deployment.distribution {
            Distribution::Pinned(nodes) => nodes.contains(&node),
            _ => true,
        };
        pinned && deployment.labels.iter().all(|(n, v)| labels.get(n) == Some(v))
    }

    fn check_end(&self, seed: u64) {
        for placed in self.cluster_state.placed() {
            let deployment = &placed.deployment;
            let wanted = deployment.replicas as usize;
            let may = |node: &NodeId| self.may(deployment, *node);
            let able: Vec<NodeId> = self
                .up
                .iter()
                .copied()
                .filter(|node| may(node) && !self.cluster_state.is_drained(*node))
                .collect();
            let name = &deployment.group;
            let say = || {
                format!("seed {seed}, {name}: {placed:?}, {able:?}, {:?}", self.groups.get(name))
            };
            let replicas = &self.groups[name];
            // Nobody was there to give the state of a replica that had no other place.
            let stuck = able.is_empty();
            if stuck {
                assert!(!placed.on.is_empty(), "{}", say());
                continue;
            }
            assert!(placed.on.iter().all(|node| able.contains(node)), "{}", say());
            let least = match deployment.replication {
                Replication::Minimum(least) => (least as usize).min(able.len()),
                _ => wanted.min(able.len()),
            };
            assert!((least..=wanted).contains(&placed.on.len()), "{}", say());
            let there: Vec<NodeId> = replicas.keys().copied().collect();
            assert_eq!(there, placed.on, "{}", say());
            assert!(replicas.values().all(|synced| *synced), "{}", say());
            if let Distribution::Spread(label) = &deployment.distribution
                && placed.on.len() == wanted
            {
                let best = subsets(&able, wanted).map(|on| self.flaws(label, &on)).min().unwrap();
                assert_eq!(self.flaws(label, &placed.on), best, "{}", say());
            }
        }
    }
}

fn subsets(of: &[NodeId], size: usize) -> impl Iterator<Item = Vec<NodeId>> + '_ {
    (0u32..1 << of.len()).filter(move |mask| mask.count_ones() as usize == size).map(move |mask| {
        of.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, n)| *n).collect()
    })
}

fn placer() -> Placer {
    Placer::new(Planted::default())
}

/// One seed: deployments are drawn, faults strike, and then all is quiet.
fn run(seed: u64, placer: impl Fn() -> Placer) -> World {
    let mut draw = Random::new(seed ^ 0xd3);
    let nodes = 3 + (draw.next_u64() % 5) as u32;
    let mut world = World::new(seed, nodes);
    world.placer = placer();
    for group in 1..=1 + draw.next_u64() % 3 {
        let mut it = deployment(&format!("g{group}"), 1 + (draw.next_u64() % 3) as u32);
        it.distribution = match draw.next_u64() % 3 {
            0 => Distribution::LeastLoaded,
            1 => Distribution::Spread("rack".into()),
            _ => Distribution::Pinned(
                (1..=nodes).step_by(1 + group as usize % 2).map(NodeId).collect(),
            ),
        };
        if draw.next_u64().is_multiple_of(4) {
            it.labels = labels(&[("disk", "slow")]);
        }
        it.replication = match draw.next_u64() % 4 {
            0 => Replication::KeepAfter(Duration::from_secs(2)),
            1 => Replication::Minimum(1),
            _ => Replication::Keep,
        };
        // Too few places: the refusal says so.
        let said = world.say(Command::Deploy(it));
        assert!(matches!(said, Ok(Answer::Done) | Err(Refusal::NoRoom { .. })), "{said:?}");
    }
    for tick in 0..400 {
        if world.one_in(12) {
            world.fault(nodes);
        }
        if tick == 150 && draw.next_u64().is_multiple_of(2) {
            world.upgrade(&mut draw);
        }
        world.tick(TICK);
    }
    world.bad.clear();
    world.up = (1..=nodes).map(NodeId).collect();
    world.ring += 1;
    for _ in 0..200 {
        world.tick(Duration::from_secs(60));
    }
    world
}

#[test]
fn replicas_are_where_they_should_be_whatever_happens() {
    for seed in 0..600 {
        let mut world = run(seed, placer);
        world.check_end(seed);
        world.check_programs(seed);
        world.steps = 0;
        for _ in 0..100 {
            world.tick(TICK);
        }
        assert_eq!(world.steps, 0, "seed {seed}: only loads change, and nothing moves for that");
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_mistakes_are_found() {
    use steadfast_manager::Bug;
    for bug in
        [Bug::PlaceOnDrained, Bug::LeaveBeforeArrival, Bug::UpgradeRegardless, Bug::UndoNothing]
    {
        let wrong = |seed: u64| {
            let run = std::panic::AssertUnwindSafe(|| {
                let world = run(seed, || Placer::new(Some(bug).into()));
                world.check_end(seed);
                world.check_programs(seed);
            });
            std::panic::catch_unwind(run).is_err()
        };
        assert!((0..2_000).any(wrong), "{bug:?} goes unnoticed");
    }
}

#[test]
fn what_fits_nowhere_is_refused_with_the_reason() {
    let mut world = World::new(1, 3);
    let mut four = deployment("four", 4);
    let Err(refusal) = world.say(Command::Deploy(four.clone())) else { panic!("it fits nowhere") };
    assert!(refusal.to_string().contains("3 of 4 replicas have a place"), "{refusal}");
    four.replicas = 2;
    four.labels = labels(&[("disk", "fast")]);
    let refusal = world.say(Command::Deploy(four.clone())).unwrap_err().to_string();
    assert!(refusal.contains("n1: its label disk is slow, not fast"), "{refusal}");

    // Each host has four processors. No call runs on two at once: 20 % are left of each, and 80 %
    // of all four together serve no call of 30 %.
    let need = |percent: u32| {
        let second = Duration::from_secs(1);
        Some(Need { cost: second * percent / 100, period: second, deadline: second })
    };
    for group in ["a", "b", "c", "d"] {
        let heavy = Deployment { need: need(80), ..deployment(group, 3) };
        world.say(Command::Deploy(heavy)).unwrap();
    }
    for _ in 0..40 {
        world.tick(TICK);
    }
    assert_eq!(world.cluster_state.of("d").unwrap().on.len(), 3);
    let more = Deployment { need: need(30), ..deployment("more", 1) };
    let refusal = world.say(Command::Deploy(more)).unwrap_err().to_string();
    assert!(refusal.contains("too little of its processors"), "{refusal}");
    let less = Deployment { need: need(20), ..deployment("less", 1) };
    world.say(Command::Deploy(less)).unwrap();
    let impossible = Deployment { need: need(130), ..deployment("impossible", 1) };
    assert_eq!(world.say(Command::Deploy(impossible)), Err(Refusal::Need));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut world = World::new(1, 3);
    let mut refused = |deployment: Deployment| world.say(Command::Deploy(deployment)).unwrap_err();
    assert_eq!(refused(deployment("", 1)), Refusal::Name(String::new()));
    let own = wire::system::MANAGER;
    assert_eq!(refused(deployment(own, 1)), Refusal::Name(own.into()));
    assert_eq!(refused(deployment("g", 0)), Refusal::Replicas(0));
    let mut it = deployment("g", 2);
    it.replication = Replication::Minimum(3);
    assert_eq!(refused(it), Refusal::Least { least: 3, wanted: 2 });
    let mut it = deployment("g", 2);
    it.program.command.clear();
    assert_eq!(refused(it), Refusal::NoCommand);
    let mut it = deployment("g", 2);
    it.program.command.push("x".repeat(wire::limits::MAX_COMMAND));
    assert!(matches!(refused(it), Refusal::TooLarge(_)));

    world.say(Command::Deploy(deployment("g", 2))).unwrap();
    let mut other = deployment("g", 2);
    other.options.style = wire::ordered::Style::Active;
    assert_eq!(world.say(Command::Deploy(other)), Err(Refusal::RunsAnother("g".into())));
    let (withdraw, nobody) = (|g: &str| Command::Withdraw { group: g.into() }, NodeId(9));
    assert_eq!(world.say(withdraw("h")), Err(Refusal::NotDeployed("h".into())));
    world.say(withdraw("g")).unwrap();
    assert_eq!(world.say(Command::Drain { node: nobody }), Err(Refusal::UnknownNode(nobody)));
    assert_eq!(world.say(Command::Return { node: nobody }), Err(Refusal::NotDrained(nobody)));
}

#[test]
fn a_node_that_was_retired_is_forgotten_once_it_is_to_have_no_replica() {
    let mut world = World::new(1, 3);
    world.say(Command::Deploy(deployment("g", 1))).unwrap();
    let number = world.cluster_state.of("g").unwrap().number;
    let place = |number, on: u32| {
        let on = vec![NodeId(on)];
        Command::Place { group: "g".into(), number, on, filled: false }
    };
    world.say(place(number, 3)).unwrap();
    let forget = Command::Forget { node: NodeId(3) };
    assert_eq!(world.say(forget.clone()), Ok(Answer::Void));
    let number = world.cluster_state.of("g").unwrap().number;
    world.say(place(number, 2)).unwrap();
    world.say(Command::Drain { node: NodeId(3) }).unwrap();
    assert_eq!(world.say(forget.clone()), Ok(Answer::Done));
    assert!(world.cluster_state.nodes().all(|(node, _)| node != NodeId(3)));
    assert_eq!(world.say(forget), Ok(Answer::Void));
}

#[test]
fn one_that_was_placed_anew_meanwhile_is_placed_by_nobody_else() {
    let mut world = World::new(1, 3);
    world.say(Command::Deploy(deployment("g", 1))).unwrap();
    let number = world.cluster_state.of("g").unwrap().number;
    let place = |number, on: &[u32]| {
        let on = on.iter().copied().map(NodeId).collect();
        Command::Place { group: "g".into(), number, on, filled: false }
    };
    assert_eq!(world.say(place(number, &[1])), Ok(Answer::Done));
    assert_eq!(world.say(place(number, &[2])), Ok(Answer::Void), "another was first");
    let number = world.cluster_state.of("g").unwrap().number;
    assert_eq!(world.say(place(number, &[2, 2])), Ok(Answer::Void), "a node has one replica");
    assert_eq!(world.say(place(number, &[8])), Ok(Answer::Void), "nobody knows it");
    assert_eq!(world.cluster_state.of("g").unwrap().on, [NodeId(1)]);
}

/// The simulator's world `everything`, seed 45: a host was away, another got a replica, and when
/// the first was back from its disk, with the state, and had not said so yet, its replica was one
/// too many.
#[test]
fn while_nobody_has_the_state_of_a_group_on_disk_nobody_goes() {
    let looks = |durability| {
        let mut world = World::new(1, 3);
        let mut wanted = deployment("g", 1);
        wanted.options.durability = durability;
        world.say(Command::Deploy(wanted)).unwrap();
        let number = world.cluster_state.of("g").unwrap().number;
        let on = vec![NodeId(1), NodeId(2)];
        world.say(Command::Place { group: "g".into(), number, on, filled: true }).unwrap();
        let picture = Picture { groups: Vec::new(), ..world.picture() };
        let steps = placer().look(world.now, world.now, &picture, &world.cluster_state);
        steps.into_iter().map(|(step, _)| step.why).collect::<Vec<_>>()
    };
    assert_eq!(looks(Durability::Disk), []);
    assert_eq!(looks(Durability::Memory), [Why::Surplus]);
}
