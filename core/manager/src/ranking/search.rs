//! The exact search where one group after the other leaves an overload.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use wire::{GroupId, NodeId};

use super::{EFFORT, Head, Overload, Ranking, TOGETHER, head_of};

/// A search under way: groups are placed in their order, and the best that was found so far is
/// kept.
struct Search {
    groups: Vec<GroupId>,
    best: Overload,
    chosen: Option<Vec<Head>>,
    path: Vec<Head>,
    steps: usize,
}

impl Ranking {
    /// Searches the groups that share an overload with this one. A result counts if it is clearly
    /// better, or if this group is new. Returns the groups whose lists changed, with the former
    /// lists.
    pub(super) fn search(&mut self, id: GroupId, is_new: bool) -> Vec<(GroupId, Vec<NodeId>)> {
        let Some(head) = head_of(self.targets(id)) else { return Vec::new() };
        if self.cost(id, head) == Overload::default() {
            return Vec::new();
        }
        let groups = self.together(id);
        let old: Vec<(GroupId, Vec<NodeId>)> =
            groups.iter().map(|id| (*id, self.lists.remove(id).unwrap_or_default())).collect();
        let mut best = Overload::default();
        for (id, list) in &old {
            if let Some(head) = head_of(list) {
                best += self.cost(*id, head);
            }
            self.lists.insert(*id, list.clone());
        }
        groups.iter().for_each(|id| drop(self.lists.remove(id)));
        let before = best;
        let mut search = Search { groups, best, chosen: None, path: Vec::new(), steps: 0 };
        self.go_on(&mut search, Overload::default());
        match search.chosen.filter(|_| is_new || search.best.is_clearly_below(before)) {
            None => {
                self.lists.extend(old);
                Vec::new()
            }
            Some(heads) => {
                search.groups.iter().zip(heads).for_each(|(id, head)| self.place(*id, Some(head)));
                old.into_iter().filter(|(id, list)| self.targets(*id) != list.as_slice()).collect()
            }
        }
    }

    /// Groups that may come to the same hosts as this one, and those that may come to theirs;
    /// nearest first.
    fn together(&self, id: GroupId) -> Vec<GroupId> {
        let (mut found, mut seen) = (Vec::from([id]), BTreeSet::from([id]));
        let mut next = 0;
        while next < found.len() && found.len() < TOGETHER {
            for node in self.cluster.group(found[next]).map_or(&[][..], |group| &group.backups) {
                let ranked = |id: &GroupId| !self.targets(*id).is_empty();
                let more = self.cluster.backups(*node).filter(ranked);
                found.extend(more.filter(|id| seen.insert(*id)));
            }
            next += 1;
        }
        found.truncate(TOGETHER);
        // The most expensive first: what does not fit is found out soon.
        found.sort_by_key(|id| {
            (core::cmp::Reverse(self.cluster.group(*id).map(|group| group.task.share())), *id)
        });
        found
    }

    fn go_on(&mut self, search: &mut Search, so_far: Overload) {
        search.steps += 1;
        if so_far >= search.best || search.steps > EFFORT {
            return;
        }
        let Some(id) = search.groups.get(search.path.len()).copied() else {
            search.best = so_far;
            search.chosen = Some(search.path.clone());
            return;
        };
        let mut heads: Vec<(Overload, u64, Head)> = self
            .heads(id)
            .into_iter()
            .map(|head| (self.cost(id, head), self.expected(id, head.first), head))
            .collect();
        heads.sort_by_key(|(cost, expected, _)| (*cost, *expected));
        for (cost, _, head) in heads {
            let mut sum = so_far;
            sum += cost;
            self.place(id, Some(head));
            search.path.push(head);
            self.go_on(search, sum);
            search.path.pop();
            self.lists.remove(&id);
        }
    }
}
