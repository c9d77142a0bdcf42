//! Where no move helps calls are refused: small worlds in which what is refused is not done.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_manager::{Config, Manager, Picture, Proposal, Shape};
use wire::ordered::{Shedding, Usage};
use wire::{Duration, GroupId, NodeId, Random, RingId, Share, Time, ViewNumber};

/// Between two looks, and two reports.
const LOOK: Duration = Duration::from_millis(100);
const SETTLE: Duration = Duration::from_millis(300);

/// Below this a host is within any bound.
const BOUND: u64 = 69;

/// A host: what its callers want of it by priority, in percent, and what it has to do beside.
#[derive(Clone, Default)]
struct Server {
    wanted: BTreeMap<u8, u64>,
    other: u64,
    level: u8,
    until: Time,
}

impl Server {
    fn of(wanted: &[(u8, u64)]) -> Server {
        Server { wanted: wanted.iter().copied().collect(), other: 10, ..Server::default() }
    }

    fn used(&self) -> u64 {
        let served = self.wanted.range(self.level..).map(|(_, percent)| percent);
        (served.sum::<u64>() + self.other).min(100)
    }
}

/// Each host has the primary of one group, with backups that do nothing.
struct World {
    now: Time,
    manager: Manager,
    servers: Vec<Server>,
    backups: Vec<Vec<u32>>,
    told: Vec<(Time, Shedding)>,
    moves: usize,
}

impl World {
    fn of(config: Config, servers: Vec<Server>) -> World {
        let backups = vec![Vec::new(); servers.len()];
        let manager = Manager::new(config);
        let (now, told) = (Time(1_000_000_000), Vec::new());
        World { now, manager, servers, backups, told, moves: 0 }
    }

    fn picture(&self) -> Picture {
        let usage = |(place, server): (usize, &Server)| {
            let served = server.used() - server.other.min(server.used());
            let usage = Usage {
                used: Share::percent(server.used()),
                capacity: Share::ONE,
                above: server.used() > BOUND,
                replicas: vec![(GroupId(place as u64), Share::percent(served))],
                classes: server.wanted.keys().copied().collect(),
                refused: 0,
            };
            (NodeId(place as u32 + 1), Some(usage))
        };
        let shape = |(place, backups): (usize, &Vec<u32>)| Shape {
            id: GroupId(place as u64),
            view: ViewNumber(1),
            primary: NodeId(place as u32 + 1),
            backups: backups.iter().copied().map(NodeId).collect(),
        };
        let sheds = (1..).map(NodeId).zip(&self.servers);
        let sheds = sheds.filter(|(_, server)| server.level > 0);
        Picture {
            ring: RingId { sequence: 1, representative: NodeId(1) },
            leads: true,
            nodes: self.servers.iter().enumerate().map(usage).collect(),
            groups: self.backups.iter().enumerate().map(shape).collect(),
            sheds: sheds.map(|(node, server)| (node, (server.level, server.until))).collect(),
            ..Picture::default()
        }
    }

    /// A look, and what follows, unless orders are lost. Primaries never move.
    fn step(&mut self, lost: bool) {
        self.now += LOOK;
        for server in &mut self.servers {
            if server.until <= self.now {
                server.level = 0;
            }
        }
        let picture = self.picture();
        let proposals = self.manager.look(self.now, picture.clone());
        let leaves: BTreeSet<NodeId> = proposals.iter().filter_map(left).collect();
        self.moves += leaves.len();
        for proposal in proposals {
            let Proposal::Shed(shedding) = proposal else { continue };
            self.check(&picture, &shedding, &leaves);
            if !lost {
                let server = &mut self.servers[shedding.node.0 as usize - 1];
                server.level = shedding.level;
                server.until = self.now + shedding.term();
                self.told.push((self.now, shedding));
            }
        }
    }

