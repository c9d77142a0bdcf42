//! The level of the rules in force, and the programs of all nodes (`docs/protocol/versions.md`,
//! "The level").
//!
//! A level comes into force at a place in the total order, once every configured node has said that
//! it knows it. Until then any node may be taken back to the program before.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use wire::ordered::Announce;
use wire::{Duration, Member, NodeId, Program, Time};

use crate::bug::{Bug, Planted};

/// The room.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// The nodes that count.
    nodes: Vec<NodeId>,
    program: Program,
    /// The rules in force; 0: none are known.
    level: u8,
    /// The programs of nodes, as they said last.
    programs: BTreeMap<NodeId, Program>,
    /// How long all nodes have to know newer rules before these come into force unasked; `None`: only
    /// when asked.
    settle: Option<Duration>,
    /// The cluster began in this life of the node: there is no program of before to go back to.
    founded: bool,
    /// Since when all nodes know newer rules than those in force.
    ready_since: Option<Time>,
    /// The level that this node has ordered, so that it does so once in a component.
    ordered: u8,
    planted: Planted,
}

impl Levels {
    pub(crate) fn new(program: Program, settle: Option<Duration>, planted: Planted) -> Levels {
        let (nodes, programs) = (Vec::new(), BTreeMap::new());
        let (level, founded, ready_since, ordered) = (0, false, None, 0);
        Levels { nodes, program, level, programs, settle, founded, ready_since, ordered, planted }
    }

    /// The disk's rules.
    pub(crate) fn recall(&mut self, level: u8) {
        self.level = if self.planted.is(Bug::LoseLevel) { 0 } else { level };
    }

    /// These nodes count from now on.
    pub(crate) fn set_nodes(&mut self, now: Time, nodes: &[NodeId]) {
        self.nodes = nodes.to_vec();
        self.look(now);
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The programs of all nodes, as far as they have said.
    pub(crate) fn programs(&self) -> &BTreeMap<NodeId, Program> {
        &self.programs
    }

    /// The programs of the nodes that are away, for an installation.
    pub(crate) fn absent(&self, announces: &BTreeMap<Member, Announce>) -> Vec<(NodeId, Program)> {
        let here = |node: &NodeId| announces.keys().any(|member| member.node == *node);
        let away = self.programs.iter().filter(|(node, _)| !here(node));
        away.map(|(node, program)| (*node, program.clone())).collect()
    }

    /// A component is installed. All its members come to the same level: the highest that any of
    /// them knows. Where none knows any, the greatest that all nodes know if all are here, else the
    /// least that is common.
    pub(crate) fn install(
        &mut self,
        now: Time,
        nodes: &[NodeId],
        announces: &BTreeMap<Member, Announce>,
        absent: &[(NodeId, Program)],
    ) {
        self.nodes = nodes.to_vec();
        self.programs.clear();
        let known = |node: &NodeId| nodes.contains(node);
        let absent = absent.iter().filter(|(node, _)| known(node)).cloned();
        let here = announces.iter().map(|(member, it)| (member.node, it.program.clone()));
        self.programs = absent.chain(here).collect();
        let announced = announces.values().map(|announce| announce.level).max().unwrap_or(0);
        self.founded |= announced == 0;
        self.level = match announced {
            0 => {
                let rules = announces.values().map(|announce| announce.program.rules);
                let least = rules.map(|rules| rules.least).max().unwrap_or(0);
                self.known_by_all().unwrap_or(least)
            }
            level => level,
        };
        self.ordered = 0;
        self.look(now);
    }

    /// The level comes into force here, if all nodes know it: one of them may have come back with an
    /// older program since it was ordered. All members find the same. True if it is news.
    pub(crate) fn activate(&mut self, now: Time, level: u8) -> bool {
        let news = self.next().is_some_and(|next| level <= next) && level > self.level;
        if news {
            self.level = level;
            self.look(now);
        }
        news
    }

    /// The greatest level that every configured node knows.
    fn known_by_all(&self) -> Option<u8> {
        let greatest = |node: &NodeId| Some(self.programs.get(node)?.rules.greatest);
        if self.planted.is(Bug::ActivateBeforeAll) {
            return self.nodes.iter().filter_map(greatest).max();
        }
        self.nodes.iter().map(greatest).try_fold(u8::MAX, |least, it| Some(least.min(it?)))
    }

    /// Newer rules than those in force, if every configured node knows them.
    pub(crate) fn next(&self) -> Option<u8> {
        self.known_by_all().filter(|next| *next > self.level)
    }

    /// Nodes that do not know the rules that the newest program knows, or have not said.
    pub(crate) fn lacking(&self) -> Vec<NodeId> {
        let newest = self.programs.values().map(|program| program.rules.greatest).max();
        let knows = |node: &&NodeId| {
            self.programs.get(node).is_some_and(|program| Some(program.rules.greatest) == newest)
        };
        self.nodes.iter().filter(|node| !knows(node)).copied().collect()
    }

    /// This node was there when the cluster began: newer rules need not settle. The first member may
    /// have come later, and knows nothing of that.
    pub(crate) fn has_founded(&self) -> bool {
        self.founded
    }

    fn look(&mut self, now: Time) {
        self.ready_since = self.next().map(|_| now);
    }

    /// When newer rules are to come into force unasked.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let next = self.next().filter(|next| *next > self.ordered);
        let settle = if self.founded { Duration::ZERO } else { self.settle? };
        next.and(Some(self.ready_since? + settle))
    }

