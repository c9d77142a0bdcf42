//! The memory of the log and the event formatter: names of groups, and the ring's members.

use std::collections::BTreeMap;

use engine::Event;
use wire::limits::MAX_GROUPS;
use wire::{GroupId, Member, NodeId};

use crate::status::{absent, no_quorum};

/// Names of the groups whose views were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<GroupId, String>);

impl Names {
    pub fn learn(&mut self, name: &str) {
        if self.0.len() >= MAX_GROUPS {
            // Bounds the map: most of so many names belong to groups that have ended.
            self.0.clear();
        }
        self.0.insert(GroupId::of(name), name.to_owned());
    }

    /// The group's name, or its id if no view of it was seen.
    pub fn name(&self, group: &GroupId) -> String {
        self.0.get(group).cloned().unwrap_or_else(|| group.to_string())
    }
}

/// The log's context: this node, the cluster's nodes and the names of groups.
#[derive(Debug, Default)]
pub(super) struct Known {
    me: Option<NodeId>,
    pub(super) configured: Vec<NodeId>,
    /// The members of the last installed configuration.
    members: Vec<Member>,
    names: Names,
}

impl Known {
    pub fn new(me: NodeId, configured: Vec<NodeId>) -> Self {
        Known { me: Some(me), configured, ..Known::default() }
    }

    pub fn learn(&mut self, event: &Event) {
        match event {
            Event::Configuration { members, .. } => self.members.clone_from(members),
            Event::View { name, .. } => self.names.learn(name),
            _ => {}
        }
    }

    pub fn is_me(&self, member: &Member) -> bool {
        Some(member.node) == self.me
    }

    pub fn name(&self, group: &GroupId) -> String {
        self.names.name(group)
    }

    /// The configured nodes that are not members.
    pub fn absent(&self) -> Vec<NodeId> {
        absent(&self.configured, &self.members)
    }

    pub fn no_quorum(&self) -> String {
        no_quorum(&self.configured, &self.members)
    }
}
