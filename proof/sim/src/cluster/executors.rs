//! The services of all replicas.

use std::collections::BTreeMap;

use wire::{Duration, GroupId, Member};

use crate::executor::{Clumsy, Executor, Passive};
use crate::fabric::place_of;
use crate::options::GroupPlan;
use crate::trace::mix;

/// An executor for each replica that runs.
pub(super) struct Executors {
    of_nodes: Vec<BTreeMap<GroupId, Executor>>,
    /// The number of the last one.
    last: u64,
    /// Nodes whose executors are slow now.
    slow: Vec<bool>,
    /// Services cannot give or read their states once in so many times.
    clumsy: Option<u64>,
}

impl Executors {
    pub(super) fn new(nodes: usize, clumsy: Option<u64>) -> Executors {
        let of_nodes = (0..nodes).map(|_| BTreeMap::new()).collect();
        Executors { of_nodes, last: 0, slow: vec![false; nodes], clumsy }
    }

    /// The service of a group's replica at this life begins in its initial state.
    pub(super) fn host(&mut self, me: Member, plan: &GroupPlan) -> &mut Executor {
        self.last += 1;
        let random = mix(me.incarnation.0, u64::from(me.node.0));
        let mut executor = Executor::new(plan, Passive { random, tells: plan.tells }, self.last);
        let clumsy = self.clumsy.filter(|_| plan.may_be_clumsy());
        executor.clumsy = clumsy.map(|of| Clumsy::new(of, mix(random, self.last)));
        let (of_node, id) = (&mut self.of_nodes[place_of(me.node)], GroupId::of(&plan.name));
        of_node.insert(id, executor);
        of_node.get_mut(&id).expect("it has just come")
    }

    /// The number of the last executor that has begun.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn has(&self, node: usize, group: GroupId) -> bool {
        self.of_nodes[node].contains_key(&group)
    }

    pub(super) fn get(&self, node: usize, group: GroupId) -> Option<&Executor> {
        self.of_nodes[node].get(&group)
    }

    pub(super) fn get_mut(&mut self, node: usize, group: GroupId) -> Option<&mut Executor> {
        self.of_nodes[node].get_mut(&group)
    }

    /// This executor, unless it is gone, with its process or alone.
    pub(super) fn of_serial(
        &mut self,
        node: usize,
        group: GroupId,
        serial: u64,
    ) -> Option<&mut Executor> {
        self.get_mut(node, group).filter(|executor| executor.serial == serial)
    }

    /// The executor of a replica that runs.
    pub(super) fn at(&self, node: usize, group: GroupId) -> &Executor {
        &self.of_nodes[node][&group]
    }

    /// All of a node.
    pub(super) fn of_node(&self, node: usize) -> impl Iterator<Item = (GroupId, &Executor)> {
        self.of_nodes[node].iter().map(|(group, executor)| (*group, executor))
    }

    /// All of a group.
    pub(super) fn of_group(&self, group: GroupId) -> impl Iterator<Item = &Executor> {
        self.of_nodes.iter().filter_map(move |of_node| of_node.get(&group))
    }

    pub(super) fn remove(&mut self, node: usize, group: GroupId) -> Option<Executor> {
        self.of_nodes[node].remove(&group)
    }

    pub(super) fn clear(&mut self, node: usize) {
        self.of_nodes[node].clear();
    }

    /// All services can give and read their states from here on.
    pub(super) fn heal(&mut self) {
        self.clumsy = None;
        let all = self.of_nodes.iter_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|executor| executor.clumsy = None);
    }

    pub(super) fn set_slow(&mut self, node: usize, slow: bool) {
        self.slow[node] = slow;
    }

    /// How long commands take there that take so long elsewhere.
    pub(super) fn span(&self, node: usize, span: Duration) -> Duration {
        span * if self.slow[node] { 20 } else { 1 }
    }
}
