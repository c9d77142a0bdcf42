//! The order in which clients try a group's backups.
//!
//! Where the paper's ranking looks at one lost host at a time, and leaves two that are lost at once
//! to relief afterwards (`flare.txt`, section 4.3), this one looks ahead:
//!
//! 1. the loss of no single host puts another past its bound, if any order of the lists can do
//!    that;
//! 2. then the loss of no pair of hosts does, where capacity allows;
//! 3. then the first target is the one whose host is expected to use the smallest share of what it
//!    can, as in Algorithm 1.
//!
//! Only the first two of a list decide these; the others follow by their hosts' use.
//!
//! **How.** What changed is ranked anew, the most expensive group first, each as is best for what
//! stands. Where an overload remains, the groups that could have to do with it are searched
//! together, exactly, up to [`EFFORT`] steps: an overload only grows with the groups that are
//! placed, so a branch that is no better than the best so far is cut off.
//!
//! **Damping.** A list stays as it is unless another saves an overload of more than [`DAMPING`], or
//! brings no more overload and a first target whose host is expected to use less by more than that:
//! measured use is noisy, and each change is told to every client. So 1 and 2 are true of new
//! lists; one that was right may come to bring so much before it changes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use wire::{GroupId, NodeId, Share};

use crate::cluster::{Cluster, Group, Host};
use qos::Policy;

mod cost;
mod search;

/// Steps of the exact search for one overload.
pub const EFFORT: usize = 20_000;

/// Groups that are searched together at the most.
pub const TOGETHER: usize = 16;

/// A list changes only if a host's expected use, or an overload, improves by at least this share of
/// the host's capacity.
pub const DAMPING: Share = Share::percent(5);

/// Overload that an order of the lists would bring, of what the hosts can do: when one host is
/// lost, and when two are; each summed over all that may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overload {
    /// By the loss of one.
    pub one: Share,
    /// By the loss of two.
    pub two: Share,
}

impl Overload {
    /// Less, and by more than noise makes: what is at the edge of a bound is past it, and then it
    /// is not.
    fn is_clearly_below(self, other: Overload) -> bool {
        let Overload { one, two } = self;
        one + DAMPING < other.one || one <= other.one && two + DAMPING < other.two
    }
}

impl core::ops::AddAssign for Overload {
    fn add_assign(&mut self, more: Overload) {
        self.one += more.one;
        self.two += more.two;
    }
}

/// The first two of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    first: NodeId,
    second: Option<NodeId>,
}

/// The lists of all groups.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    cluster: Cluster,
    lists: BTreeMap<GroupId, Vec<NodeId>>,
    /// Groups that are to be ranked anew.
    stale: BTreeSet<GroupId>,
}

impl Ranking {
    /// Returns a ranking of nothing.
    pub fn new(policy: Policy) -> Ranking {
        Ranking { cluster: Cluster::new(policy), ..Ranking::default() }
    }

