//! The next step of one deployment.
//!
//! A replica is *well placed* where its node is in the component, may have it, and is neither
//! drained nor failing. In this order, the first that applies:
//!
//! 1. Fewer are well placed than are due: the best host gets one more.
//! 2. All that are wanted are well placed and have the state: who is badly placed goes; those that
//!    are away all at once, of the others one at a time. A drained node goes even if nobody can
//!    take its replica, as soon as all others have the state.
//! 3. More are well placed than are wanted: one goes, that with most flaws, or without the state;
//!    never so that fewer than are wanted have it. While nobody has the state of a group on disk
//!    nobody goes: it may be on the disk of each of them.
//! 4. Another program is to be run: the next replica changes over, those without the state first
//!    and the primary last, each only where all others have the state.
//! 5. One would have fewer flaws elsewhere: that host gets one more, and 3. follows.
//! 6. All have the state for the first time: that is noted.
//!
//! So a new replica has the state before an old one goes, and each step is seen to be done before
//! the next.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::ordered::Durability;
use wire::{Duration, NodeId};

use super::policy::{self, Cost, Host, Redundancy};
use super::site::Site;
use crate::bug::Bug;
use crate::cluster_state::{Command, Placed, Upgrade};

/// A change of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where replicas are to be.
    pub on: Vec<NodeId>,
    /// All have been there.
    pub filled: bool,
    /// The purpose of the step.
    pub why: Why,
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// These are to have one: there are too few.
    Missing,
    /// This one is of no use any more: its node is away, drained, or may not have it, and all that
    /// are wanted are elsewhere.
    Left,
    /// This one is more than are wanted.
    Surplus,
    /// It has fewer flaws there than another where that is.
    Better,
    /// All that are wanted are there.
    Filled,
    /// This one is to run the new program.
    Upgrade(NodeId),
    /// All are to run the former program again: at this one the new program does not serve.
    Undo(NodeId),
}

impl Step {
    /// One that changes no places.
    pub(super) fn of(placed: &Placed, why: Why) -> Step {
        Step { on: placed.on.clone(), filled: placed.filled, why }
    }

    /// The command that requests the step.
    pub(super) fn command(&self, placed: &Placed) -> Command {
        let (group, number) = (placed.deployment.group.clone(), placed.number);
        match self.why {
            Why::Upgrade(node) => Command::Advance { group, number, node },
            Why::Undo(node) => Command::Undo { group, number, node },
            _ => Command::Place { group, number, on: self.on.clone(), filled: self.filled },
        }
    }
}

/// One deployment, looked at.
struct View {
    wanted: usize,
    /// Where replicas are well placed, and which of those have the state.
    well: Vec<NodeId>,
    synced: Vec<NodeId>,
    /// Where they are badly placed.
    badly: Vec<NodeId>,
}

