//! This node's records for its disk, if it has one: those that the disk was given, and those that
//! wait for it (`docs/protocol/store.md`).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use bytes::Bytes;
use wire::kept::{FOLLOWED, NODE, NodeRecord, TAKEN};
use wire::ordered::Place;
use wire::{Duration, GroupId, Time};

use crate::api::{Kept, Output};
use crate::bug::{Bug, Planted};
use crate::disk::{Disk, Recovery};

/// A node that waits for others' disks asks them after this time, and again: their reports may be
/// lost.
const ASK_STORED: Duration = Duration::from_millis(50);

/// The node's disk, as its machine sees it.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    disk: Option<Disk>,
    /// The number of a group's records after which a snapshot is taken.
    snapshot_after: u64,
    /// The places of the order that are acted on now: new records belong to them.
    acting: Option<(u64, u64)>,
    /// The place in this configuration's order at which a group changed last.
    changed_at: BTreeMap<GroupId, u64>,
    /// The time at which this node asks the others how much is on their disks.
    ask_at: Option<Time>,
    /// The component has become effective: replicas kept until then may go.
    look_at_kept: bool,
    /// Outputs for the disk when all messages of the present place have been acted on.
    unwritten: Vec<Output>,
    /// States for the disk. Each waits for the last record at the time that it was taken, whose
    /// number it has.
    unstored: Vec<(GroupId, u64, Output)>,
}