    /// The hosts and groups known.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// In which order clients try a group's backups: as of the last [`Ranking::settle`].
    pub fn targets(&self, id: GroupId) -> &[NodeId] {
        self.lists.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A host is there, or uses another share than before. A difference below [`DAMPING`] from the
    /// last report is noise. It is ignored unless it makes or ends an overload.
    pub fn set_host(&mut self, node: NodeId, host: Host) {
        let known = self.cluster.host(node).copied();
        if known == Some(host) {
            return;
        }
        let before = self.cluster.excess(node, &[], &[]);
        self.cluster.set_host(node, host);
        if let Some(known) = known
            && known.capacity == host.capacity
            && relative(Share(known.other.0.abs_diff(host.other.0)), host.capacity) < DAMPING.0
            && before == self.cluster.excess(node, &[], &[])
        {
            return self.cluster.set_host(node, known);
        }
        self.stale.extend(self.cluster.backups(node));
    }

    /// A host is lost: it is nobody's target from now on.
    pub fn remove_host(&mut self, node: NodeId) {
        self.cluster.remove_host(node);
        self.stale.extend(self.cluster.backups(node));
    }

    /// A group is there, or has other replicas, another primary or another task than before.
    ///
    /// # Panics
    /// If it has two replicas on one node.
    pub fn set_group(&mut self, id: GroupId, group: Group) {
        if self.cluster.group(id) != Some(&group) {
            self.touch(id);
            self.cluster.set_group(id, group);
            self.touch(id);
            self.stale.insert(id);
        }
    }

    /// A group's list is this one now. Its author had a reason, so a list that is not better by
    /// enough does not replace it.
    pub fn adopt(&mut self, id: GroupId, list: Vec<NodeId>) {
        self.lists.insert(id, list);
    }

    /// A group is gone.
    pub fn remove_group(&mut self, id: GroupId) {
        self.touch(id);
        self.cluster.remove_group(id);
        self.lists.remove(&id);
        self.stale.remove(&id);
    }

    /// Every group that may move to a host of this group has more room or less.
    fn touch(&mut self, id: GroupId) {
        let Some(group) = self.cluster.group(id) else { return };
        for node in group.backups.iter().chain([&group.primary]) {
            self.stale.extend(self.cluster.backups(*node));
        }
    }

    /// Ranks anew what changed. Returns the groups whose lists are others now.
    pub fn settle(&mut self) -> Vec<GroupId> {
        let stale = mem::take(&mut self.stale);
        let mut old: BTreeMap<GroupId, Vec<NodeId>> = BTreeMap::new();
        let mut order: Vec<GroupId> =
            stale.iter().copied().filter(|id| self.cluster.group(*id).is_some()).collect();
        order.sort_by_key(|id| {
            (Reverse(self.cluster.group(*id).map(|group| group.task.share())), *id)
        });
        // The others' lists stand meanwhile: what is decided first does not depend on which of two
        // tasks is the larger by a hair.
        for id in &order {
            let list = self.lists.remove(id).unwrap_or_default();
            let head = self.best(*id, &list);
            old.insert(*id, list);
            self.place(*id, head);
        }
        for id in &order {
            let is_new = old[id].is_empty();
            for (other, list) in self.search(*id, is_new) {
                old.entry(other).or_insert(list);
            }
        }
        old.retain(|id, list| self.targets(*id) != list.as_slice());
        old.into_keys().collect()
    }

    /// The overload that all lists as they are would cause.
    pub fn overload(&self) -> Overload {
        let mut fresh = Ranking { lists: BTreeMap::new(), ..self.clone() };
        let mut sum = Overload::default();
        for (id, list) in &self.lists {
            if let Some(head) = head_of(list) {
                sum += fresh.cost(*id, head);
            }
            fresh.lists.insert(*id, list.clone());
        }
        sum
    }

    /// The head that is best for a group while the others stand, or the one it has, if none is
    /// better by enough.
    fn best(&self, id: GroupId, old: &[NodeId]) -> Option<Head> {
        let weighed = |head: Head| (self.cost(id, head), self.expected(id, head.first), head);
        let heads = self.heads(id);
        let known = head_of(old).filter(|head| heads.contains(head)).map(weighed);
        let is_better = |other: &Head| {
            let Some((cost, expected, _)) = known else { return true };
            let less_used = self.expected(id, other.first) + DAMPING.0 < expected;
            // Nothing is below no overload, and what an order costs is the dear part of it.
            if cost == Overload::default() && !less_used {
                return false;
            }
            let other = self.cost(id, *other);
            other.is_clearly_below(cost) || other <= cost && less_used
        };
        let better = heads.iter().copied().filter(is_better).map(weighed);
        let best = better.min_by_key(|(cost, expected, _)| (*cost, *expected));
        best.or(known).map(|(_, _, head)| head)
    }

    /// All that a list may begin with, in the order of the group's own backups.
    fn heads(&self, id: GroupId) -> Vec<Head> {
        let backups = self.cluster.group(id).map_or(&[][..], |group| &group.backups);
        let there: Vec<NodeId> =
            backups.iter().copied().filter(|node| self.cluster.host(*node).is_some()).collect();
        if let [first] = there[..] {
            return [Head { first, second: None }].into();
        }
        let seconds = |first: &NodeId| {
            let first = *first;
            let others = there.iter().copied().filter(move |second| *second != first);
            others.map(move |second| Head { first, second: Some(second) }).collect::<Vec<Head>>()
        };
        there.iter().flat_map(seconds).collect()
    }

    /// Makes a list of a head: the others follow by the share that their hosts use.
    fn place(&mut self, id: GroupId, head: Option<Head>) {
        let (Some(head), Some(group)) = (head, self.cluster.group(id)) else {
            self.lists.insert(id, Vec::new());
            return;
        };
        let mut list: Vec<NodeId> = [head.first].into_iter().chain(head.second).collect();
        let mut rest: Vec<NodeId> = group.backups.clone();
        rest.retain(|node| !list.contains(node) && self.cluster.host(*node).is_some());
        rest.sort_by_key(|node| (self.used(*node), *node));
        list.extend(rest);
        self.lists.insert(id, list);
    }

    /// The current use of a host, in millionths of its capacity.
    fn used(&self, node: NodeId) -> u64 {
        let capacity = self.cluster.host(node).map_or(Share::ZERO, |host| host.capacity);
        relative(self.cluster.used(node), capacity)
    }
}

fn head_of(list: &[NodeId]) -> Option<Head> {
    Some(Head { first: *list.first()?, second: list.get(1).copied() })
}

/// In millionths of a capacity.
fn relative(share: Share, capacity: Share) -> u64 {
    share.0.saturating_mul(Share::ONE.0) / capacity.0.max(1)
}
