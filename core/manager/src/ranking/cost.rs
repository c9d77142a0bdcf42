//! The cost of a list: the overload that it causes, and the expected use of its first host then.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::{GroupId, NodeId, Share};

use super::{Head, Overload, Ranking, relative};
use qos::Task;

/// The groups whose clients may come to one host, looked up once for all losses that are weighed.
/// Only the first two of a list matter where at most two hosts are lost.
pub(super) struct Arrivals<'a> {
    ranking: &'a Ranking,
    node: NodeId,
    /// The tasks of the host's own primaries.
    here: Vec<Task>,
    come: Vec<Arrival>,
}

struct Arrival {
    task: Task,
    primary: NodeId,
    /// The host that is tried before this one.
    before: Option<NodeId>,
}

impl Arrivals<'_> {
    /// By how much this task adds to what the host has too much to do once these are lost.
    fn added(&self, lost: &[NodeId], task: Task) -> Share {
        let mut tasks = self.here.clone();
        let lost = |node: &NodeId| lost.contains(node);
        let come = self.come.iter().filter(|it| lost(&it.primary) && it.before.iter().all(lost));
        tasks.extend(come.map(|it| it.task));
        let without = self.ranking.cluster.excess_of(self.node, &tasks);
        tasks.push(task);
        self.ranking.cluster.excess_of(self.node, &tasks).saturating_sub(without)
    }

    /// Hosts whose loss together with `primary`'s sends more to this one than that loss alone, or
    /// may do so.
    fn partners(&self, id: GroupId, primary: NodeId) -> BTreeSet<NodeId> {
        let ranking = self.ranking;
        let mut partners = BTreeSet::new();
        for other in ranking.cluster.backups(self.node).filter(|other| *other != id) {
            let Some(group) = ranking.cluster.group(other) else { continue };
            if group.primary == primary {
                partners.extend(ranking.targets(other).first());
            } else {
                partners.insert(group.primary);
            }
        }
        partners.remove(&self.node);
        partners
    }
}

impl Ranking {
    /// How much more overload there is if this group's list begins so, beside all groups that have
    /// a list.
    pub(super) fn cost(&self, id: GroupId, head: Head) -> Overload {
        let Some(group) = self.cluster.group(id) else { return Overload::default() };
        let (primary, task) = (group.primary, group.task);
        let first = self.arrivals(id, head.first);
        let mut cost = Overload { one: first.added(&[primary], task), two: Share::ZERO };
        for other in first.partners(id, primary) {
            cost.two += first.added(&[primary, other], task);
        }
        if let Some(second) = head.second {
            cost.two += self.arrivals(id, second).added(&[primary, head.first], task);
        }
        cost
    }

    /// The groups that may come to a host beside this one.
    fn arrivals(&self, id: GroupId, node: NodeId) -> Arrivals<'_> {
        let arrival = |other: GroupId| {
            let group = self.cluster.group(other)?;
            let place = self.targets(other).iter().take(2).position(|target| *target == node)?;
            let before = self.targets(other)[..place].first().copied();
            Some(Arrival { task: group.task, primary: group.primary, before })
        };
        let others = self.cluster.backups(node).filter(|other| *other != id);
        Arrivals {
            ranking: self,
            node,
            here: self.cluster.tasks(node).collect(),
            come: others.filter_map(arrival).collect(),
        }
    }

    /// The use of a host, in millionths of its capacity, once this group and those that share its
    /// primary's host have come.
    pub(super) fn expected(&self, id: GroupId, node: NodeId) -> u64 {
        let Some(group) = self.cluster.group(id) else { return 0 };
        let comes = |other: &GroupId| *other != id && self.targets(*other).first() == Some(&node);
        let others = self.cluster.backups(node).filter(comes);
        let others = others.filter_map(|other| self.cluster.group(other));
        let come = others.filter(|other| other.primary == group.primary);
        let come: Share = come.map(|other| other.task.share()).sum();
        let capacity = self.cluster.host(node).map_or(Share::ZERO, |host| host.capacity);
        relative(self.cluster.used(node) + come + group.task.share(), capacity)
    }
}
