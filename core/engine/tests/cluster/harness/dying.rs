//! Programs that serve replicas, and die.

use steadfast_engine::{Begun, Output};
use wire::GroupId;
use wire::ordered::GroupOptions;

use super::Cluster;
use crate::base::Base;

impl<O: Base> Cluster<O> {
    /// A program serves the replica.
    pub fn host_program(&mut self, group: &str, node: u32, options: GroupOptions) {
        let now = self.now;
        let stack = &mut self.nodes.get_mut(&node).unwrap().stack;
        stack.host_program(now, group, options).expect("hosted");
        self.drain(node);
    }

    /// The programs that serve a group at these nodes die at once.
    pub fn end_programs(&mut self, group: &str, nodes: &[u32]) {
        let (now, group) = (self.now, GroupId::of(group));
        for id in nodes {
            let node = self.nodes.get_mut(id).unwrap();
            node.logs.remove(&group);
            node.stack.service_lost(now, group, Begun::Any);
        }
        nodes.iter().for_each(|id| self.drain(*id));
    }

    pub fn is_alive(&self, node: u32) -> bool {
        self.nodes[&node].alive
    }

    /// What a node puts out next; nothing if it has died of what it did.
    pub(super) fn next_output(&mut self, id: u32) -> Option<Output> {
        let node = self.nodes.get_mut(&id).unwrap();
        node.stack.poll_output().filter(|_| node.alive)
    }
}
