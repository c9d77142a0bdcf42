//! What the manager sees, and what it asks for (`docs/protocol/manager.md`): hosts tell in the
//! order what they have to do, each node keeps what each told last, and backups get the order in
//! which clients are to try them.

mod handler;

use alloc::collections::BTreeMap;

use wire::ordered::Usage;
use wire::{Member, NodeId, Time};

use crate::groups::shedding::Sheds;

/// What hosts have to do, and what they refuse for it.
#[derive(Default)]
pub(crate) struct Load {
    /// What members have told of their hosts.
    usages: BTreeMap<Member, Told>,
    /// How often something has changed that a manager looks at.
    changes: u64,
    /// What hosts refuse, and who calls here.
    pub(crate) sheds: Sheds,
}

impl Load {
    /// How often something has changed that a manager looks at.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// What each member told last.
    pub(crate) fn told(&self) -> impl Iterator<Item = (Member, &Told)> {
        self.usages.iter().map(|(member, told)| (*member, told))
    }

    /// What this member told last.
    pub(crate) fn told_by(&self, member: Member) -> Option<&Told> {
        self.usages.get(&member)
    }

    /// Something has changed that a manager looks at.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// What this node's host has told last.
    pub(crate) fn usage_of(&self, node: NodeId) -> Option<&Usage> {
        let told = self.usages.iter().find(|(member, _)| member.node == node);
        told.map(|(_, told)| &told.usage)
    }
}

/// What a member told last.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub usage: Usage,
    pub at: Time,
}