    /// Properties of every order.
    fn check(&self, picture: &Picture, shedding: &Shedding, leaves: &BTreeSet<NodeId>) {
        let Shedding { node, level, room, .. } = shedding;
        let usage = picture.usage(*node).expect("it has told");
        let most = usage.classes.iter().last().unwrap_or(0);
        assert!(*level <= most, "{node} refuses the most critical: {level} of {most}");
        if *level > picture.level(self.now, *node) {
            assert!(usage.used > Share::percent(BOUND), "{node} uses {}", usage.used);
            assert!(!leaves.contains(node), "{node} can be relieved");
        }
        for it in room {
            let usage = picture.usage(*it).expect("a host with room has told");
            assert!(*it != *node && usage.used < Share::percent(90), "{it} has no room: {usage:?}");
            assert_eq!(picture.level(self.now, *it), 0, "{it} refuses calls itself");
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step(false);
        }
    }

    fn levels(&self) -> Vec<u8> {
        self.servers.iter().map(|server| server.level).collect()
    }

    /// How often a level was another than that before.
    fn changes(&self) -> usize {
        let mut level = 0;
        let changed =
            |(_, it): &&(Time, Shedding)| it.level != std::mem::replace(&mut level, it.level);
        self.told.iter().filter(changed).count()
    }
}

fn left(proposal: &Proposal) -> Option<NodeId> {
    match proposal {
        Proposal::Move { from, .. } => Some(*from),
        Proposal::Rank { .. } | Proposal::Shed(_) => None,
    }
}

fn config() -> Config {
    Config { settle: SETTLE, rest: SETTLE * 2, ..Config::default() }
}

#[test]
fn the_least_critical_are_refused_and_no_more_than_must_be() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 30), (5, 30), (9, 30)])]);
    world.run(SETTLE);
    assert_eq!(world.levels(), [0], "it may pass");
    world.run(SETTLE);
    assert_eq!(world.levels(), [5]);
    world.servers[0].wanted.insert(5, 55);
    world.run(SETTLE * 3);
    assert_eq!(world.levels(), [9]);
    world.servers[0].wanted = BTreeMap::from([(0, 5), (5, 5), (9, 30)]);
    world.run(SETTLE * 6);
    assert_eq!(world.levels(), [0], "step by step");
    let levels: Vec<u8> = world.told.iter().map(|(_, it)| it.level).collect();
    assert!(levels.windows(2).any(|two| two == [9, 5]), "{levels:?}");
    let told = world.told.len();
    world.run(SETTLE * 50);
    assert_eq!(world.told.len(), told, "nothing more is to be said");
}

#[test]
fn what_is_refused_comes_back_ever_more_rarely_where_it_is_too_much() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 30), (5, 30), (9, 30)])]);
    world.run(SETTLE * 200);
    // Eight spans of rest, one to be sure, and the ways of the orders.
    assert!(world.changes() <= 2 * 200 / 9 + 6, "{} changes", world.changes());
    assert!(world.changes() > 10, "it is tried");
    assert!(world.told.iter().all(|(_, it)| it.level <= 5));
}

#[test]
fn callers_who_are_all_alike_are_never_refused() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 120)]), Server::of(&[(200, 95)])]);
    world.run(SETTLE * 20);
    assert_eq!(world.told, []);
}

#[test]
fn when_the_most_critical_are_gone_those_below_are_served() {
    let mut world = World::of(config(), vec![Server::of(&[(3, 60), (7, 60)])]);
    world.run(SETTLE * 3);
    assert_eq!(world.levels(), [7]);
    world.servers[0].wanted.remove(&7);
    world.run(SETTLE * 2);
    assert!(world.servers[0].level <= 3, "nobody else is there");
}

#[test]
fn nothing_is_refused_while_a_primary_can_move() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 50), (9, 30)]), Server::of(&[])]);
    // It is asked to go, and does not: that is no reason.
    world.backups[0] = vec![2];
    world.servers[1].other = 0;
    world.run(SETTLE * 20);
    assert_eq!(world.told, []);
    assert!(world.moves > 3);
    world.servers[1].other = 60;
    world.run(SETTLE * 12);
    assert_eq!(world.levels(), [9, 0], "now nobody has room");
}

