//! Nodes come and go while faults happen (`docs/protocol/growth.md`).
//!
//! Some nodes found the cluster. The others are spare: each starts once somebody has proposed it.
//! Nodes that were retired may start again with their old disks, and must be told to end.

use std::collections::BTreeSet;

use wire::roster::{Motion, Roster, Seat};
use wire::{Duration, NodeId, NodeList};

use crate::check::growth;
use crate::draw::Draw;
use crate::fabric::node_id;

/// How people change the nodes.
#[derive(Clone, Copy, Debug)]
pub struct GrowthPlan {
    /// So many nodes found the cluster.
    pub founders: usize,
    /// So many times of 10 a node is to go, if any can be spared.
    pub(super) retires: u64,
    /// So many times of 10 the change under way is given up.
    pub(super) withdraws: u64,
    /// About so long until the next change.
    pub(super) apart: Duration,
}

impl GrowthPlan {
    /// Draws a plan for a cluster of so many nodes in the end.
    pub fn draw(draw: &mut Draw, nodes: usize) -> GrowthPlan {
        GrowthPlan {
            founders: draw.count(1, nodes.saturating_sub(1).max(1)),
            retires: draw.pick(&[0, 2, 5]),
            withdraws: draw.pick(&[0, 0, 1]),
            apart: Duration::from_millis(draw.pick(&[20, 60, 200])),
        }
    }
}

/// The nodes as they come and go.
pub(super) struct Growth {
    pub(super) plan: GrowthPlan,
    pub(super) draw: Draw,
    /// The roster on each node's disk.
    pub(super) kept: Vec<Option<Roster>>,
    /// The places of nodes, as each node has them.
    pub(super) lists: Vec<NodeList>,
    /// Nodes that may start: founders, and those that were proposed.
    pub(super) called: BTreeSet<usize>,
    /// Nodes that were proposed to go, and those that have gone.
    pub(super) going: BTreeSet<usize>,
    /// Those that were admitted.
    pub(super) came: BTreeSet<usize>,
    pub(super) retired: BTreeSet<usize>,
    pub(super) watch: growth::Growth,
}

impl Growth {
    pub fn new(plan: GrowthPlan, nodes: usize, draw: Draw) -> Growth {
        let list = NodeList::new(&[]);
        Growth {
            plan,
            draw,
            kept: vec![None; nodes],
            lists: vec![list; nodes],
            called: (0..plan.founders).collect(),
            going: BTreeSet::new(),
            came: BTreeSet::new(),
            retired: BTreeSet::new(),
            watch: growth::Growth::default(),
        }
    }

    /// The nodes in the configuration of this one: founders; for one that comes later, those that are
    /// there when it starts.
    pub(super) fn configured(&self, node: usize) -> Vec<NodeId> {
        let founders = self.plan.founders;
        let here = |other: &usize| self.called.contains(other) && !self.retired.contains(other);
        let nodes = 0..self.lists.len();
        match node < founders {
            true => nodes.take(founders).map(node_id).collect(),
            false => nodes.filter(|other| *other == node || here(other)).map(node_id).collect(),
        }
    }

    /// The next change: while it is calm all come that are still spare.
    pub(super) fn motion(
        &mut self,
        dice: u64,
        calm: bool,
        nodes: usize,
        needed: &[usize],
    ) -> Option<Motion> {
        let here = |node: &usize| !self.retired.contains(node);
        let counted: Vec<usize> = (0..nodes).filter(here).collect();
        if !calm && dice < self.plan.retires && counted.len() > 1 {
            let node = self.draw.pick(&counted);
            return (!needed.contains(&node)).then(|| Motion::Retire(node_id(node)));
        }
        let comes = |node: &usize| *node >= self.plan.founders && !self.came.contains(node);
        let spare: Vec<usize> = counted.into_iter().filter(comes).collect();
        if spare.is_empty() {
            return None;
        }
        let node = node_id(self.draw.pick(&spare));
        Some(Motion::Admit(Seat { node, ring: Vec::new() }))
    }
}
