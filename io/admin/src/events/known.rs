//! What it takes to tell events to people.

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
            // Groups come and go; names of those that are gone are worth nothing.
            self.0.clear();
        }
        self.0.insert(GroupId::of(name), name.to_owned());
    }

    /// The group's name, or its number as long as that is all.
    pub fn name(&self, group: &GroupId) -> String {
        self.0.get(group).cloned().unwrap_or_else(|| group.to_string())
    }
}

/// What the log knows of the cluster.
#[derive(Debug, Default)]
pub(super) struct Known {
    me: Option<NodeId>,
    configured: Vec<NodeId>,
    /// Those of the configuration that was installed last.
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

    /// The configured nodes that are not in the configuration.
    pub fn absent(&self) -> Vec<NodeId> {
        absent(&self.configured, &self.members)
    }

    pub fn no_quorum(&self) -> String {
        no_quorum(&self.configured, &self.members)
    }
}