#[test]
fn who_has_room_and_a_replica_is_named() {
    let mut servers = vec![Server::of(&[(0, 60), (9, 60)])];
    servers.extend([50, 10, 30, 0].map(|other| Server { other, ..Server::default() }));
    let mut world = World::of(config(), servers);
    // Too much for each of them, but not for the clients that are refused.
    world.backups[0] = vec![2, 3, 4];
    world.run(SETTLE * 3);
    let room: Vec<u32> = world.told[0].1.room.iter().map(|node| node.0).collect();
    assert_eq!(room, [3, 4, 2], "the one with the most room first, and not 5");
}

#[test]
fn an_order_that_is_lost_is_said_again_and_one_that_holds_is_renewed_in_time() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 50), (9, 50)])]);
    for _ in 0..20 {
        world.step(true);
    }
    assert_eq!(world.told, []);
    world.run(SETTLE);
    assert_eq!(world.levels(), [9]);
    // Just below the bound: that is no room.
    world.servers[0].wanted.insert(9, 68);
    for _ in 0..200 {
        world.step(false);
        assert_eq!(world.levels(), [9]);
    }
    assert!(world.told.len() < 200 / 4, "{} orders", world.told.len());
}

#[test]
fn who_manages_next_goes_on_from_there() {
    let mut world = World::of(config(), vec![Server::of(&[(0, 50), (4, 30), (9, 30)])]);
    world.run(SETTLE * 3);
    assert_eq!(world.levels(), [4]);
    world.manager = Manager::new(config());
    world.run(LOOK * 2);
    assert_eq!(world.levels(), [4], "nothing is taken back");
    world.servers[0].wanted = BTreeMap::from([(0, 1), (4, 1), (9, 1)]);
    world.run(SETTLE * 4);
    assert_eq!(world.levels(), [0]);
}

#[test]
fn with_the_knob_off_nothing_is_refused() {
    let config = Config { shed: false, ..config() };
    let mut world = World::of(config, vec![Server::of(&[(0, 60), (9, 60)])]);
    world.run(SETTLE * 20);
    assert_eq!(world.told, []);
}

/// Loads come and go; then they are small, and nothing is refused any more.
fn trial(seed: u64, config: Config) {
    let mut random = Random::new(seed);
    let count = 1 + random.below(4) as usize;
    let mut draw = |_| {
        let classes = random.below(4);
        let wanted = (0..classes).map(|_| (random.below(6) as u8 * 51, 5 * random.below(15)));
        Server { wanted: wanted.collect(), other: 5 * random.below(8), ..Server::default() }
    };
    let servers = (0..count).map(&mut draw).collect();
    let mut world = World::of(config, servers);
    let mut random = Random::new(seed ^ 1);
    for place in 0..count {
        let others = (1..=count as u32).filter(|node| *node != place as u32 + 1);
        world.backups[place] = others.filter(|_| random.one_in(3)).collect();
    }
    for _ in 0..200 {
        if random.one_in(10) {
            let place = random.below(count as u64) as usize;
            let server = &mut world.servers[place];
            for percent in server.wanted.values_mut() {
                *percent = 5 * random.below(15);
            }
        }
        world.step(random.one_in(8));
    }
    for server in &mut world.servers {
        server.wanted.values_mut().for_each(|percent| *percent = 1);
        server.other = 5;
    }
    world.run(SETTLE * (8 * 4 + 4));
    assert!(world.levels().iter().all(|level| *level == 0), "seed {seed}: {:?}", world.levels());
}

#[test]
fn whatever_hosts_have_to_do_the_most_critical_are_served_and_it_ends() {
    (0..300).for_each(|seed| trial(seed, config()));
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_mistakes_of_shedding_are_found() {
    use steadfast_manager::Bug;
    for bug in [Bug::ShedThoughMoveHelps, Bug::ShedCriticalFirst, Bug::ShedWithoutEnd] {
        let config = Config { planted: Some(bug).into(), ..config() };
        let wrong = |seed: u64| {
            let run = std::panic::AssertUnwindSafe(|| trial(seed, config));
            std::panic::catch_unwind(run).is_err()
        };
        assert!((0..300).any(wrong), "{bug:?} is not found");
    }
}
