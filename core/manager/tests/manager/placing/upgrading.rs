//! Upgrades in the small world: programs change over one by one, some of the new ones do not serve,
//! and nodes die meanwhile.

use super::*;
use steadfast_manager::cluster_state::{Placed, Undone};

/// The program of another version.
fn version(name: &str) -> Program {
    Program { command: vec![name.into()], folder: None, environment: Labels::new() }
}

impl World {
    /// A new program, which may be one that does not serve.
    pub(super) fn upgrade(&mut self, draw: &mut Random) {
        let Some(placed) = self.cluster_state.of("g1") else { return };
        let mut deployment = placed.deployment.clone();
        deployment.program = version("./new");
        self.broken = match draw.next_u64() % 3 {
            0 => Some((deployment.program.clone(), Fault::Ended)),
            1 => Some((deployment.program.clone(), Fault::Late)),
            _ => None,
        };
        let alone = deployment.replicas < 2;
        let said = self.say(Command::Deploy(deployment));
        let right = match &said {
            Ok(Answer::Done) => !alone,
            Err(Refusal::Alone(_)) => alone,
            Err(Refusal::NoRoom { .. }) => true,
            _ => false,
        };
        assert!(right, "{said:?}");
    }

    /// A replica that is to run another program leaves, and comes anew.
    pub(super) fn change_over(&mut self, group: &str, node: NodeId) {
        let program = self.cluster_state.of(group).unwrap().program(node).clone();
        let key = (group.to_string(), node);
        let replicas = self.groups.get_mut(group);
        let alone = replicas.as_ref().is_some_and(|replicas| {
            let others = replicas.iter().any(|(other, synced)| *other != node && *synced);
            replicas.get(&node) == Some(&true) && !others
        });
        if self.runs.get(&key) == Some(&program) || alone {
            return;
        }
        if self.runs.insert(key, program).is_some()
            && let Some(replicas) = replicas
        {
            replicas.remove(&node);
        }
    }

    fn fault_of(&self, group: &str, node: NodeId) -> Option<Fault> {
        let (broken, fault) = self.broken.as_ref()?;
        (self.runs.get(&(group.into(), node)) == Some(broken)).then(|| fault.clone())
    }

    /// The program that is to run there ends again and again.
    pub(super) fn ends(&self, group: &str, node: NodeId) -> bool {
        self.fault_of(group, node) == Some(Fault::Ended)
    }

    pub(super) fn tell_upgraded(&mut self, group: String, node: NodeId) {
        if self.fault_of(&group, node) == Some(Fault::Late) {
            // It is there, and is never given the state.
            self.groups.get_mut(&group).expect("it has replicas").insert(node, false);
            return;
        }
        let placed = self.cluster_state.of(&group).unwrap();
        let number = placed.number;
        let runs = self.runs.get(&(group.clone(), node)) == Some(placed.program(node));
        let under_way = placed.upgrade.as_ref().and_then(|it| it.under_way);
        let changes = runs && under_way == Some(node);
        if changes && !self.one_in(4) {
            let told = Command::Upgraded { group, number, node };
            if self.one_in(4) {
                self.late.push(told);
            } else {
                self.say(told).unwrap();
            }
        }
    }

    /// Nobody is taken out who is needed.
    pub(super) fn check_advance(&self, group: &str, node: NodeId) {
        let placed = self.cluster_state.of(group).unwrap();
        let replicas = &self.groups[group];
        let others = replicas.iter().filter(|(other, synced)| **other != node && **synced).count();
        let wanted = (placed.deployment.replicas as usize).min(placed.on.len());
        let idle = replicas.get(&node) != Some(&true);
        let spared = others >= 1 && (idle || others + 1 >= wanted);
        assert!(spared, "{group}: {node} changes over: {placed:?}, {replicas:?}");
    }

    /// All replicas run one program: the new one, or, if that does not serve, the former one, and
    /// it is said why.
    pub(super) fn check_programs(&self, seed: u64) {
        for placed in self.cluster_state.placed() {
            let group = &placed.deployment.group;
            let able = self.up.iter().filter(|node| self.may(&placed.deployment, **node)).count();
            // One host alone can give nobody the state meanwhile.
            if able >= 2
                && !self.cluster_state.nodes().any(|(node, _)| self.cluster_state.is_drained(node))
            {
                assert_eq!(placed.upgrade, None, "seed {seed}, {group}: {placed:?}");
            }
            let Some((broken, fault)) = &self.broken else { continue };
            if placed.upgrade.is_none() {
                assert_ne!(placed.deployment.program, *broken, "seed {seed}, {group}: {placed:?}");
            }
            if let Some(Undone { program, fault: told, .. }) = &placed.undone {
                assert_eq!(program, broken);
                // A host at which nothing serves may have been the first.
                assert!(told == fault || *told == Fault::Ended);
            }
        }
    }
}

/// A world of four nodes, and a group of three that has settled.
fn settled() -> World {
    let mut world = World::new(7, 4);
    world.say(Command::Deploy(deployment("g1", 3))).unwrap();
    (0..100).for_each(|_| world.tick(TICK));
    assert!(world.cluster_state.of("g1").unwrap().filled);
    world
}

fn other(name: &str) -> Deployment {
    Deployment { program: version(name), ..deployment("g1", 3) }
}

