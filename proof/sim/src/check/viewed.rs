//! Services are told of views at the same places of their calls.
//!
//! Source: docs/protocol/group.md, "Services and views". Replicas that execute a call at the same
//! place of one history have been told of the same newest view before it.

use wire::{GroupId, Member};

use super::hashed::HashMap;
use super::{Verdict, demand};

const PROPERTY: &str = "views among calls";

/// The newest view before each call, by the hash of the history with the call.
#[derive(Clone, Default)]
pub struct Viewed {
    groups: Vec<GroupId>,
    seen: HashMap<(GroupId, u64), (Member, u64)>,
}

impl Viewed {
    /// All replicas of these groups execute all calls, each once.
    pub fn new(groups: Vec<GroupId>) -> Viewed {
        Viewed { groups, ..Viewed::default() }
    }

    /// A replica has executed the call with this hash, and was told of this view last.
    pub fn executed(&mut self, by: Member, group: GroupId, hash: u64, view: u64) -> Verdict {
        if !self.groups.contains(&group) {
            return Ok(());
        }
        let (first, known) = *self.seen.entry((group, hash)).or_insert((by, view));
        demand(known == view, PROPERTY, || {
            format!("{by} executes {hash:016x} of {group} in view {view}, {first} in view {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn another_view_before_the_same_call_is_seen() {
        let member = |node| Member { node: NodeId(node), incarnation: Incarnation(1) };
        let group = GroupId(1);
        let mut viewed = Viewed::new(vec![group]);
        viewed.executed(member(1), group, 7, 3).unwrap();
        viewed.executed(member(2), group, 7, 3).unwrap();
        viewed.executed(member(2), group, 8, 4).unwrap();
        viewed.executed(member(3), group, 7, 4).unwrap_err();
        viewed.executed(member(3), GroupId(2), 7, 4).unwrap();
        viewed.executed(member(1), GroupId(2), 7, 5).unwrap();
    }
}
