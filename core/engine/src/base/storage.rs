//! This node's records on disk for all groups.

use alloc::vec::Vec;

use wire::kept::NodeRecord;
use wire::ordered::{AckLevel, Durability, Recall};
use wire::{GroupId, Incarnation, Member, Time};

use crate::api::Event;
use crate::base::Base;
use crate::base::held::Knowledge;
use crate::bug::Bug;
use crate::directory::{Group, majority};
use crate::disk::Recovery;
use crate::ordering::Ordering;

impl<O: Ordering> Base<O> {
    /// Continues from the disk's recovered data.
    pub(crate) fn begin_on_disk(&mut self, now: Time, recovery: &Recovery) {
        let recollection = recovery.recollection();
        self.membership.recall(recollection, recovery.reached());
        self.tell_level(now);
        if recollection.since == Incarnation::default() {
            self.note(NodeRecord::Since(self.me.incarnation));
        }
    }

    /// Writes a record of the node itself, at the place that is acted on now.
    pub(crate) fn note(&mut self, record: NodeRecord) {
        let place = self.place(self.records.acts_up_to().unwrap_or(self.progress.delivered()));
        if self.records.note(record, place) {
            self.snapshot_node();
        }
    }

    pub(crate) fn snapshot_node(&mut self) {
        let place = self.place(self.progress.delivered());
        self.records.snapshot_node(place);
    }

    /// Records the installed component: the node must know its members after any loss of power.
    pub(crate) fn note_installed(&mut self) {
        let Some(component) = self.membership.component().filter(|_| self.records.has_disk())
        else {
            return;
        };
        let component = component.clone();
        let on_disk =
            |group: &wire::ordered::GroupEntry| group.options.durability == Durability::Disk;
        let groups = self.directory.entries().into_iter().filter(on_disk).collect();
        let volatile = self.is_volatile();
        let level = self.membership.levels().level();
        self.note(NodeRecord::Installed { component, groups, volatile, level });
    }

    /// Records that the last replica of a group has left.
    pub(crate) fn note_gone(&mut self, group: GroupId, mut gone: Group) {
        self.event(Event::Ended { group, name: gone.name.clone(), view: gone.view });
        gone.replicas.clear();
        if self.records.has_disk() && gone.options.durability == Durability::Disk {
            self.note(NodeRecord::Changed(gone.to_entry()));
        }
    }

    /// Records that a group has changed.
    pub(crate) fn note_changed(&mut self, id: GroupId) {
        self.records.group_changed(id, self.progress.delivered());
        if !self.records.has_disk() {
            return;
        }
        let group = self.directory.get(id);
        let on_disk = |group: &&Group| group.options.durability == Durability::Disk;
        if let Some(group) = group.filter(on_disk) {
            self.note(NodeRecord::Changed(group.to_entry()));
        }
        let volatile = self.is_volatile();
        if self.records.disk().is_some_and(|disk| disk.recollection().volatile != volatile) {
            self.note(NodeRecord::Volatile(volatile));
        }
    }

    /// Whether any group has a state in memory only.
    pub(crate) fn is_volatile(&self) -> bool {
        self.directory.iter().any(|(_, group)| {
            group.options.durability == Durability::Memory && group.options.style.has_state()
        })
    }

    /// Returns this node's announcement of its disk.
    pub(crate) fn recall(&self) -> Option<Recall> {
        let disk = self.records.disk()?;
        let restarted = self.membership.is_restarted();
        let recollection = disk.recollection();
        let groups = if restarted { recollection.groups.clone() } else { Vec::new() };
        let (since, volatile) = (disk.since(), recollection.volatile);
        Some(Recall { since, restarted, volatile, groups, waiting: disk.waiting() })
    }

    /// Whether the disks have enough of a group on disk for this call's answer now.
    pub(crate) fn is_stored_now(&self, group: &Group, id: GroupId, sequence: u64) -> bool {
        self.is_stored(Knowledge::Present, group, id, sequence)
    }

    /// Whether the disks have, or had, enough of a group on disk for this call's answer.
    pub(super) fn is_stored(
        &self,
        known: Knowledge,
        group: &Group,
        id: GroupId,
        sequence: u64,
    ) -> bool {
        if group.options.durability == Durability::Memory
            || self.planted.is(Bug::AnswerBeforeStored)
        {
            return true;
        }
        // An answer without a record of its own (a read, a reply that the primary relays) rests on
        // the last record before it: disks have no later one.
        let sequence = sequence.min(self.known_at(id));
        let (ring, place) = (self.membership.ring(), self.place(sequence));
        let has = |member: &Member| self.persisted(known, ring, *member) >= sequence;
        let synced = group.synced().count();
        let enough = match group.options.ack {
            // Others were the replicas then: all present ones must have it.
            _ if place <= group.floor => synced,
            AckLevel::All => synced,
            AckLevel::Majority => majority(synced),
            AckLevel::One => return has(&self.me),
        };
        // The list of replicas must be known, too, whichever nodes rejoin.
        let changed = self.records.changed_at(id);
        let members = self.membership.members();
        let told = members.filter(|member| self.stored(known, ring, *member) >= changed).count();
        group.synced().filter(has).count() >= enough
            && told >= majority(self.membership.members().count())
    }

    /// Returns up to where every member has the order, and its records on its disk.
    pub(crate) fn held_and_stored(&self) -> u64 {
        let all = self.progress.held().all;
        if self.membership.is_effective() {
            return all;
        }
        let ring = self.membership.ring();
        let with_disk = self.membership.announces().iter().filter(|(_, a)| a.recall.is_some());
        let stored = with_disk.map(|(member, _)| self.outbox.ordering.stored(ring, *member));
        stored.min().map_or(all, |stored| stored.min(all))
    }

    /// Returns the place in the order that the answer to a known call waits for. Only requests that
    /// a replica takes are written to its disk.
    pub(crate) fn known_at(&self, id: GroupId) -> u64 {
        let on_disk = |group: &&Group| group.options.durability == Durability::Disk;
        match self.directory.get(id).filter(on_disk) {
            None => self.progress.delivered(),
            Some(group) if group.last.ring == self.membership.ring() => group.last.sequence,
            Some(_) => self.membership.installed_at(),
        }
    }

    pub(crate) fn ask_disks(&mut self, now: Time) {
        if self.records.asks_disks(now) {
            self.outbox.ordering.ask_stored(now);
        }
    }
}
