//! A deployment, where its replicas are to be, and what each of them is to run.
//!
//! [`placement`](crate::placement) decides which replica is next in an upgrade, and when one takes
//! too long. Only the cluster state has to survive: the next leader continues from it.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::mem;

use serde::{Deserialize, Serialize};
use wire::{Duration, NodeId, Time};

use super::{Answer, Deployment, Fault, Program, Refusal, Undone, Upgrade};

/// How long a node whose program ended again and again is left alone, at first. Each further time
/// twice as long.
pub const BACK_OFF: Duration = Duration::from_secs(60);

/// No node is left alone longer.
pub const LONGEST_BACK_OFF: Duration = Duration::from_secs(3_600);

/// A program ended again and again at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// How often that was told.
    pub times: u32,
    /// The node gets no replica before, in ordered time.
    pub until: Time,
}

/// A deployment, and where its replicas are to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The deployment that people requested.
    pub deployment: Deployment,
    /// The number of the last change of what follows: one that was decided for an older one is
    /// void.
    pub number: u64,
    /// The nodes that are to host it, in order of id, none twice.
    pub on: Vec<NodeId>,
    /// So many replicas as are wanted have been there since it was deployed.
    pub filled: bool,
    /// Where its program ended again and again.
    pub failing: BTreeMap<NodeId, Failing>,
    /// Some replicas still run another program.
    pub upgrade: Option<Upgrade>,
    /// The last upgrade was taken back, since it was deployed.
    pub undone: Option<Undone>,
}

impl Placed {
    /// The program that the replica at this node is to run.
    pub fn program(&self, node: NodeId) -> &Program {
        match &self.upgrade {
            Some(upgrade) if !upgrade.has(node) => &upgrade.from,
            _ => &self.deployment.program,
        }
    }

    /// The upgrade to another deployment of the same group: which programs its replicas run until
    /// all run the new one.
    pub(super) fn upgrade_to(&self, new: &Deployment) -> Result<Option<Upgrade>, Refusal> {
        let old = &self.deployment.program;
        if *old == new.program {
            return Ok(self.upgrade.clone());
        }
        if new.replicas < 2 {
            return Err(Refusal::Alone(new.group.clone()));
        }
        match &self.upgrade {
            // People take it back themselves.
            Some(upgrade) if upgrade.from == new.program => Ok(self.turned(upgrade, old, true)),
            Some(_) => Err(Refusal::Upgrading(new.group.clone())),
            None => {
                let (from, done) = (old.clone(), BTreeSet::new());
                Ok(Some(Upgrade { from, done, under_way: None, undoes: false }))
            }
        }
    }

    /// The way back.
    fn turned(&self, upgrade: &Upgrade, program: &Program, undoes: bool) -> Option<Upgrade> {
        let done = self.on.iter().copied().filter(|node| !upgrade.has(*node)).collect();
        Some(Upgrade { from: program.clone(), done, under_way: None, undoes })
    }

    /// This node is next.
    pub(super) fn advance(&mut self, node: NodeId) -> Answer {
        match &mut self.upgrade {
            Some(upgrade)
                if upgrade.under_way.is_none()
                    && !upgrade.done.contains(&node)
                    && self.on.contains(&node) =>
            {
                upgrade.under_way = Some(node);
                Answer::Done
            }
            _ => Answer::Void,
        }
    }

    /// This node's replica runs the deployment's program, and has the state.
    pub(super) fn upgraded(&mut self, node: NodeId) -> Answer {
        let under_way = self.upgrade.as_mut().filter(|it| it.under_way == Some(node));
        let Some(upgrade) = under_way else { return Answer::Void };
        upgrade.under_way = None;
        upgrade.done.insert(node);
        self.settle_upgrade();
        Answer::Done
    }

    /// The deployment's program does not serve at this node. Void if that is no news of an upgrade.
    pub(super) fn undo(&mut self, node: NodeId, fault: Fault) -> Answer {
        let fails = self.upgrade.as_ref().filter(|it| it.has(node) && !it.undoes);
        let Some(upgrade) = fails.cloned() else { return Answer::Void };
        let back = self.turned(&upgrade, &self.deployment.program, true);
        let program = mem::replace(&mut self.deployment.program, upgrade.from);
        self.undone = Some(Undone { program, node, fault });
        self.upgrade = back;
        self.settle_upgrade();
        Answer::Done
    }

    /// Its program ends again and again at this node: if that is the new one of an upgrade, that is
    /// taken back; else the node is no place for it, for a while.
    pub(super) fn fails(&mut self, now: Time, node: NodeId) -> Answer {
        if !self.on.contains(&node) {
            return Answer::Void;
        }
        if self.undo(node, Fault::Ended) == Answer::Done {
            return Answer::Done;
        }
        let times = self.failing.get(&node).map_or(0, |failing| failing.times);
        let wait = (BACK_OFF * 2u32.pow(times.min(16))).min(LONGEST_BACK_OFF);
        let failing = Failing { times: times.saturating_add(1), until: now + wait };
        self.failing.insert(node, failing);
        Answer::Done
    }

    /// These nodes are to host it. A program that is taken back starts on no new node: it does not
    /// serve. If all replicas of the former program died, nobody would serve.
    pub(super) fn place_on(&mut self, on: Vec<NodeId>) {
        if let Some(upgrade) = self.upgrade.as_mut().filter(|it| it.undoes) {
            upgrade.done.extend(on.iter().filter(|node| !self.on.contains(node)));
        }
        self.on = on;
    }

    /// Other nodes are to host it, or more of them run what they are to run.
    pub(super) fn settle_upgrade(&mut self) {
        let Some(upgrade) = &mut self.upgrade else { return };
        upgrade.done.retain(|node| self.on.contains(node));
        upgrade.under_way.take_if(|node| !self.on.contains(node));
        if upgrade.under_way.is_none() && self.on.len() == upgrade.done.len() {
            self.upgrade = None;
        }
    }

    pub(super) fn is_upgrade_well(&self) -> bool {
        self.upgrade.as_ref().is_none_or(|upgrade| {
            let fresh = |node: &NodeId| self.on.contains(node) && !upgrade.done.contains(node);
            upgrade.done.iter().all(|node| self.on.contains(node))
                && upgrade.under_way.iter().all(fresh)
        })
    }
}