    /// The level to order, if that is due; it is ordered then.
    pub(crate) fn due(&mut self, now: Time) -> Option<u8> {
        let next = self.next().filter(|_| self.next_timeout().is_some_and(|due| due <= now))?;
        self.ordered = next;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use wire::{Incarnation, RingId, VersionRange};

    use super::*;

    fn knows(least: u8, greatest: u8) -> Program {
        Program { rules: VersionRange::new(least, greatest), ..Program::this("trial") }
    }

    fn announces(nodes: &[(u32, Program, u8)]) -> BTreeMap<Member, Announce> {
        let announce = |(node, program, level): &(u32, Program, u8)| {
            let member = Member { node: NodeId(*node), incarnation: Incarnation(1) };
            let announce = Announce {
                ring: RingId::default(),
                first_life: true,
                last: Default::default(),
                attempts: Vec::new(),
                position: 0,
                replicas: Vec::new(),
                ahead: Vec::new(),
                address: None,
                recall: None,
                program: program.clone(),
                level: *level,
                extension: Default::default(),
                roster: Default::default(),
            };
            (member, announce)
        };
        nodes.iter().map(announce).collect()
    }

    const NODES: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

    fn levels() -> Levels {
        let settle = Some(Duration::from_secs(1));
        Levels::new(knows(1, 2), settle, Planted::default())
    }

    #[test]
    fn newer_rules_come_into_force_when_every_configured_node_has_known_them_for_a_while() {
        let mut levels = levels();
        let two = [(1, knows(1, 2), 1), (2, knows(1, 2), 1)];
        levels.install(Time(5), &NODES, &announces(&two), &[]);
        assert_eq!((levels.level(), levels.next()), (1, None), "nobody knows what node 3 knows");
        assert_eq!(levels.lacking(), [NodeId(3)]);
        levels.install(Time(6), &NODES, &announces(&two), &[(NodeId(3), knows(1, 1))]);
        assert_eq!((levels.next(), levels.lacking()), (None, vec![NodeId(3)]));
        levels.install(Time(7), &NODES, &announces(&two), &[(NodeId(3), knows(1, 2))]);
        assert_eq!(levels.next(), Some(2), "it said so before it went away");
        let due = levels.next_timeout().expect("it settles");
        assert_eq!((due, levels.due(Time(8))), (Time(7) + Duration::from_secs(1), None));
        assert_eq!((levels.due(due), levels.due(due)), (Some(2), None), "it is ordered once");
        assert!(levels.activate(due, 2) && !levels.activate(due, 2));
        assert_eq!((levels.level(), levels.next(), levels.next_timeout()), (2, None, None));
    }

    #[test]
    fn a_cluster_that_begins_has_the_newest_rules_as_soon_as_all_its_nodes_are_there() {
        let mut levels = levels();
        let two = [(1, knows(1, 2), 0), (2, knows(1, 2), 0)];
        levels.install(Time(5), &NODES, &announces(&two), &[]);
        assert_eq!((levels.level(), levels.next_timeout()), (1, None));
        let three = [(1, knows(1, 2), 1), (2, knows(1, 2), 1), (3, knows(1, 2), 0)];
        levels.install(Time(6), &NODES, &announces(&three), &[]);
        assert_eq!((levels.level(), levels.due(Time(6))), (1, Some(2)));
    }

    #[test]
    fn what_was_ordered_is_void_if_a_node_came_back_with_an_older_program() {
        let mut levels = levels();
        let all = [(1, knows(1, 2), 1), (2, knows(1, 2), 1), (3, knows(1, 1), 1)];
        levels.install(Time(5), &NODES, &announces(&all), &[]);
        assert!(!levels.activate(Time(6), 2));
        assert_eq!(levels.level(), 1);
    }

    #[test]
    fn a_component_has_the_highest_level_that_a_member_knows() {
        let mut levels = levels();
        let members = [(1, knows(1, 2), 0), (2, knows(1, 2), 2), (3, knows(2, 3), 0)];
        levels.install(Time(5), &NODES, &announces(&members), &[]);
        assert_eq!(levels.level(), 2);
    }

    #[test]
    fn a_new_cluster_begins_with_what_all_nodes_know_or_with_the_oldest_rules() {
        let mut levels = levels();
        let all = [(1, knows(1, 2), 0), (2, knows(1, 2), 0), (3, knows(1, 2), 0)];
        levels.install(Time(5), &NODES, &announces(&all), &[]);
        assert_eq!(levels.level(), 2);
        levels.install(Time(5), &NODES, &announces(&all[..2]), &[]);
        assert_eq!(levels.level(), 1, "node 3 may know no more");
    }
}
