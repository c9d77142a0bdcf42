//! Which groups are exported in a cell and below it, and which of that the cell above knows.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::command::{Count, Epoch, Refusal};
use crate::limits::{MAX_EXPORTS, MAX_NAMES, MAX_REPORT};

/// A name: exported here, or somewhere below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Exported {
    own: bool,
    /// By the attachment of the cell below, and how often there.
    below: Vec<(Epoch, u32)>,
    /// The last change of its count.
    changed: u64,
}

impl Exported {
    fn count(&self) -> u32 {
        let below = self.below.iter().map(|(_, count)| *count);
        below.fold(u32::from(self.own), u32::saturating_add)
    }
}

/// All names. One that is gone stays with the count 0 until the cell above knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exports {
    names: BTreeMap<String, Exported>,
    /// The number of changes so far.
    changes: u64,
    /// Attached cells that have more names than are kept here.
    wide: Vec<Epoch>,
}

/// Changes that the cell above does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The last of them.
    pub upto: u64,
    /// Their counts.
    pub counts: Vec<Count>,
}

impl Exports {
    /// # Errors
    /// It is one too many.
    pub(crate) fn export(&mut self, group: String) -> Result<(), Refusal> {
        let is_new = !self.names.get(&group).is_some_and(|name| name.own);
        if is_new && self.own().count() >= MAX_EXPORTS {
            return Err(Refusal::TooManyExports);
        }
        if is_new {
            self.change(group, |name| name.own = true);
        }
        Ok(())
    }

    pub(crate) fn unexport(&mut self, group: &str) {
        if self.names.get(group).is_some_and(|name| name.own) {
            self.change(group.into(), |name| name.own = false);
        }
    }

    /// The counts that a cell below has reported.
    pub(crate) fn report(&mut self, from: Epoch, counts: Vec<Count>) {
        for Count { group, count } in counts {
            if count > 0 && self.names.len() >= MAX_NAMES && !self.names.contains_key(&group) {
                if !self.wide.contains(&from) {
                    self.wide.push(from);
                }
                continue;
            }
            if count > 0 || self.names.contains_key(&group) {
                self.change(group, |name| {
                    name.below.retain(|(epoch, _)| *epoch != from);
                    name.below.extend((count > 0).then_some((from, count)));
                });
            }
        }
    }

    /// All that came by this attachment is gone.
    pub(crate) fn forget(&mut self, from: Epoch) {
        self.wide.retain(|epoch| *epoch != from);
        let has = |name: &Exported| name.below.iter().any(|(epoch, _)| *epoch == from);
        let lost: Vec<String> = self
            .names
            .iter()
            .filter(|(_, name)| has(name))
            .map(|(group, _)| group.clone())
            .collect();
        for group in lost {
            self.change(group, |name| name.below.retain(|(epoch, _)| *epoch != from));
        }
    }

    /// The cell above knows all changes up to this one.
    pub(crate) fn is_known(&mut self, seen: u64) {
        self.names.retain(|_, name| name.count() > 0 || name.changed > seen);
    }

    /// The next changes that a cell above does not know that has seen so many.
    pub(crate) fn unknown(&self, seen: u64) -> Option<Report> {
        // Routers ask at each look, and mostly nothing has changed.
        if seen >= self.changes {
            return None;
        }
        let mut changed: Vec<(u64, &String, u32)> = self
            .names
            .iter()
            .filter(|(_, name)| name.changed > seen)
            .map(|(group, name)| (name.changed, group, name.count()))
            .collect();
        changed.sort_unstable();
        let all = changed.len();
        changed.truncate(MAX_REPORT);
        let upto = if changed.len() < all { changed.last()?.0 } else { self.changes };
        let counts = changed
            .into_iter()
            .map(|(_, group, count)| Count { group: group.clone(), count })
            .collect();
        Some(Report { upto, counts })
    }

    pub(crate) fn is_own(&self, group: &str) -> bool {
        self.names.get(group).is_some_and(|name| name.own)
    }

    pub(crate) fn own(&self) -> impl Iterator<Item = &String> {
        self.names.iter().filter(|(_, name)| name.own).map(|(group, _)| group)
    }

    /// The attachments below which a name is, and those that may have it.
    pub(crate) fn below(&self, group: &str) -> Vec<Epoch> {
        let sure = self.names.get(group).into_iter().flat_map(|name| &name.below);
        let mut all: Vec<Epoch> = sure.map(|(epoch, _)| *epoch).collect();
        all.extend(self.wide.iter().filter(|epoch| !all.contains(epoch)).collect::<Vec<_>>());
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.names.values().filter(|name| name.count() > 0).count()
    }

    fn change(&mut self, group: String, change: impl FnOnce(&mut Exported)) {
        let name = self.names.entry(group).or_default();
        let before = name.count();
        change(name);
        if name.count() != before {
            self.changes += 1;
            name.changed = self.changes;
        }
    }

    pub(crate) fn is_sound(&self, attached: impl Fn(Epoch) -> bool) -> bool {
        let sound = |name: &Exported| {
            name.changed <= self.changes
                && name.below.iter().all(|(epoch, count)| *count > 0 && attached(*epoch))
        };
        self.own().count() <= MAX_EXPORTS
            && self.wide.iter().all(|epoch| attached(*epoch))
            && self.names.values().all(sound)
    }
}
