//! The steps that are possible next.

use super::super::choice::Choice;
use super::super::node::Node;
use super::super::order::NODES;
use super::super::plan::{GROUP, Plan, Victims};
use super::World;
use crate::check::liveness;

/// A client asks no more often than this, and so many timers are due at most, until all is well.
/// Beyond that nothing makes progress.
pub const MOST_ASKS: usize = 12;
pub const MOST_TICKS: u64 = 400;

impl World {
    /// The steps that happen by themselves, the usual first: all but faults and unusual ways of
    /// clients. Nothing, if all is well and nothing is left to do, or nothing helps any more.
    pub fn enabled(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        all.extend(self.formable());
        all.extend((0..self.calls.len()).filter_map(|call| self.asking(call, true)));
        let nodes = 0..NODES;
        let runs = |node: &usize| {
            let executor = self.nodes[*node].executor.as_ref();
            executor.is_some_and(|executor| executor.running().is_some())
        };
        let programs = nodes.clone().filter(runs).map(Choice::Run);
        if self.plan.quick {
            all.extend(programs.clone());
        }
        all.extend(nodes.clone().filter(|node| self.order.may_receive(*node)).map(Choice::Receive));
        all.extend(self.ears());
        let writes = |node: &usize| self.lives(*node) && self.nodes[*node].disk.is_busy();
        all.extend(nodes.clone().filter(writes).map(Choice::Write));
        if !self.plan.quick {
            all.extend(programs);
        }
        all.extend(nodes.clone().filter(|node| self.may_attach(*node)).map(Choice::Attach));
        all.extend(self.away.map(|_| Choice::Heal));
        all.extend(nodes.clone().filter(|node| !self.lives(*node)).map(Choice::Boot));
        if all.is_empty() && self.ticks < MOST_TICKS && self.missing().is_some() {
            let due = |node: &usize| Some((self.nodes[*node].next_timeout()?, *node));
            let first = nodes.filter_map(|node| due(&node)).min();
            all.extend(first.map(|(_, node)| Choice::Tick(node)));
            // Where no timer is left, clients look again by their own.
            if all.is_empty() {
                all.extend((0..self.calls.len()).filter_map(|call| self.asking(call, false)));
            }
        }
        all
    }

    /// The steps by which nodes learn of the others.
    pub fn ears(&self) -> Vec<Choice> {
        let pairs = (0..NODES).flat_map(|node| (0..NODES).map(move |of| (node, of)));
        let may = |(node, of): &(usize, usize)| {
            self.reaches(*node, *of) && self.order.may_hear(*node, *of)
        };
        pairs.filter(may).map(|(node, of)| Choice::Hear(node, of)).collect()
    }

    /// The ways in which clients, timers and those who start things can be quicker than usual.
    pub fn unusual(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        for (at, call) in self.calls.iter().enumerate() {
            let beside = |node: &usize| call.asked.iter().all(|it| it.node != *node);
            let may = call.answer.is_none() && call.times > 0 && call.times < 3;
            let nodes = self.view.targets.iter().copied().filter(|node| self.lives(*node));
            all.extend(nodes.filter(beside).filter(|_| may).map(|node| Choice::Ask(at, node)));
        }
        let starts =
            |choice: &Choice| matches!(choice, Choice::Boot(_) | Choice::Attach(_) | Choice::Heal);
        all.extend(self.enabled().into_iter().filter(starts));
        all.extend((0..NODES).filter(|node| self.may_tick(*node)).map(Choice::Tick));
        all
    }

    /// The faults that the promise covers.
    pub fn faults(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        // Before the first call nothing is at stake.
        let at_stake = self.calls.iter().any(|call| call.times > 0);
        if !at_stake || self.over && !self.plan.late {
            return all;
        }
        let nodes_die = self.deaths > 0 && self.plan.victims != Victims::Programs;
        let programs_die = self.deaths > 0 && self.plan.victims != Victims::Nodes;
        for node in 0..NODES {
            let me = self.nodes[node].me;
            if nodes_die && self.lives(node) && self.may_die(node) {
                all.push(Choice::Kill(node));
                all.extend(self.plan.disks.then_some(Choice::Power(node)));
            }
            let serves = self.nodes[node].executor.is_some() && self.lives(node);
            if programs_die && serves && self.may_fall(node) {
                all.push(Choice::Fall(node));
            }
            let whole = self.away.is_none() && self.order.living().len() == NODES;
            let spared = self.watch.promise.spares(Plan::group(), me, &[]);
            if self.leaves > 0 && serves && spared && self.may_fall(node) {
                all.push(Choice::Leave(node));
            }
            if self.cuts > 0 && whole && self.order.is_one() && self.watch.promise.lives(me) {
                all.push(Choice::Cut(node));
            }
        }
        all
    }

