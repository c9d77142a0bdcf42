//! One node: the machine under test, its program and its disk.

use std::fmt::{self, Write};
use std::hash::Hasher;

use engine::{Config, HangRule, Stack};
use wire::{Incarnation, Member, NodeId, Time};

use super::disk::Disk;
use super::ideal::Ideal;
use super::order::NODES;
use super::plan::Plan;
use crate::check::hashed::Mixed;
use crate::executor::{Executor, Passive};
use crate::identity::{CLUSTER, address};
use crate::trace::mix;

/// The time at which nodes start.
pub const START: Time = Time(1_000_000_000);

/// A node, which lives or not.
#[derive(Clone)]
pub struct Node {
    /// Its present life, or its last.
    pub me: Member,
    /// Nodes have no common clock.
    pub now: Time,
    /// The machine, while it lives.
    pub stack: Option<Stack<Ideal>>,
    /// The program that serves its replica, while there is one.
    pub executor: Option<Executor>,
    /// Its disk, which outlives it.
    pub disk: Disk,
    /// A hash of all this, unless that has changed since.
    pub hash: u64,
    /// It has.
    pub stale: bool,
}

impl Node {
    /// A node that was never started.
    pub fn new(node: usize) -> Node {
        let me = Member { node: NodeId(node as u32 + 1), incarnation: Incarnation(0) };
        let disk = Disk::default();
        Node { me, now: START, stack: None, executor: None, disk, hash: 0, stale: true }
    }

    /// A life begins.
    pub fn start(&mut self, plan: &Plan) {
        self.me.incarnation.0 += 1;
        let nodes: Vec<NodeId> = (1..=NODES as u32).map(NodeId).collect();
        let mut config = Config::new(self.me, nodes, CLUSTER.into());
        config.address = Some(address(self.me.node.0 as usize - 1));
        config.storage = plan.disks.then(|| self.disk.open());
        config.streamed = usize::MAX;
        // A program that is held back is slow, and not hung.
        config.hang = HangRule { misses: 0, ..HangRule::default() };
        plan.plant.into_engine(&mut config);
        let mut stack = Stack::new(config, Ideal::new(self.me), self.now);
        let group = plan.group_plan();
        stack.host_program(self.now, &group.name, group.options).expect("a good name");
        stack.set_checkpoints(self.now, Plan::group(), group.checkpoints);
        self.stack = Some(stack);
        self.employ(plan);
    }

    /// A program serves its replica from here on.
    pub fn employ(&mut self, plan: &Plan) {
        let random = mix(self.me.incarnation.0, u64::from(self.me.node.0));
        let passive = Passive { random, tells: false };
        self.executor = Some(Executor::new(&plan.group_plan(), passive, 0));
    }

    /// Its life ends.
    pub fn end(&mut self, power: bool) {
        (self.stack, self.executor) = (None, None);
        self.disk.end(power);
        self.stale = true;
    }

    /// When its next timer is due.
    pub fn next_timeout(&self) -> Option<Time> {
        self.stack.as_ref()?.next_timeout()
    }

    /// It has changed: so has the hash.
    pub fn rehash(&mut self) {
        self.stale = false;
        let mut text = Hashed(Mixed::default());
        let written = write!(
            text,
            "{:?}{:?}{:?}{:?}{:?}",
            self.me, self.now, self.stack, self.executor, self.disk
        );
        written.expect("a hash takes all");
        self.hash = text.0.finish();
    }
}

/// Takes text, and keeps its hash: equal things are told in equal pieces.
struct Hashed(Mixed);

impl Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        self.0.write_u64(text.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ordered::Style;

    #[test]
    fn the_hash_of_a_node_changes_with_what_it_is() {
        let plan = Plan::new(Style::Active);
        let mut one = Node::new(0);
        one.start(&plan);
        let mut other = one.clone();
        one.rehash();
        other.rehash();
        assert_eq!(one.hash, other.hash);
        other.now = Time(START.0 + 1);
        other.rehash();
        assert_ne!(one.hash, other.hash);
    }
}