impl Site<'_> {
    fn view(&self, placed: &Placed, busy: &BTreeSet<NodeId>) -> View {
        let stays = |node: &NodeId| {
            self.objection(placed, *node).is_none()
                || (busy.contains(node)
                    && self.is_present(*node)
                    && self.cluster_state.is_drained(*node))
        };
        let (well, badly): (Vec<NodeId>, Vec<NodeId>) = placed.on.iter().copied().partition(stays);
        // A replica that changes over to another program is about to restart without the state.
        let leaves = placed.upgrade.as_ref().and_then(|upgrade| upgrade.under_way);
        let synced =
            |node: &&NodeId| self.is_synced(&placed.deployment, **node) && leaves != Some(**node);
        let synced = well.iter().filter(synced).copied().collect();
        View { wanted: placed.deployment.replicas as usize, well, synced, badly }
    }

    /// Whether replicas are missing.
    pub(super) fn is_missing(&self, placed: &Placed) -> bool {
        let view = self.view(placed, &BTreeSet::new());
        view.well.len() < view.wanted
    }

    /// The next step. `busy`: drained nodes that another deployment is leaving; this call adds
    /// those that this deployment leaves.
    pub(super) fn step(
        &self,
        placed: &Placed,
        missing_for: Duration,
        busy: &mut BTreeSet<NodeId>,
    ) -> Option<Step> {
        let view = self.view(placed, busy);
        let step = self.next(placed, &view, missing_for);
        let leaves =
            |node: &&NodeId| self.is_present(**node) && self.cluster_state.is_drained(**node);
        let under_way = step.is_some() || view.synced.len() < view.well.len();
        if under_way {
            busy.extend(view.badly.iter().filter(leaves));
        }
        step
    }

    fn next(&self, placed: &Placed, view: &View, missing_for: Duration) -> Option<Step> {
        let View { wanted, well, synced, badly } = view;
        let on = |mut on: Vec<NodeId>, why| {
            on.sort_unstable();
            Some(Step { on, filled: placed.filled, why })
        };
        let with = |node: NodeId| [&placed.on[..], &[node]].concat();
        let without = |gone: &[NodeId]| {
            placed.on.iter().copied().filter(|node| !gone.contains(node)).collect::<Vec<_>>()
        };
        let now =
            Redundancy { wanted: *wanted, there: well.len(), filled: placed.filled, missing_for };
        let drained =
            |node: &&NodeId| self.cluster_state.is_drained(**node) && self.is_present(**node);
        // A replica on a drained node is replaced at once, whatever happens to lost ones.
        let going = badly.iter().filter(drained).count();
        let due = policy::replication(&placed.deployment).due(&now).max(well.len() + going);
        let due = due.min(*wanted);
        let mut full = false;
        if well.len() < due {
            match self.candidates(placed, well).first().copied().or_else(|| self.keeper(placed)) {
                Some(best) => return on(with(best), Why::Missing),
                None => full = !self.is_place_freed(placed),
            }
        }
        let hasty = self.planted.is(Bug::LeaveBeforeArrival);
        if synced.len() >= *wanted || (hasty && well.len() >= *wanted) {
            let away: Vec<NodeId> =
                badly.iter().copied().filter(|node| !self.is_present(*node)).collect();
            if !away.is_empty() {
                return on(without(&away), Why::Left);
            }
            if let Some(node) = badly.first() {
                return on(without(&[*node]), Why::Left);
            }
        } else if full && !synced.is_empty() && synced.len() == well.len() {
            // Nobody can take it: people said that the host is to be empty.
            if let Some(node) = badly.iter().find(drained) {
                return on(without(&[*node]), Why::Left);
            }
        }
        // A replica that changes over counts only when it has done so.
        let changing = placed.upgrade.as_ref().is_some_and(|it| it.under_way.is_some());
        if well.len() > *wanted
            && !changing
            && let Some(node) = self.surplus(placed, view)
        {
            return on(without(&[node]), Why::Surplus);
        }
        if let Some(upgrade) = &placed.upgrade {
            return self.next_to_change(placed, upgrade, view);
        }
        if well.len() == *wanted && synced.len() == *wanted && badly.is_empty() {
            if let Some(node) = self.better(placed, well) {
                return on(with(node), Why::Better);
            }
            if !placed.filled {
                return Some(Step { on: placed.on.clone(), filled: true, why: Why::Filled });
            }
        }
        None
    }

    /// The replica that changes over to the new program next, if one may.
    fn next_to_change(&self, placed: &Placed, upgrade: &Upgrade, view: &View) -> Option<Step> {
        if upgrade.under_way.is_some() {
            return None;
        }
        let primary = self.shape(&placed.deployment).map(|shape| shape.primary);
        let has = |node: &NodeId| self.is_synced(&placed.deployment, *node);
        let least = view.wanted.min(placed.on.len()).saturating_sub(1).max(1);
        let spared = |node: &NodeId| {
            let others = placed.on.iter().filter(|other| *other != node && has(other)).count();
            // A replica without the state is not needed: its program may be the reason.
            let least = if has(node) { least } else { 1 };
            others >= least || self.planted.is(Bug::UpgradeRegardless)
        };
        let left = placed.on.iter().copied().filter(|node| !upgrade.done.contains(node));
        let next =
            left.filter(spared).min_by_key(|node| (has(node), Some(*node) == primary, *node))?;
        Some(Step::of(placed, Why::Upgrade(next)))
    }

    /// A node outside the placement that still has the state, while no node of the placement has
    /// it. It cannot give the state up.
    fn keeper(&self, placed: &Placed) -> Option<NodeId> {
        let has = |node: NodeId| self.is_synced(&placed.deployment, node);
        let mut nodes = self.cluster_state.nodes().map(|(node, _)| node);
        let keeper = nodes.find(|node| !placed.on.contains(node) && has(*node))?;
        let needed = !placed.on.iter().any(|node| has(*node));
        let may = self.objection(placed, keeper).is_none()
            && self.cluster_state.has_room(&placed.deployment, keeper);
        (needed && may).then_some(keeper)
    }

    /// A host will be a place as soon as the replica has left that it had before.
    fn is_place_freed(&self, placed: &Placed) -> bool {
        let deployment = &placed.deployment;
        let mut others = self
            .cluster_state
            .nodes()
            .map(|(node, _)| node)
            .filter(|node| !placed.on.contains(node));
        others.any(|node| {
            self.is_synced(deployment, node)
                && self.objection(placed, node).is_none()
                && self.cluster_state.has_room(deployment, node)
        })
    }

    fn flaws(&self, placed: &Placed, node: NodeId, all: &[NodeId]) -> Option<Cost> {
        let hosts = all.iter().filter(|other| **other != node);
        let beside: Vec<Host<'_>> =
            hosts.filter_map(|other| self.host(*other, &placed.deployment)).collect();
        let host = self.host(node, &placed.deployment)?;
        policy::distribution(&placed.deployment).cost(&host, &beside)
    }

    /// Which of those that are well placed is one too many, if one can go now.
    fn surplus(&self, placed: &Placed, view: &View) -> Option<NodeId> {
        let primary = self.shape(&placed.deployment).map(|shape| shape.primary);
        let mut order: Vec<_> = view
            .well
            .iter()
            .map(|node| {
                let cost = self.flaws(placed, *node, &view.well).unwrap_or_default();
                let synced = view.synced.contains(node);
                let stays = (Some(*node) == primary, core::cmp::Reverse(cost.load));
                (core::cmp::Reverse(cost.flaws), synced, stays, *node)
            })
            .collect();
        order.sort_unstable();
        let (_, synced, _, node) = *order.first()?;
        let left = view.synced.len() - usize::from(synced);
        // A disk group that has not yet reported what its disks hold looks like any other.
        let on_disk = placed.deployment.options.durability == Durability::Disk;
        let asleep = on_disk && view.synced.is_empty();
        (!asleep && (!synced || left >= view.wanted)).then_some(node)
    }

    /// A host at which a replica would have fewer flaws than one has where it is.
    fn better(&self, placed: &Placed, well: &[NodeId]) -> Option<NodeId> {
        well.iter().find_map(|node| {
            let here = self.flaws(placed, *node, well)?.flaws;
            if here == 0 {
                return None;
            }
            let rest: Vec<NodeId> = well.iter().copied().filter(|other| other != node).collect();
            let best = *self.candidates(placed, &rest).first()?;
            let there = self.flaws(placed, best, &[&rest[..], &[best]].concat())?.flaws;
            (there < here).then_some(best)
        })
    }
}
