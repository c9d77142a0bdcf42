//! Groups on disk: what is given to the store, and what waits until it is there (`docs/protocol/store.md`, "How groups
//! use it").

use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use wire::kept::{BEGUN, GroupState, NodeRecord, TAKEN, encode_style};
use wire::ordered::{Durability, Hold, Ordered, Place, Recall, Recalled, Style, Synced};
use wire::{GroupId, Incarnation, Member, RingId, Time, ViewNumber};

use super::{Hosted, Journal, Stack};
use crate::api::{Config, Event, Output};
use crate::bug::Bug;
use crate::directory::{Change, Group, majority};
use crate::disk::Recovery;
use crate::ordering::Ordering;
use crate::style::Conduct;

/// How much of a group is in the log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Logged {
    /// Since the last snapshot, or the one that is being taken.
    pub(super) records: u64,
    pub(super) bytes: usize,
    /// How many records of all strands there were, and the place, when the state was taken that is on its way.
    pub(super) taken: Option<(u64, Place)>,
    /// The same when the state was given up that a transfer is to replace.
    pub(super) lost: (u64, Place),
    /// The transfer that is over when its state is on the disk.
    pub(super) syncing: Option<ViewNumber>,
}

impl<O: Ordering> Stack<O> {
    /// What the disk gave back is where this node goes on from.
    pub(super) fn begin_on_disk(&mut self, recovery: &Recovery) {
        let recollection = recovery.recollection();
        self.membership.recall(recollection, recovery.reached());
        if recollection.since == Incarnation::default() {
            self.note(NodeRecord::Since(self.me.incarnation));
        }
    }

    /// All records up to the `upto`-th that was given by [`Output::Persist`] are on the disk.
    pub fn handle_persisted(&mut self, now: Time, upto: u64) {
        if let Some(disk) = self.records.disk_mut()
            && let Some(stored) = disk.persisted(upto)
        {
            let ring = self.membership.ring();
            self.outbox.ordering.tell_stored(now, ring, stored);
            self.release(ring);
            self.pay_all(now);
            self.go_on_trying(now);
        }
        self.records.give_unstored();
        self.settle(now);
    }

    /// A state that was given by [`Output::Snapshot`] is on the disk. Where there was no room for what a transfer has brought, a later
    /// state of the group stands for it (simulator world `decay`, seed 613).
    pub fn handle_snapshot_stored(&mut self, now: Time, group: GroupId, covers: u64) {
        if let Some(hosted) = self.hosted.get_mut(&group)
            && covers >= hosted.on_disk.logged.lost.0
            && let Some(transfer) = hosted.on_disk.logged.syncing.take()
            && hosted.replica.transfer() == Some(transfer)
        {
            self.order(now, Ordered::Synced(Synced { group, transfer }));
        }
        self.settle(now);
    }

    /// The store's log is long: a snapshot of this strand would cut it.
    pub fn handle_snapshot_wanted(&mut self, now: Time, strand: Option<GroupId>) {
        match strand {
            None => self.snapshot_node(),
            Some(group) if self.hosted.contains_key(&group) => self.snapshot_group(now, group),
            // What waits for somebody to host it stays.
            Some(group) if self.records.has(group) => {}
            Some(group) => self.records.forget(group),
        }
        self.settle(now);
    }

    /// A record of the node itself, which counts as what is acted on now.
    pub(super) fn note(&mut self, record: NodeRecord) {
        let place = self.place(self.records.acts_up_to().unwrap_or(self.progress.delivered()));
        if self.records.note(record, place) {
            self.snapshot_node();
        }
    }

    fn snapshot_node(&mut self) {
        let place = self.place(self.progress.delivered());
        self.records.snapshot_node(place);
    }

    fn snapshot_group(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.hosted.get(&group).filter(|_| self.records.has_disk()) else {
            return;
        };
        let waits = self.records.has_unstored(group);
        if waits || !hosted.replica.may_snapshot() {
            return; // the next record asks again
        }
        self.with_replica(now, group, |replica, effects| replica.keep(effects));
    }