    fn may_die(&self, node: usize) -> bool {
        let promise = &self.watch.promise;
        // A node that is cut off cannot help the others.
        let near = self.away.is_none_or(|away| away == node && self.plan.disks);
        near && promise.covers(self.nodes[node].me) && (self.plan.hasty || !promise.pending())
    }

    /// The promise covers the death of a program there.
    pub fn may_fall(&self, node: usize) -> bool {
        let (promise, me) = (&self.watch.promise, self.nodes[node].me);
        let calm = self.plan.hasty || !promise.pending() && self.order.is_one();
        let known = promise.lives(me) && promise.may_fall(Plan::group(), me, &[]);
        calm && self.away.is_none() && known
    }

    /// The living nodes that reach each other and are no configuration yet.
    fn formable(&self) -> Vec<Choice> {
        let living = self.order.living();
        let parts: [Vec<usize>; 2] = match self.away {
            None => [living, Vec::new()],
            Some(away) => living.into_iter().partition(|node| *node != away).into(),
        };
        let may = |part: &Vec<usize>| !part.is_empty() && self.order.may_form(part);
        parts.into_iter().filter(may).map(Choice::Form).collect()
    }

    /// The client of this call asks whom it would ask usually. If it was declined and is `patient`,
    /// it waits until something has changed.
    fn asking(&self, call: usize, patient: bool) -> Option<Choice> {
        let it = &self.calls[call];
        let waits = it.waits && patient || !it.asked.is_empty();
        if it.answer.is_some() || waits || it.times >= MOST_ASKS {
            return None;
        }
        let targets = &self.view.targets;
        let rank = match it.viewed == self.view.at {
            _ if it.times == 0 && self.plan.spread => call + 1,
            true => it.turn,
            false => 0,
        };
        let mut turns = targets.iter().cycle().skip(rank).take(targets.len()).copied();
        let next = turns.find(|node| self.lives(*node));
        let next = next.or_else(|| self.order.living().first().copied());
        next.map(|node| Choice::Ask(call, node))
    }

    fn may_tick(&self, node: usize) -> bool {
        let soon = |due: wire::Time| due.since(self.nodes[node].now) <= super::steps::SOON;
        self.ticks < MOST_TICKS && self.nodes[node].next_timeout().is_some_and(soon)
    }

    fn may_attach(&self, node: usize) -> bool {
        let Node { stack, executor, .. } = &*self.nodes[node];
        let Some(stack) = stack else { return false };
        match executor {
            Some(executor) if executor.awaited => true,
            _ => !stack.is_hosting(Plan::group()),
        }
    }

    /// The node runs.
    pub fn lives(&self, node: usize) -> bool {
        self.nodes[node].stack.is_some()
    }

    /// Neither of them is cut off from the other.
    pub fn reaches(&self, node: usize, of: usize) -> bool {
        self.away.is_none_or(|away| away != node && away != of)
    }

    /// Returns something that is not yet as it should be in the end.
    pub fn missing(&self) -> Option<String> {
        let late = self.calls.iter().position(|call| call.answer.is_none());
        if let Some(late) = late {
            return Some(format!("call {} is not answered", late + 1));
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let name = format!("node {}", at + 1);
            let Some(stack) = &node.stack else { return Some(format!("{name} does not run")) };
            let status = stack.status();
            if status.ring.members.len() != NODES || status.ring.quorate != Some(true) {
                return Some(format!("{name} is in no component of all"));
            }
            let Some(group) = status.groups.iter().find(|it| it.name == GROUP) else {
                return Some(format!("{name} does not know the group"));
            };
            let synced = group.replicas.iter().filter(|replica| replica.synced).count();
            let members = group.replicas.len();
            let missing = liveness::group(&group.name, NODES, synced, members);
            if missing.is_some() {
                return missing.map(|it| format!("{name}: {it}"));
            }
            let idle = node.executor.as_ref().is_some_and(|executor| executor.is_idle());
            if !idle || !stack.has_followed(Plan::group()) {
                let lead = stack.explain_lead(Plan::group()).unwrap_or_default();
                return Some(format!("the replica of {name} is busy: {lead}"));
            }
        }
        None
    }
}