#[test]
fn backups_change_over_before_the_primary() {
    let mut world = settled();
    let primary = world.picture().groups[0].primary;
    world.say(Command::Deploy(other("./new"))).unwrap();
    let mut order = Vec::new();
    for _ in 0..200 {
        world.tick(TICK);
        let Some(upgrade) = &world.cluster_state.of("g1").unwrap().upgrade else { break };
        let next = upgrade.under_way.filter(|node| order.last() != Some(node));
        order.extend(next);
    }
    assert_eq!(world.cluster_state.of("g1").unwrap().upgrade, None);
    assert_eq!(order.len(), 3, "{order:?}");
    assert_eq!(order[2], primary, "{order:?}");
}

#[test]
fn one_that_does_not_serve_is_taken_back_and_told() {
    for fault in [Fault::Ended, Fault::Late] {
        let mut world = settled();
        world.say(Command::Deploy(other("./new"))).unwrap();
        world.broken = Some((version("./new"), fault.clone()));
        for _ in 0..1_000 {
            world.tick(TICK);
        }
        let placed = world.cluster_state.of("g1").unwrap();
        assert_eq!(placed.deployment.program, deployment("g1", 3).program, "{fault:?}");
        assert_eq!(placed.upgrade, None);
        let undone = placed.undone.as_ref().expect("it is told");
        assert_eq!((&undone.program, &undone.fault), (&version("./new"), &fault));
        assert!(placed.failing.is_empty(), "it was not the nodes' fault");
        assert!(world.groups["g1"].values().all(|synced| *synced));
    }
}

/// Simulator seed 9021386: the other one never came to have the state, and the two waited for each
/// other.
#[test]
fn who_alone_has_the_state_and_stays_is_given_its_place_back() {
    let mut world = World::new(7, 2);
    let deployment = deployment("g1", 2);
    world.broken = Some((deployment.program.clone(), Fault::Late));
    world.say(Command::Deploy(deployment)).unwrap();
    let (group, number) = ("g1".to_string(), world.cluster_state.of("g1").unwrap().number);
    world.say(Command::Place { group, number, on: vec![NodeId(2)], filled: false }).unwrap();
    world.groups.insert("g1".into(), [(NodeId(1), true), (NodeId(2), false)].into());
    (0..20).for_each(|_| world.tick(TICK));
    assert_eq!(world.cluster_state.of("g1").unwrap().on, [NodeId(1), NodeId(2)]);
}

#[test]
fn what_is_said_late_of_an_older_program_takes_nothing_back() {
    let mut world = settled();
    let former = world.cluster_state.of("g1").unwrap().number;
    world.say(Command::Deploy(other("./new"))).unwrap();
    while world.cluster_state.of("g1").unwrap().upgrade.as_ref().unwrap().under_way.is_none() {
        world.tick(TICK);
    }
    let placed = world.cluster_state.of("g1").unwrap().clone();
    let node = placed.upgrade.as_ref().unwrap().under_way.unwrap();
    let failing = |number| Command::Failing { group: "g1".into(), number, node };
    assert_eq!(world.say(failing(former)), Ok(Answer::Void));
    assert_eq!(world.cluster_state.of("g1"), Some(&placed));
    assert_eq!(world.say(failing(placed.number)), Ok(Answer::Done));
    assert!(world.cluster_state.of("g1").unwrap().undone.is_some());
}

#[test]
fn another_waits_for_the_first_and_the_former_takes_it_back() {
    let mut world = settled();
    world.say(Command::Deploy(other("./new"))).unwrap();
    assert_eq!(world.say(Command::Deploy(other("./newer"))), Err(Refusal::Upgrading("g1".into())));
    for _ in 0..20 {
        world.tick(TICK);
    }
    world.say(Command::Deploy(deployment("g1", 3))).unwrap();
    for _ in 0..200 {
        world.tick(TICK);
    }
    let placed = world.cluster_state.of("g1").unwrap();
    assert_eq!((&placed.upgrade, &placed.undone), (&None, &None));
    assert_eq!(placed.deployment.program, deployment("g1", 3).program);

    let alone = Deployment { replicas: 1, ..other("./new") };
    assert_eq!(world.say(Command::Deploy(alone)), Err(Refusal::Alone("g1".into())));
}

/// Simulator world `interruptions`, seed 7: the only one that ran the former program died while the
/// new one was being taken back, and all others began with the new one, in turn.
#[test]
fn what_is_taken_back_is_begun_nowhere_else() {
    let mut world = settled();
    world.say(Command::Deploy(other("./new"))).unwrap();
    while world.cluster_state.of("g1").unwrap().upgrade.as_ref().unwrap().under_way.is_none() {
        world.tick(TICK);
    }
    let placed = world.cluster_state.of("g1").unwrap().clone();
    let node = placed.upgrade.as_ref().unwrap().under_way.unwrap();
    let place = |placed: &Placed, on: Vec<NodeId>| Command::Place {
        group: "g1".into(),
        number: placed.number,
        on,
        filled: false,
    };
    let fresh = (1..).map(NodeId).find(|node| !placed.on.contains(node)).unwrap();
    let on = [&placed.on[..], &[fresh]].concat();
    world.say(place(&placed, on.clone())).unwrap();
    let before = world.cluster_state.of("g1").unwrap().clone();
    assert_eq!(before.program(fresh), &deployment("g1", 3).program, "not the new one");
    world.say(place(&before, placed.on.clone())).unwrap();
    let number = world.cluster_state.of("g1").unwrap().number;
    world.say(Command::Failing { group: "g1".into(), number, node }).unwrap();
    let back = world.cluster_state.of("g1").unwrap().clone();
    assert_eq!(back.program(node), &version("./new"), "its turn has not come");
    world.say(place(&back, on)).unwrap();
    let after = world.cluster_state.of("g1").unwrap();
    assert_eq!(after.program(fresh), &deployment("g1", 3).program, "not that one");
}
