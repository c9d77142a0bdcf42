//! Primaries leave a host that has too much to do (`flare.txt`, section 3.5): no replica moves,
//! only who of them is primary.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use wire::{GroupId, NodeId, Share};

use crate::cluster::Cluster;

/// A primary's new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The group of the primary.
    pub group: GroupId,
    /// Where it was.
    pub from: NodeId,
    /// The backup that is to be primary.
    pub to: NodeId,
}

/// The measures against overloaded hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relief {
    /// In the order in which they were decided.
    pub moves: Vec<Move>,
    /// Hosts that have too much to do after all moves: calls are refused there
    /// ([`shedding`](crate::Manager)).
    pub unsolved: Vec<NodeId>,
}

/// Decides for all hosts, those with the largest excess first.
///
/// On an overloaded host, primaries are considered in falling order of use, until the host is below
/// its bound. Each goes to a backup's host that can bear it. The chosen host is the one that is
/// then expected to use the smallest share of its capacity. No primary goes to a `closed` host: it
/// seems to have room because it refuses calls.
pub fn relieve(cluster: &Cluster, closed: &BTreeSet<NodeId>) -> Relief {
    let (come, gone) = (BTreeMap::new(), BTreeSet::new());
    let mut plan = Plan { cluster, closed, come, gone, relief: Relief::default() };
    let excess = |node| (Reverse(cluster.excess(node, &[], &[])), node);
    let mut hosts: Vec<(Reverse<Share>, NodeId)> = cluster.overloaded().map(excess).collect();
    hosts.sort_unstable();
    hosts.iter().for_each(|(_, node)| plan.empty(*node));
    // A host that had room before takes only as much as it can bear.
    let is_unsolved = |node: &NodeId| plan.excess(*node, None) > Share::ZERO;
    plan.relief.unsolved = cluster.overloaded().filter(is_unsolved).collect();
    plan.relief
}

/// The decisions so far.
struct Plan<'a> {
    cluster: &'a Cluster,
    closed: &'a BTreeSet<NodeId>,
    /// The groups whose primaries come to each host.
    come: BTreeMap<NodeId, Vec<GroupId>>,
    /// The groups whose primaries leave their host.
    gone: BTreeSet<GroupId>,
    relief: Relief,
}

impl Plan<'_> {
    fn empty(&mut self, node: NodeId) {
        for id in self.by_use(node) {
            if self.excess(node, None) == Share::ZERO {
                return;
            }
            let Some(group) = self.cluster.group(id) else { continue };
            let open = group.backups.iter().filter(|to| !self.closed.contains(to));
            let bears = open.filter(|to| self.excess(**to, Some(id)) == Share::ZERO);
            let Some(to) = bears.min_by_key(|to| (self.expected(**to), **to)).copied() else {
                continue;
            };
            self.gone.insert(id);
            self.come.entry(to).or_default().push(id);
            self.relief.moves.push(Move { group: id, from: node, to });
        }
    }

    /// The primaries of a host, the most expensive first.
    fn by_use(&self, node: NodeId) -> Vec<GroupId> {
        let mut primaries: Vec<GroupId> = self.cluster.primaries(node).collect();
        primaries.sort_by_key(|id| {
            (self.cluster.group(*id).map(|group| Reverse(group.task.share())), *id)
        });
        primaries
    }

    /// By how much a host has too much to do after what is decided, and with one more.
    fn excess(&self, node: NodeId, more: Option<GroupId>) -> Share {
        let come: Vec<GroupId> =
            self.come.get(&node).into_iter().flatten().copied().chain(more).collect();
        let gone: Vec<GroupId> = self.gone.iter().copied().collect();
        self.cluster.excess(node, &come, &gone)
    }

    /// The expected use of a host after these decisions, in millionths of its capacity.
    fn expected(&self, node: NodeId) -> u64 {
        let share =
            |id: &GroupId| self.cluster.group(*id).map_or(Share::ZERO, |group| group.task.share());
        let come: Share = self.come.get(&node).into_iter().flatten().map(share).sum();
        let here = self.cluster.primaries(node).filter(|id| self.gone.contains(id));
        let gone: Share = here.map(|id| share(&id)).sum();
        let used = (self.cluster.used(node) + come).saturating_sub(gone);
        let capacity = self.cluster.host(node).map_or(1, |host| host.capacity.0.max(1));
        used.0.saturating_mul(Share::ONE.0) / capacity
    }
}
