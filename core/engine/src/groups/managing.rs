//! The manager's input and orders (`docs/protocol/manager.md`). Hosts report their load in ordered
//! messages, and each node keeps every host's last report. Backups get the order in which clients
//! try them.

mod handler;

use alloc::collections::BTreeMap;

use wire::ordered::Usage;
use wire::{Member, NodeId, Time};

use crate::groups::shedding::Sheds;

/// The hosts' load, and what they refuse because of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// The last report of each member.
    usages: BTreeMap<Member, Told>,
    /// Counts the changes that a manager looks at, and those of them that are no load report.
    changes: u64,
    turns: u64,
    /// Refused priorities, and the classes of callers here.
    pub(crate) sheds: Sheds,
}

impl Load {
    /// Returns how often something has changed that a manager looks at.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns how often something else than a host's load has changed.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the last report of each member.
    pub(crate) fn told(&self) -> impl Iterator<Item = (Member, &Told)> {
        self.usages.iter().map(|(member, told)| (*member, told))
    }

    /// Returns this member's last report.
    pub(crate) fn told_by(&self, member: Member) -> Option<&Told> {
        self.usages.get(&member)
    }

    /// Counts a change that a manager looks at.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
        self.turns += 1;
    }

    /// Returns the load that a node's host has reported last.
    pub(crate) fn usage_of(&self, node: NodeId) -> Option<&Usage> {
        let told = self.usages.iter().find(|(member, _)| member.node == node);
        told.map(|(_, told)| &told.usage)
    }
}

/// A member's last report.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub usage: Usage,
    pub at: Time,
}
