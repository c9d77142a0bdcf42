//! States that tests take out of a cluster, and give to one.

use steadfast_engine::{Restore, RestoreError, SaveError, Saved};
use wire::{GroupId, ViewNumber};

use super::Cluster;
use crate::base::Base;

impl<O: Base> Cluster<O> {
    /// Asks a node for a group's state, and returns the outcome.
    pub fn save(&mut self, node: u32, group: &str) -> Result<Saved, SaveError> {
        self.begin_save(node, group)?;
        self.saved(node)
    }

    pub fn begin_save(&mut self, node: u32, group: &str) -> Result<(), SaveError> {
        let group = GroupId::of(group);
        self.ask(node, |stack, now| stack.save(now, group))
    }

    /// Returns the outcome of the save that the node was asked for.
    pub fn saved(&mut self, node: u32) -> Result<Saved, SaveError> {
        self.run_until("the end of a save", |cluster| !cluster.at(node).saves.is_empty());
        self.at_mut(node).saves.remove(0)
    }

    /// Asks a node to restore a state, and returns the outcome.
    pub fn restore(
        &mut self,
        node: u32,
        saved: &Saved,
        replace: bool,
    ) -> Result<ViewNumber, RestoreError> {
        let Saved { name, options, form, state, .. } = saved.clone();
        let restore = Restore { name, options, form, state, replace };
        self.ask(node, |stack, now| stack.restore(now, restore))?;
        self.run_until("the end of a restore", |cluster| !cluster.at(node).restores.is_empty());
        self.at_mut(node).restores.remove(0)
    }

    /// Returns the node with the state that the group waits for, as known to `node`.
    pub fn depositor(&self, node: u32, group: &str) -> Option<u32> {
        let status = self.at(node).stack.status();
        let group = status.groups.iter().find(|g| g.name == group)?;
        group.depositor.map(|member| member.node.0)
    }

    /// A node knows the group.
    pub fn has_group(&self, node: u32, group: &str) -> bool {
        let status = self.at(node).stack.status();
        status.groups.iter().any(|known| known.name == group)
    }
}