impl Records {
    pub(crate) fn new(recovery: Option<Recovery>, snapshot_after: u64) -> Records {
        Records {
            disk: recovery.map(Disk::new),
            snapshot_after,
            acting: None,
            changed_at: BTreeMap::new(),
            ask_at: None,
            look_at_kept: false,
            unwritten: Vec::new(),
            unstored: Vec::new(),
        }
    }

    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    pub(crate) fn disk_mut(&mut self) -> Option<&mut Disk> {
        self.disk.as_mut()
    }

    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether the disk has a state of this group that no replica here hosts.
    pub(crate) fn has(&self, group: GroupId) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.has(group))
    }

    pub(crate) fn snapshot_after(&self) -> u64 {
        self.snapshot_after
    }

    /// Begins a configuration.
    pub(crate) fn new_configuration(&mut self) {
        self.changed_at.clear();
        if let Some(disk) = &mut self.disk {
            disk.new_configuration();
        }
    }

    /// Messages from this place of the order up to that one are acted on. With the first of them
    /// the component `begins`.
    pub(crate) fn begin_to_act(&mut self, (from, to): (u64, u64), begins: bool) {
        self.acting = Some((from, to));
        if begins {
            self.changed_at.clear();
        }
    }

    pub(crate) fn end_acting(&mut self) {
        self.acting = None;
    }

    /// Returns the last place that is acted on now.
    pub(crate) fn acts_up_to(&self) -> Option<u64> {
        self.acting.map(|(_, to)| to)
    }

    /// Notes that a group has changed at this place.
    pub(crate) fn group_changed(&mut self, group: GroupId, sequence: u64) {
        self.changed_at.insert(group, sequence);
    }

    /// Returns where in the order of this configuration a group changed last; 0 if it has not.
    pub(crate) fn changed_at(&self, group: GroupId) -> u64 {
        self.changed_at.get(&group).copied().unwrap_or(0)
    }

    /// Writes a record of a group, at the place that is acted on now. Returns the number of all
    /// records so far.
    pub(crate) fn persist(&mut self, group: GroupId, kind: u8, place: Place, bytes: Bytes) -> u64 {
        let Some(disk) = &mut self.disk else { return 0 };
        let number = disk.append(self.acting);
        let kept = Kept { strand: Some(group), kind: Some(kind), place, bytes };
        self.unwritten.push(Output::Persist(kept));
        number
    }

    /// Writes a record of the node itself, at the place that is acted on now. True if a snapshot is
    /// due after so many.
    pub(crate) fn note(&mut self, record: NodeRecord, place: Place) -> bool {
        let Some(disk) = &mut self.disk else { return false };
        let bytes = record.encode();
        let long = disk.note(record, place, self.acting);
        let kept = Kept { strand: None, kind: Some(NODE), place, bytes };
        self.unwritten.push(Output::Persist(kept));
        long
    }

    /// Replaces the node's records by a snapshot of its knowledge of the cluster.
    pub(crate) fn snapshot_node(&mut self, place: Place) {
        let Some(disk) = &mut self.disk else { return };
        let (covers, state) = (disk.appended(), disk.snapshot());
        self.unwritten.push(Output::Snapshot { strand: None, covers, place, state: state.into() });
    }

    /// Drops the disk's data of this group, which nobody needs.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.unwritten.push(Output::Forget(group));
    }

    /// Whether a state of this group waits for its records.
    pub(crate) fn has_unstored(&self, group: GroupId) -> bool {
        self.unstored.iter().any(|(waiting, ..)| *waiting == group)
    }

    /// Stores a state of this group when all records so far are on the disk.
    pub(crate) fn store_later(&mut self, group: GroupId, snapshot: Output) {
        self.unstored.retain(|(waiting, ..)| *waiting != group);
        let recorded = self.disk.as_ref().map_or(0, Disk::appended);
        self.unstored.push((group, recorded, snapshot));
        self.give_unstored();
    }

    /// Gives states to the store whose records are on the disk. A state may include more than the
    /// requests up to its place: the ends of their handlers' calls came later. So a node that
    /// restarts with the state has the ends, too.
    pub(crate) fn give_unstored(&mut self) {
        let Some(disk) = &self.disk else { return };
        let ready = |(_, recorded, _): &mut (GroupId, u64, Output)| disk.has_all(*recorded);
        let ready = self.unstored.extract_if(.., ready);
        self.unwritten.extend(ready.map(|(.., snapshot)| snapshot));
    }

    /// All messages of the present place have been acted on. Only the last of a group's records
    /// there marks the place as whole. A disk with only some of them counts as having none. Returns
    /// the groups with such records.
    pub(crate) fn mark_whole_places(&mut self, planted: Planted) -> BTreeSet<(GroupId, Place)> {
        let mut whole = BTreeSet::new();
        for output in self.unwritten.iter_mut().rev() {
            let Output::Persist(Kept { strand: Some(group), kind, place, .. }) = output else {
                continue;
            };
            let last = *kind != Some(TAKEN) || whole.insert((*group, *place));
            if !last && !planted.is(Bug::CountHalfPlace) {
                *kind = Some(FOLLOWED);
            }
        }
        whole
    }

    /// Whether nothing waits to be given to the disk.
    pub(crate) fn is_written(&self) -> bool {
        self.unwritten.is_empty()
    }

    /// Takes the outputs for the disk.
    pub(crate) fn take_unwritten(&mut self) -> impl Iterator<Item = Output> + '_ {
        self.unwritten.drain(..)
    }

    /// Notes that the component has become effective.
    pub(crate) fn became_effective(&mut self) {
        self.look_at_kept = true;
    }

    /// True once each time that a component became effective.
    pub(crate) fn take_effective(&mut self) -> bool {
        core::mem::take(&mut self.look_at_kept)
    }

    /// Sets the time at which this node asks the others how much is on their disks.
    pub(crate) fn watch_disks(&mut self, now: Time, waits: bool) {
        self.ask_at = waits.then(|| self.ask_at.unwrap_or(now + ASK_STORED));
    }

    /// Whether the others are to be asked now.
    pub(crate) fn asks_disks(&mut self, now: Time) -> bool {
        self.ask_at.take_if(|at| *at <= now).is_some()
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.ask_at
    }

    pub(crate) fn check_invariants(&self) {
        self.disk.iter().for_each(Disk::check_invariants);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_asked_while_something_waits() {
        let mut records = Records::new(None, 1);
        let now = Time(1_000_000_000);
        records.watch_disks(now, true);
        records.watch_disks(now + ASK_STORED, true);
        assert_eq!(records.next_timeout(), Some(now + ASK_STORED), "the first counts");
        assert!(!records.asks_disks(now) && records.asks_disks(now + ASK_STORED));
        assert!(!records.asks_disks(now + ASK_STORED), "once");
        records.watch_disks(now, true);
        records.watch_disks(now, false);
        assert_eq!(records.next_timeout(), None);
    }

    #[test]
    fn a_component_knows_where_its_groups_changed() {
        let mut records = Records::new(None, 1);
        records.group_changed(GroupId(1), 7);
        assert_eq!(records.changed_at(GroupId(1)), 7);
        records.begin_to_act((8, 8), false);
        assert_eq!((records.changed_at(GroupId(1)), records.acts_up_to()), (7, Some(8)));
        records.begin_to_act((8, 9), true);
        assert_eq!(records.changed_at(GroupId(1)), 0);
    }
}
