//! Calls that are given up where two histories meet are told.
//!
//! Source: docs/protocol/group.md, "Histories that meet". Without a quorum both sides of a partition
//! answer. A replica that goes on from another history than its own has told before how many of its
//! calls that costs: at least those that were answered.

use wire::{GroupId, Member};

use super::hashed::{HashMap, HashSet};
use super::{Verdict, demand};

const PROPERTY: &str = "calls that are given up are told";

/// The replicas' histories, by the hashes of their places, and what was answered of them.
#[derive(Clone, Default)]
pub struct Discarded {
    groups: Vec<GroupId>,
    histories: HashMap<(Member, GroupId), Vec<u64>>,
    answered: HashSet<(GroupId, u64)>,
    /// Calls that replicas said that they gave up.
    told: HashMap<(Member, GroupId), u64>,
}

impl Discarded {
    /// The histories of these groups may part.
    pub fn new(groups: Vec<GroupId>) -> Discarded {
        Discarded { groups, ..Discarded::default() }
    }

    /// A replica's history has this hash at this place, from 1.
    pub fn reached(&mut self, by: Member, group: GroupId, place: u64, hash: u64) -> Verdict {
        if !self.groups.contains(&group) {
            return Ok(());
        }
        let history = self.histories.entry((by, group)).or_default();
        let at = (place as usize).saturating_sub(1);
        if history.get(at).is_some_and(|known| *known == hash) {
            return Ok(());
        }
        let given_up = history.split_off(at.min(history.len()));
        history.push(hash);
        let lost = given_up.iter().filter(|hash| self.answered.contains(&(group, **hash))).count();
        if lost == 0 {
            return Ok(());
        }
        let told = self.told.remove(&(by, group)).unwrap_or_default();
        demand(told >= lost as u64, PROPERTY, || {
            format!(
                "{by} goes on from another history of {group} at the {place}th: {lost} answered calls \
                 are gone, and it told of {told}"
            )
        })
    }

    /// A replica's history was replaced by the one with these hashes.
    pub fn replaced(&mut self, by: Member, group: GroupId, hashes: &[u64]) -> Verdict {
        (1..).zip(hashes).try_for_each(|(place, hash)| self.reached(by, group, place, *hash))
    }

    /// A reply leaves that names this place of a history.
    pub fn answered(&mut self, group: GroupId, hash: u64) {
        if self.groups.contains(&group) {
            self.answered.insert((group, hash));
        }
    }

    /// A replica tells that it gives up so many calls.
    pub fn told(&mut self, by: Member, group: GroupId, calls: u64) -> Verdict {
        *self.told.entry((by, group)).or_default() += calls;
        demand(self.groups.contains(&group), PROPERTY, || {
            format!("{by} gives up {calls} calls of {group}, whose histories cannot part")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Incarnation, NodeId};

    #[test]
    fn what_is_gone_and_was_not_told_is_seen() {
        let (group, by) = (GroupId(1), Member { node: NodeId(1), incarnation: Incarnation(1) });
        let begin = || {
            let mut discarded = Discarded::new(vec![group]);
            discarded.replaced(by, group, &[10, 20, 30]).unwrap();
            discarded.answered(group, 20);
            discarded.answered(group, 30);
            discarded.replaced(by, group, &[10]).unwrap();
            discarded
        };
        let mut quiet = begin();
        quiet.reached(by, group, 2, 20).unwrap();
        quiet.reached(by, group, 3, 31).unwrap_err();
        begin().reached(by, group, 2, 21).unwrap_err();
        let mut told = begin();
        told.told(by, group, 2).unwrap();
        told.reached(by, group, 2, 21).unwrap();
        told.told(by, GroupId(2), 1).unwrap_err();
    }
}
