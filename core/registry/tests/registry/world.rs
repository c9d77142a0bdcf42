//! A small world: nodes with registrars, one registry, commands that take their time, are lost with
//! who says them, and nodes that die and come back. No dead member is listed beyond its bound.

use std::collections::BTreeMap;

use steadfast_registry::{
    AGAIN, Address, Command, Hosted, Registrar, Registry, Sight, Technique, Terms,
};
use wire::{Duration, GroupId, Member, NodeId, Random, Time};

use super::{member, ms};

/// How long a death is unnoticed at most, and how long a command takes.
const DETECTED: Duration = Duration::from_millis(20);
const ORDERED: Duration = Duration::from_millis(15);
const STEP: Duration = Duration::from_millis(1);

struct World {
    random: Random,
    now: Time,
    registry: Registry,
    nodes: BTreeMap<NodeId, (Member, Registrar)>,
    /// The lives that died, and when.
    dead: BTreeMap<Member, Time>,
    /// Under way: when it arrives, and whether it was said by somebody.
    wires: Vec<(Time, Command)>,
    technique: Technique,
    make: fn(Member, Terms) -> Registrar,
    /// While this lasts, what is said is lost: the cluster forms anew.
    deaf_until: Time,
}

impl World {
    fn terms(&self) -> Terms {
        Terms { technique: self.technique, lease_ms: 300, refresh_ms: 100 }
    }

    fn birth(&mut self, node: u32, life: u64) {
        let me = member(node, life);
        self.nodes.insert(me.node, (me, (self.make)(me, self.terms())));
    }

    /// The cluster as living nodes see it: deaths only after a while.
    fn sight(&self, me: Member) -> Sight {
        let seen = |(dead, at): (&Member, &Time)| (self.now < *at + DETECTED).then_some(*dead);
        let living = self.nodes.values().map(|(member, _)| *member);
        let mut members: Vec<Member> = living.chain(self.dead.iter().filter_map(seen)).collect();
        members.sort();
        let group = Hosted { name: "x".into(), replicas: members.clone(), synced: members.clone() };
        let leader = self.nodes.values().map(|(member, _)| *member).min();
        Sight {
            leads: leader == Some(me),
            members,
            groups: BTreeMap::from([(GroupId::of("x"), group)]),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        self.now += STEP;
        let now = self.now;
        let nodes: Vec<NodeId> = self.nodes.keys().copied().collect();
        for node in nodes {
            let (me, _) = self.nodes[&node];
            let sight = self.sight(me);
            let (_, registrar) = self.nodes.get_mut(&node).expect("it lives");
            for command in registrar.look(now, now, &sight, &self.registry) {
                if now < self.deaf_until {
                    continue;
                }
                let delay = Duration::from_millis(1 + self.random.below(14));
                self.wires.push((now + delay, command.clone()));
                // A message in the network may come again, much later.
                if self.random.one_in(8) {
                    let delay = Duration::from_millis(self.random.below(2_000));
                    self.wires.push((now + delay, command));
                }
            }
        }
        let (due, later) = self.wires.drain(..).partition(|(at, _)| *at <= now);
        self.wires = later;
        let due: Vec<(Time, Command)> = due;
        for (_, command) in due {
            self.registry.apply(now, command).map_err(|refusal| refusal.to_string())?;
            self.registry.check_invariants();
        }
        self.check()
    }

    /// No dead one is listed for longer than the technique promises.
    fn check(&self) -> Result<(), String> {
        let slack = ORDERED + DETECTED + AGAIN * 3;
        let terms = self.terms();
        let lease = Duration::from_millis((terms.lease_ms + terms.refresh_ms).into());
        let alone = self.registry.bindings().count() == 1;
        for binding in self.registry.bindings() {
            let Address::Replica(member) = binding.address else { continue };
            let Some(died) = self.dead.get(&member) else { continue };
            let bound = match self.technique {
                Technique::Notification => slack,
                Technique::Lease => lease + slack,
                // It may have become the last one by the notification of another's death.
                Technique::Both if alone => lease + slack * 2,
                Technique::Both => slack * 2 + lease,
            };
            if self.now > (*died).max(self.deaf_until) + bound {
                return Err(format!(
                    "{member} is dead since {died:?} and listed at {:?}",
                    self.now
                ));
            }
        }
        Ok(())
    }
}

/// Runs a seed. At its end those who live are listed, and they alone.
fn run(seed: u64, registry: Registry, make: fn(Member, Terms) -> Registrar) -> Result<(), String> {
    let mut random = Random::new(seed);
    let techniques = [Technique::Lease, Technique::Notification, Technique::Both];
    let technique = techniques[random.below(3) as usize];
    let mut world = World {
        random,
        now: ms(1_000),
        registry,
        nodes: BTreeMap::new(),
        dead: BTreeMap::new(),
        wires: Vec::new(),
        technique,
        make,
        deaf_until: Time::ZERO,
    };
    for node in 1..=3 {
        world.birth(node, 1);
    }
    for life in 2..8 {
        for _ in 0..200 + world.random.below(600) {
            world.step().map_err(|error| format!("seed {seed}, {technique:?}: {error}"))?;
        }
        // The first two may die, at once or in any order; the third always leads somebody on.
        for node in 1..=2 {
            if world.random.one_in(2)
                && let Some((member, _)) = world.nodes.remove(&NodeId(node))
            {
                world.dead.insert(member, world.now);
            } else if !world.nodes.contains_key(&NodeId(node)) {
                world.birth(node, life);
            }
        }
        if world.random.one_in(2) {
            world.deaf_until = world.now + Duration::from_millis(world.random.below(60));
        }
    }
    for _ in 0..4_000 {
        world.step().map_err(|error| format!("seed {seed}, {technique:?}: {error}"))?;
    }
    let listed: Vec<Address> = world.registry.bindings().map(|it| it.address).collect();
    let living: Vec<Address> = world.nodes.values().map(|(me, _)| Address::Replica(*me)).collect();
    if listed != living {
        return Err(format!("seed {seed}, {technique:?}: {listed:?} are listed, {living:?} live"));
    }
    Ok(())
}

fn sound(me: Member, terms: Terms) -> Registrar {
    Registrar::new(me, Some(terms))
}

#[test]
fn no_dead_member_is_listed_beyond_its_bound_and_the_living_are() {
    for seed in 0..60 {
        run(seed, Registry::default(), sound).unwrap();
    }
}

#[cfg(feature = "planted-bugs")]
#[test]
fn a_registrar_that_tells_once_is_found() {
    use steadfast_registry::Bug;
    let hasty = |me, terms| sound(me, terms).with_bug(Bug::TellOnce);
    assert!((0..100).any(|seed| run(seed, Registry::default(), hasty).is_err()));
}