    /// The state that a replica's service has here is to be kept.
    pub(super) fn keeping(&mut self, group: GroupId) {
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
        hosted.program.journal.iter_mut().for_each(Journal::take);
        if let Some(disk) = self.records.disk().filter(|_| is_on_disk(hosted)) {
            hosted.on_disk.logged =
                Logged { taken: Some((disk.appended(), hosted.taken)), ..hosted.on_disk.logged };
            (hosted.on_disk.logged.records, hosted.on_disk.logged.bytes) = (0, 0);
        }
    }

    /// A replica of a group on disk took an ordered message.
    pub(super) fn log_taken(&mut self, group: GroupId, place: Place, payload: &Bytes) {
        self.records.persist(group, TAKEN, place, payload.clone());
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.on_disk.logged.records += 1;
            hosted.on_disk.logged.bytes += payload.len();
        }
    }

    /// What a replica goes on from without having taken a request: its disk is given that, too, if it has one.
    pub(super) fn log_beside(&mut self, group: GroupId, payload: &Bytes) {
        let hosted = self.hosted.get(&group).filter(|hosted| is_on_disk(hosted) && !hosted.spared);
        if let Some(place) = hosted.map(|hosted| hosted.taken) {
            self.log_taken(group, place, payload);
        }
    }

    /// All messages of the present place have been acted on: the disk is given what that led to.
    pub(super) fn write_down(&mut self, now: Time) {
        for (group, _) in self.records.mark_whole_places(self.planted) {
            self.cut_log(now, group);
        }
        self.outputs.extend(self.records.take_unwritten());
    }

    /// A snapshot is taken if a restart would have too much to do again.
    fn cut_log(&mut self, now: Time, group: GroupId) {
        let (after, most) = (self.records.snapshot_after(), Config::SNAPSHOT_BYTES);
        let long = |logged: &Logged| logged.records >= after || logged.bytes >= most;
        if self.hosted.get(&group).is_some_and(|hosted| long(&hosted.on_disk.logged)) {
            self.snapshot_group(now, group);
        }
    }

    /// A replica's state is there to be kept: of a transfer, or to stand for its records.
    pub(super) fn store_state(
        &mut self,
        now: Time,
        group: GroupId,
        (style, state): (Style, Bytes),
        transfer: Option<ViewNumber>,
    ) {
        let early = self.planted.is(Bug::SyncedBeforeStored);
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
        match &mut hosted.program.journal {
            Some(journal) if style.logs() => journal.forget(style),
            Some(journal) => journal.cut(state.clone(), transfer),
            None => {}
        }
        if !is_on_disk(hosted) {
            if let Some(transfer) = transfer {
                self.order(now, Ordered::Synced(Synced { group, transfer }));
            }
            return;
        }
        let (covers, place) = match transfer {
            Some(_) => hosted.on_disk.logged.lost,
            None => hosted.on_disk.logged.taken.take().expect("a state is taken at a known place"),
        };
        if !early {
            hosted.on_disk.logged.syncing = transfer.or(hosted.on_disk.logged.syncing);
        }
        let state = GroupState { style, state }.encode();
        let snapshot = Output::Snapshot { strand: Some(group), covers, place, state };
        self.records.store_later(group, snapshot);
        if let Some(transfer) = transfer.filter(|_| early) {
            self.order(now, Ordered::Synced(Synced { group, transfer }));
        }
    }

    /// A replica's state begins, or is of no use any more.
    pub(super) fn mark(&mut self, group: GroupId, kind: u8) {
        if let Some(hosted) = self.hosted.get_mut(&group)
            && let Some(journal) = &mut hosted.program.journal
        {
            let style = hosted.replica.style();
            match kind {
                BEGUN => journal.begin(style),
                _ => journal.forget(style),
            }
        }
        let Some(hosted) = self.hosted.get(&group).filter(|hosted| is_on_disk(hosted)) else {
            return;
        };
        let place = hosted.taken;
        let content = match kind {
            BEGUN => encode_style(hosted.replica.style_so_far()),
            _ => Bytes::new(),
        };
        let number = self.records.persist(group, kind, place, content);
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.on_disk.logged = Logged { lost: (number, place), ..Logged::default() };
        }
    }

    /// The component is installed: its members are to know after any loss of power.
    pub(super) fn note_installed(&mut self) {
        let Some(component) = self.membership.component().filter(|_| self.records.has_disk())
        else {
            return;
        };
        let component = component.clone();
        let on_disk =
            |group: &wire::ordered::GroupEntry| group.options.durability == Durability::Disk;
        let groups = self.directory.entries().into_iter().filter(on_disk).collect();
        let volatile = self.is_volatile();
        self.note(NodeRecord::Installed { component, groups, volatile });
    }

    /// The last replica of a group has left.
    pub(super) fn note_gone(&mut self, group: GroupId, mut gone: Group) {
        self.event(Event::Ended { group, name: gone.name.clone(), view: gone.view });
        gone.replicas.clear();
        if self.records.has_disk() && gone.options.durability == Durability::Disk {
            self.note(NodeRecord::Changed(gone.to_entry()));
        }
    }

    /// A group has changed.
    pub(super) fn note_changed(&mut self, id: GroupId) {
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

    /// There are groups with a state that is in memory only.
    fn is_volatile(&self) -> bool {
        self.directory.iter().any(|(_, group)| {
            group.options.durability == Durability::Memory && group.options.style.has_state()
        })
    }

    /// What this node announces of its disk.
    pub(super) fn recall(&self) -> Option<Recall> {
        let disk = self.records.disk()?;
        let restarted = self.membership.is_restarted();
        let recollection = disk.recollection();
        let groups = if restarted { recollection.groups.clone() } else { Vec::new() };
        let (since, volatile) = (disk.since(), recollection.volatile);
        Some(Recall { since, restarted, volatile, groups, waiting: disk.waiting() })
    }

    /// This node hosts a group whose state is on its disk.
    pub(super) fn recall_replica(&mut self, now: Time, group: GroupId) {
        let strand = self.records.disk_mut().and_then(|disk| disk.take(group));
        let Some((strand, hosted)) = strand.zip(self.hosted.get_mut(&group)) else { return };
        let taken = strand.taken;
        hosted.taken = taken;
        hosted.on_disk.recalled = true;
        hosted.on_disk.logged.records = strand.log.len() as u64;
        if let Some(journal) = &mut hosted.program.journal
            && !self.planted.is(Bug::JournalWithoutDisk)
        {
            journal.recall(strand.style, strand.state.clone(), &strand.log);
        }
        self.with_replica(now, group, |replica, effects| {
            replica.recall_from_disk(now, (strand.style, strand.state), strand.log, effects);
        });
        if self.membership.ring() != RingId::default() {
            // It was not in what this node has announced.
            self.order(now, Ordered::Recalled(Recalled { group, taken }));
        }
    }

    /// The component's table has said what those are worth that this node announced.
    pub(super) fn forget_recalls(&mut self) {
        let announced = self.membership.announces().get(&self.me);
        let announced = announced.map_or(&[][..], |announce| &announce.replicas);
        for (id, _) in announced {
            if let Some(hosted) = self.hosted.get_mut(id) {
                hosted.on_disk.recalled = false;
            }
        }
    }

    /// All members' disks know the component's table: a state that it does not count is of no use to anybody. Its replica gives
    /// it up and comes anew.
    pub(super) fn give_up_kept(&mut self, now: Time) -> bool {
        if !self.records.take_effective() || !self.membership.is_effective() {
            return false;
        }
        let kept = self.hosted.iter().filter(|(_, hosted)| hosted.on_disk.kept);
        let kept: Vec<GroupId> = kept.map(|(id, _)| *id).collect();
        for group in &kept {
            self.reconcile_replica(now, *group);
        }
        !kept.is_empty()
    }

    /// A member hosts a group whose state is on its disk, and had not said so when the component began.
    pub(super) fn act_on_recalled(&mut self, now: Time, sender: Member, recalled: Recalled) {
        let Recalled { group, taken } = recalled;
        let announces = self.membership.announces_mut();
        let Some(announce) = announces.get_mut(&sender) else { return };
        let Some(recall) = &mut announce.recall else { return };
        recall.waiting.retain(|waiting| *waiting != group);
        if announce.replicas.iter().any(|(known, _)| *known == group) {
            return;
        }
        announce.replicas.push((group, taken));
        let change =
            self.directory.wake(group, self.membership.announces(), self.membership.gathering());
        self.changed(now, group, change);
        if change != Change::None {
            // What it told before it was in the table counts for nobody (simulator seed 0 of `everything`).
            self.open_votes_of(now, group);
        }
        let waits = self.directory.get(group).is_some_and(|group| group.primary().is_none());
        let Some(hosted) = self.hosted.get_mut(&group).filter(|_| sender == self.me) else {
            return;
        };
        if mem::take(&mut hosted.on_disk.recalled) && change == Change::None && !waits {
            // The others went on without it, or have ended the group.
            self.reconcile_replica(now, group);
        }
    }

    /// Whether a call of a group on disk may be answered as far as disks are concerned.
    pub(super) fn is_stored(&self, group: &Group, id: GroupId, sequence: u64) -> bool {
        if group.options.durability == Durability::Memory
            || self.planted.is(Bug::AnswerBeforeStored)
        {
            return true;
        }
        // What is answered without a record of its own (a read, a reply that the primary relays) rests on the last one before it: disks
        // have nothing of what came later (simulator seed 1285 of the disks).
        let sequence = sequence.min(self.known_at(id));
        let (ring, place) = (self.membership.ring(), self.place(sequence));
        let has = |member: &Member| self.outbox.ordering.stored(ring, *member) >= sequence;
        let synced = group.synced().count();
        let enough = match group.options.hold {
            // Others had it then: all that have it now.
            _ if place <= group.floor => synced,
            Hold::All => synced,
            Hold::Majority => majority(synced),
            Hold::One => return has(&self.me),
        };
        // Who the replicas are has to be known, too, whichever nodes come back.
        let changed = self.records.changed_at(id);
        let members = self.membership.members();
        let known = members.filter(|member| self.stored(ring, *member) >= changed).count();
        group.synced().filter(has).count() >= enough
            && known >= majority(self.membership.members().count())
    }

    /// What a member has where it keeps what it has to.
    fn stored(&self, ring: RingId, member: Member) -> u64 {
        let announce = self.membership.announces().get(&member);
        match announce.is_some_and(|announce| announce.recall.is_some()) {
            true => self.outbox.ordering.stored(ring, member),
            false => self.outbox.ordering.reached(ring, member),
        }
    }

    /// Every member has the order up to here, and on its disk what it has to keep of that.
    pub(super) fn held_and_stored(&self) -> u64 {
        let all = self.progress.held().all;
        if self.membership.is_effective() {
            return all;
        }
        let ring = self.membership.ring();
        let with_disk = self.membership.announces().iter().filter(|(_, a)| a.recall.is_some());
        let stored = with_disk.map(|(member, _)| self.outbox.ordering.stored(ring, *member));
        stored.min().map_or(all, |stored| stored.min(all))
    }

    /// The place in the order that the answer to a known call waits for. Only what a replica takes comes to its disk.
    pub(super) fn known_at(&self, id: GroupId) -> u64 {
        let on_disk = |group: &&Group| group.options.durability == Durability::Disk;
        match self.directory.get(id).filter(on_disk) {
            None => self.progress.delivered(),
            Some(group) if group.last.ring == self.membership.ring() => group.last.sequence,
            Some(_) => self.membership.installed_at(),
        }
    }

    /// Something waits for what others have on their disks.
    fn waits_for_disks(&self) -> bool {
        let forming = self.membership.is_active() && !self.membership.is_effective();
        self.membership.has_disks()
            && (forming
                || self.clients.callers.any_unheld()
                || self.any_leader_waits()
                || !self.wishes.restyles.is_empty()
                || self.calls.between.waits_to_pay()
                || self.wishes.backups.any_unheld())
    }

    /// Sets the time at which the others are asked for what they have on their disks.
    pub(super) fn watch_disks(&mut self, now: Time) {
        let waits = self.waits_for_disks();
        self.records.watch_disks(now, waits);
    }

    pub(super) fn ask_disks(&mut self, now: Time) {
        if self.records.asks_disks(now) {
            self.outbox.ordering.ask_stored(now);
        }
    }
}

pub(super) fn is_on_disk(hosted: &Hosted) -> bool {
    hosted.options.durability == Durability::Disk
}
