//! Programs that serve replicas, and die.

use steadfast_engine::{Begun, Output};
use testkit::Simulation;
use wire::GroupId;
use wire::ordered::GroupOptions;

use super::{Cluster, place};
use crate::base::Base;

impl<O: Base> Cluster<O> {
    /// A program serves the replica.
    pub fn host_program(&mut self, group: &str, node: u32, options: GroupOptions) {
        self.ask(node, |stack, now| stack.host_program(now, group, options)).expect("hosted");
    }

    /// The programs that serve a group at these nodes die at once.
    pub fn end_programs(&mut self, group: &str, nodes: &[u32]) {
        let (now, group) = (self.world.now, GroupId::of(group));
        for id in nodes {
            let node = self.at_mut(*id);
            node.logs.remove(&group);
            node.stack.service_lost(now, group, Begun::Any);
        }
        nodes.iter().for_each(|id| self.drain(place(*id)));
    }

    pub fn is_alive(&self, node: u32) -> bool {
        self.world.runs(place(node))
    }

    /// Returns a node's next output, or `None` if the node has died of the last one.
    pub(super) fn next_output(&mut self, id: u32) -> Option<Output> {
        let output = self.at_mut(id).stack.poll_output();
        output.filter(|_| self.world.runs(place(id)))
    }
}
