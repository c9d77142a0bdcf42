//! The manager's knowledge: hosts, their load, and which groups have replicas where.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use wire::{GroupId, NodeId, Share};

use qos::{Policy, Task};

/// A node's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The capacity of its processors, or of the node's quota of them.
    pub capacity: Share,
    /// The part of it that is used by anything but primaries: other programs, and the replicas' and
    /// the node's own work.
    pub other: Share,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Where its primary is.
    pub primary: NodeId,
    /// Where its other replicas are that have the state. Without the primary's node, and none
    /// twice.
    pub backups: Vec<NodeId>,
    /// The load of its primary.
    pub task: Task,
}

/// All hosts and groups.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    policy: Policy,
    hosts: BTreeMap<NodeId, Host>,
    groups: BTreeMap<GroupId, Group>,
    primaries: BTreeMap<NodeId, BTreeSet<GroupId>>,
    backups: BTreeMap<NodeId, BTreeSet<GroupId>>,
    /// Hosts that have too much to do.
    overloaded: BTreeSet<NodeId>,
}

impl Cluster {
    /// Nothing yet, judged by this policy.
    pub fn new(policy: Policy) -> Cluster {
        Cluster { policy, ..Cluster::default() }
    }

    /// A host is there, or is another than before.
    pub fn set_host(&mut self, node: NodeId, host: Host) {
        self.hosts.insert(node, host);
        self.weigh(node);
    }

    /// A host is gone. The groups' places there stay until they are set anew.
    pub fn remove_host(&mut self, node: NodeId) {
        self.hosts.remove(&node);
        self.weigh(node);
    }

    /// A group is there, or is another than before.
    ///
    /// # Panics
    /// If it has two replicas on one node.
    pub fn set_group(&mut self, id: GroupId, group: Group) {
        let nodes: BTreeSet<NodeId> =
            group.backups.iter().copied().chain([group.primary]).collect();
        assert_eq!(
            nodes.len(),
            group.backups.len() + 1,
            "a node has at most one replica of a group"
        );
        self.remove_group(id);
        self.primaries.entry(group.primary).or_default().insert(id);
        for node in &group.backups {
            self.backups.entry(*node).or_default().insert(id);
        }
        let primary = group.primary;
        self.groups.insert(id, group);
        self.weigh(primary);
    }

    /// A group is gone.
    pub fn remove_group(&mut self, id: GroupId) -> Option<Group> {
        let group = self.groups.remove(&id)?;
        let leave = |at: &mut BTreeMap<NodeId, BTreeSet<GroupId>>, node: &NodeId| {
            if let Some(groups) = at.get_mut(node) {
                groups.remove(&id);
                if groups.is_empty() {
                    at.remove(node);
                }
            }
        };
        leave(&mut self.primaries, &group.primary);
        group.backups.iter().for_each(|node| leave(&mut self.backups, node));
        self.weigh(group.primary);
        Some(group)
    }

    /// The load of this host may be too much now, or no longer.
    fn weigh(&mut self, node: NodeId) {
        if self.hosts.contains_key(&node) && self.excess(node, &[], &[]) > Share::ZERO {
            self.overloaded.insert(node);
        } else {
            self.overloaded.remove(&node);
        }
    }

    /// Hosts that have too much to do.
    pub fn overloaded(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.overloaded.iter().copied()
    }

    /// All hosts that are there.
    pub fn hosts(&self) -> impl Iterator<Item = (NodeId, &Host)> {
        self.hosts.iter().map(|(node, host)| (*node, host))
    }

    /// A host, if it is there.
    pub fn host(&self, node: NodeId) -> Option<&Host> {
        self.hosts.get(&node)
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        self.groups.iter().map(|(id, group)| (*id, group))
    }

    /// A group, if there is one of this name.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(&id)
    }

    /// Groups whose primary is here.
    pub fn primaries(&self, node: NodeId) -> impl Iterator<Item = GroupId> + '_ {
        self.primaries.get(&node).into_iter().flatten().copied()
    }

    /// Groups that have a backup here.
    pub fn backups(&self, node: NodeId) -> impl Iterator<Item = GroupId> + '_ {
        self.backups.get(&node).into_iter().flatten().copied()
    }

    /// The current use of a host, as a share of one processor.
    pub fn used(&self, node: NodeId) -> Share {
        let other = self.hosts.get(&node).map_or(Share::ZERO, |host| host.other);
        self.tasks(node).map(|task| task.share()).sum::<Share>() + other
    }

    /// By how much a host has too much to do if these primaries come to it and those go. A host
    /// that is not there has too much with anything.
    pub fn excess(&self, node: NodeId, come: &[GroupId], gone: &[GroupId]) -> Share {
        let gone = |id: &GroupId| !gone.contains(id);
        let here = self.primaries(node).filter(gone).chain(come.iter().copied());
        let tasks: Vec<Task> = here.filter_map(|id| Some(self.groups.get(&id)?.task)).collect();
        self.excess_of(node, &tasks)
    }

    /// A host can bear so much more than what it has to do.
    pub fn has_room(&self, node: NodeId, more: Share) -> bool {
        let Some(host) = self.hosts.get(&node) else { return false };
        let tasks: Vec<Task> = self.tasks(node).collect();
        self.policy.excess(&tasks, host.other + more, host.capacity) == Share::ZERO
    }

    /// By how much a host has too much to do if these are all its tasks.
    pub(crate) fn excess_of(&self, node: NodeId, tasks: &[Task]) -> Share {
        let host = self.hosts.get(&node);
        let (other, capacity) =
            host.map_or((Share::ZERO, Share::ZERO), |host| (host.other, host.capacity));
        self.policy.excess(tasks, other, capacity)
    }

    pub(crate) fn tasks(&self, node: NodeId) -> impl Iterator<Item = Task> + '_ {
        self.primaries(node).filter_map(|id| Some(self.groups.get(&id)?.task))
    }
}
