//! The component that each life acts in, and whose histories count there.

use std::collections::BTreeSet;

use wire::{GroupId, Member, RingId};

use crate::check::hashed::HashMap;

/// The knowledge of components.
#[derive(Clone)]
pub struct Components {
    of: HashMap<Member, RingId>,
    /// Nodes have disks; replicas of which a view has said that they have the state.
    disks: bool,
    counts: BTreeSet<(Member, GroupId)>,
}

impl Components {
    /// None yet.
    pub fn new(disks: bool) -> Components {
        Components { of: HashMap::default(), disks, counts: BTreeSet::new() }
    }

    /// The component that this life acts in.
    pub fn of(&self, member: Member) -> RingId {
        self.of.get(&member).copied().unwrap_or_default()
    }

    /// This life acts in this component from here on.
    pub fn enter(&mut self, member: Member, ring: RingId) {
        self.of.insert(member, ring);
    }

    /// A view has said that this replica has the state.
    pub fn synced(&mut self, member: Member, group: GroupId) {
        self.counts.insert((member, group));
    }

    /// The component in which this life's replica of a group has a history that counts: of what its
    /// disk gave back it is not known before a view says so.
    pub fn of_history(&self, member: Member, group: GroupId) -> RingId {
        match self.disks && !self.counts.contains(&(member, group)) {
            true => RingId::default(),
            false => self.of(member),
        }
    }
}
