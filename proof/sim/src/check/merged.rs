//! Answered calls of histories that were given up are in the union.
//!
//! Source: docs/protocol/group.md, "Merges". Where a service merges, a history that was given up is part
//! of the one that goes on, by a call that names its last hash; or it was told as discarded. A
//! history whose replicas are gone is nobody's to merge.

use wire::ordered::MERGE;
use wire::{GroupId, NodeId};

use super::hashed::{HashMap, HashSet};
use super::{Verdict, demand};
use crate::service::Entry;

const PROPERTY: &str = "histories that were given up are merged";

/// How the groups' histories came about, and what was answered of them.
#[derive(Clone, Default)]
pub struct Merged {
    groups: Vec<GroupId>,
    /// By the hash of a place: that of the place before, and of the history that was merged there.
    steps: HashMap<(GroupId, u64), (u64, Option<u64>)>,
    answered: HashSet<(GroupId, u64)>,
    discarded: HashMap<GroupId, u64>,
    /// The nodes that have begun.
    begun: HashSet<NodeId>,
    /// A replica is gone, maybe with calls that nobody else had.
    lost: bool,
}

impl Merged {
    /// The services of these groups merge.
    pub fn new(groups: Vec<GroupId>) -> Merged {
        Merged { groups, ..Merged::default() }
    }

    /// This group's service merges.
    pub fn concerns(&self, group: GroupId) -> bool {
        self.groups.contains(&group)
    }

    /// A replica's history went on by this entry, from one hash to the other.
    pub fn executed(&mut self, group: GroupId, entry: &Entry, before: u64, after: u64) {
        if self.concerns(group) {
            let other = (entry.method == MERGE).then_some(entry.body);
            self.steps.insert((group, after), (before, other));
        }
    }

    /// Merges in this group.
    pub fn merges(&self, group: GroupId) -> usize {
        let merge = |((of, _), (_, other)): &(&(GroupId, u64), &(u64, Option<u64>))| {
            *of == group && other.is_some()
        };
        self.steps.iter().filter(merge).count()
    }

    /// A reply leaves that names this place of a history.
    pub fn answered(&mut self, group: GroupId, hash: u64) {
        if self.concerns(group) {
            self.answered.insert((group, hash));
        }
    }

    /// A replica tells that it gives up so many calls.
    pub fn discarded(&mut self, group: GroupId, calls: u64) {
        *self.discarded.entry(group).or_default() += calls;
    }

    /// A life of this node begins: one before it has ended.
    pub fn begins(&mut self, node: NodeId) {
        self.lost |= !self.begun.insert(node);
    }

    /// A replica is gone alone.
    pub fn lost(&mut self) {
        self.lost = true;
    }

    /// At the end: the group's history has this hash.
    pub fn finish(&self, group: GroupId, last: u64) -> Verdict {
        if !self.concerns(group) || self.lost {
            return Ok(());
        }
        let has = self.union(group, last);
        let answered = self.answered.iter().filter(|(of, _)| *of == group);
        let lost = answered.filter(|(_, hash)| !has.contains(hash)).count() as u64;
        let told = self.discarded.get(&group).copied().unwrap_or_default();
        demand(lost <= told, PROPERTY, || {
            format!("{lost} answered calls of {group} are in no merged history, {told} were told")
        })
    }

    /// The hashes of all histories that this one has in it.
    fn union(&self, group: GroupId, last: u64) -> HashSet<u64> {
        let (mut has, mut heads) = (HashSet::default(), vec![last]);
        while let Some(hash) = heads.pop() {
            if has.insert(hash)
                && let Some((before, other)) = self.steps.get(&(group, hash))
            {
                heads.push(*before);
                heads.extend(other);
            }
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{ClientId, MethodId, Time};

    const GROUP: GroupId = GroupId(1);

    fn entry(method: MethodId, body: u64) -> Entry {
        let (client, time) = (ClientId(1), Time(1));
        Entry { client, number: 1, time, random: 0, method, body, filling: 0, came: 0 }
    }

    #[test]
    fn a_history_that_nobody_merged_is_missed() {
        let call = entry(MethodId(7), 0);
        let mut merged = Merged::new(vec![GROUP]);
        for (before, after) in [(0, 10), (10, 20), (10, 21), (21, 31)] {
            merged.executed(GROUP, &call, before, after);
            merged.answered(GROUP, after);
        }
        merged.finish(GROUP, 20).unwrap_err();
        let mut told = merged.clone();
        told.discarded(GROUP, 1);
        told.finish(GROUP, 20).unwrap_err();
        told.discarded(GROUP, 1);
        told.finish(GROUP, 20).unwrap();
        let mut lost = merged.clone();
        lost.lost();
        lost.finish(GROUP, 20).unwrap();
        merged.executed(GROUP, &entry(MERGE, 31), 20, 40);
        merged.finish(GROUP, 40).unwrap();
    }
}
