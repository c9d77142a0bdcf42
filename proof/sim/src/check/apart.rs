//! A replica whose state differs from the others' is told of in time, and no other is.
//!
//! Source: docs/protocol/group.md, "Replicas are compared".

use wire::{Duration, GroupId, Member};

use super::hashed::HashSet;
use super::{Verdict, demand};

const PROPERTY: &str = "comparisons";

/// From a drift until it is told, beside two comparisons: digests wait behind calls.
pub const WITHIN: Duration = Duration::from_millis(500);

/// The groups in which a state has become another.
#[derive(Clone, Default)]
pub struct Apart(HashSet<GroupId>);

impl Apart {
    /// Groups whose replicas lie are not believed.
    pub fn new(liars: impl Iterator<Item = GroupId>) -> Apart {
        Apart(liars.collect())
    }

    /// The state of one of this group's replicas has become another.
    pub fn drifted(&mut self, group: GroupId) {
        self.0.insert(group);
    }

    /// A node says that a replica is apart.
    pub fn told(&self, by: Member, group: GroupId, of: Member, text: &str) -> Verdict {
        demand(self.0.contains(&group), PROPERTY, || {
            format!("{by} says that {of} is apart in {group}, and no state has drifted: {text}")
        })
    }
}

/// Time is up for a replica whose state has drifted.
pub fn found_in_time(by: Member, group: GroupId, told: bool) -> Verdict {
    demand(told, PROPERTY, || {
        format!("the state of {group} at {by} has drifted, was compared, and nobody was told")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn who_is_apart_without_a_drift_and_a_drift_that_nobody_is_told_of_are_seen() {
        let (group, by) = (GroupId(1), Member { node: NodeId(1), incarnation: Incarnation(1) });
        let mut apart = Apart::new([GroupId(2)].into_iter());
        apart.told(by, GroupId(2), by, "a lie").unwrap();
        apart.told(by, group, by, "nothing").unwrap_err();
        apart.drifted(group);
        apart.told(by, group, by, "a drift").unwrap();
        assert!(found_in_time(by, group, false).is_err() && found_in_time(by, group, true).is_ok());
    }
}
