//! Groups on disk: what is given to the store, and what waits until it is there (`docs/protocol/store.md`, "How groups
//! use it").

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem;

use bytes::Bytes;
use wire::kept::{BEGUN, FOLLOWED, GroupState, NODE, NodeRecord, TAKEN, encode_style};
use wire::ordered::{Durability, Hold, Ordered, Place, Recall, Recalled, Style, Synced};
use wire::{Duration, GroupId, Incarnation, Member, RingId, Time, ViewNumber};

use super::{Hosted, Journal, Stack};
use crate::api::{Config, Event, Kept, Output};
use crate::bug::Bug;
use crate::directory::{Change, Group, majority};
use crate::disk::{Disk, Recovery};
use crate::ordering::Ordering;
use crate::style::Conduct;

/// Whoever waits for others' disks asks them after this time, and again: what they told may be lost.
const ASK_STORED: Duration = Duration::from_millis(50);

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
        if let Some(disk) = &mut self.disk
            && let Some(stored) = disk.persisted(upto)
        {
            let ring = self.membership.ring();
            self.ordering.tell_stored(now, ring, stored);
            self.release(ring);
            self.pay_all(now);
            self.go_on_trying(now);
        }
        self.give_unstored();
        self.settle(now);
    }

    /// A state that was given by [`Output::Snapshot`] is on the disk. Where there was no room for what a transfer has brought, a later
    /// state of the group stands for it (simulator world `decay`, seed 613).
    pub fn handle_snapshot_stored(&mut self, now: Time, group: GroupId, covers: u64) {
        if let Some(hosted) = self.hosted.get_mut(&group)
            && covers >= hosted.logged.lost.0
            && let Some(transfer) = hosted.logged.syncing.take()
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
            Some(group) if self.disk.as_ref().is_some_and(|disk| disk.has(group)) => {}
            Some(group) => self.unwritten.push(Output::Forget(group)),
        }
        self.settle(now);
    }

    /// A record of one of this node's groups, which counts as what is acted on now.
    pub(super) fn persist(&mut self, group: GroupId, kind: u8, place: Place, bytes: Bytes) -> u64 {
        let Some(disk) = &mut self.disk else { return 0 };
        let number = disk.append(self.acting);
        let kept = Kept { strand: Some(group), kind: Some(kind), place, bytes };
        self.unwritten.push(Output::Persist(kept));
        number
    }

    /// A record of the node itself, which counts as what is acted on now.
    pub(super) fn note(&mut self, record: NodeRecord) {
        let place = self.place(self.acting.map_or(self.delivered, |(_, to)| to));
        let Some(disk) = &mut self.disk else { return };
        let bytes = record.encode();
        let long = disk.note(record, place, self.acting);
        let kept = Kept { strand: None, kind: Some(NODE), place, bytes };
        self.unwritten.push(Output::Persist(kept));
        if long {
            self.snapshot_node();
        }
    }

    fn snapshot_node(&mut self) {
        let place = self.place(self.delivered);
        let Some(disk) = &mut self.disk else { return };
        let (covers, state) = (disk.appended(), disk.snapshot());
        self.unwritten.push(Output::Snapshot { strand: None, covers, place, state });
    }

    fn snapshot_group(&mut self, now: Time, group: GroupId) {
        let Some(hosted) = self.hosted.get(&group).filter(|_| self.disk.is_some()) else { return };
        let waits = self.unstored.iter().any(|(waiting, ..)| *waiting == group);
        if waits || !hosted.replica.may_snapshot() {
            return; // the next record asks again
        }
        self.with_replica(now, group, |replica, effects| replica.keep(effects));
    }

    /// The state that a replica's service has here is to be kept.
    pub(super) fn keeping(&mut self, group: GroupId) {
        let Some(hosted) = self.hosted.get_mut(&group) else { return };
        hosted.journal.iter_mut().for_each(Journal::take);
        if let Some(disk) = self.disk.as_ref().filter(|_| is_on_disk(hosted)) {
            hosted.logged =
                Logged { taken: Some((disk.appended(), hosted.taken)), ..hosted.logged };
            (hosted.logged.records, hosted.logged.bytes) = (0, 0);
        }
    }

    /// A replica of a group on disk took an ordered message.
    pub(super) fn log_taken(&mut self, group: GroupId, place: Place, payload: &Bytes) {
        self.persist(group, TAKEN, place, payload.clone());
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.logged.records += 1;
            hosted.logged.bytes += payload.len();
        }
    }

    /// What a replica goes on from without having taken a request: its disk is given that, too, if it has one.
    pub(super) fn log_beside(&mut self, group: GroupId, payload: &Bytes) {
        let hosted = self.hosted.get(&group).filter(|hosted| is_on_disk(hosted) && !hosted.spared);
        if let Some(place) = hosted.map(|hosted| hosted.taken) {
            self.log_taken(group, place, payload);
        }
    }

    /// All messages of the present place have been acted on: the disk is given what that led to. Of several that a group's
    /// replica took there only the last counts as the place's whole: whoever has but some of them on its disk has none.
    pub(super) fn write_down(&mut self, now: Time) {
        let mut whole = BTreeSet::new();
        for output in self.unwritten.iter_mut().rev() {
            let Output::Persist(Kept { strand: Some(group), kind, place, .. }) = output else {
                continue;
            };
            let last = *kind != Some(TAKEN) || whole.insert((*group, *place));
            if !last && !self.planted.is(Bug::CountHalfPlace) {
                *kind = Some(FOLLOWED);
            }
        }
        for (group, _) in whole {
            self.cut_log(now, group);
        }
        self.outputs.extend(self.unwritten.drain(..));
    }

    /// A snapshot is taken if a restart would have too much to do again.
    fn cut_log(&mut self, now: Time, group: GroupId) {
        let (after, most) = (self.snapshot_after, Config::SNAPSHOT_BYTES);
        let long = |logged: &Logged| logged.records >= after || logged.bytes >= most;
        if self.hosted.get(&group).is_some_and(|hosted| long(&hosted.logged)) {
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
        match &mut hosted.journal {
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
            Some(_) => hosted.logged.lost,
            None => hosted.logged.taken.take().expect("a state is taken at a known place"),
        };
        if !early {
            hosted.logged.syncing = transfer.or(hosted.logged.syncing);
        }
        self.unstored.retain(|(waiting, ..)| *waiting != group);
        let recorded = self.disk.as_ref().map_or(0, Disk::appended);
        let state = GroupState { style, state }.encode();
        let snapshot = Output::Snapshot { strand: Some(group), covers, place, state };
        self.unstored.push((group, recorded, snapshot));
        self.give_unstored();
        if let Some(transfer) = transfer.filter(|_| early) {
            self.order(now, Ordered::Synced(Synced { group, transfer }));
        }
    }

    /// A state may have more in it than the requests up to its place: what the calls of their handlers ended with came later. It
    /// is given to the store when that is on the disk, so that whoever comes back with it has the ends, too.
    fn give_unstored(&mut self) {
        let Some(disk) = &self.disk else { return };
        let ready = |(_, recorded, _): &mut (GroupId, u64, Output)| disk.has_all(*recorded);
        let ready = self.unstored.extract_if(.., ready);
        self.unwritten.extend(ready.map(|(.., snapshot)| snapshot));
    }

    /// A replica's state begins, or is of no use any more.
    pub(super) fn mark(&mut self, group: GroupId, kind: u8) {
        if let Some(hosted) = self.hosted.get_mut(&group)
            && let Some(journal) = &mut hosted.journal
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
        let number = self.persist(group, kind, place, content);
        if let Some(hosted) = self.hosted.get_mut(&group) {
            hosted.logged = Logged { lost: (number, place), ..Logged::default() };
        }
    }

    /// The component is installed: its members are to know after any loss of power.
    pub(super) fn note_installed(&mut self) {
        let Some(component) = self.membership.component().filter(|_| self.disk.is_some()) else {
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
        if self.disk.is_some() && gone.options.durability == Durability::Disk {
            self.note(NodeRecord::Changed(gone.to_entry()));
        }
    }

    /// A group has changed.
    pub(super) fn note_changed(&mut self, id: GroupId) {
        self.changed_at.insert(id, self.delivered);
        if self.disk.is_none() {
            return;
        }
        let group = self.directory.get(id);
        let on_disk = |group: &&Group| group.options.durability == Durability::Disk;
        if let Some(group) = group.filter(on_disk) {
            self.note(NodeRecord::Changed(group.to_entry()));
        }
        let volatile = self.is_volatile();
        if self.disk.as_ref().is_some_and(|disk| disk.recollection().volatile != volatile) {
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
        let disk = self.disk.as_ref()?;
        let restarted = self.membership.is_restarted();
        let recollection = disk.recollection();
        let groups = if restarted { recollection.groups.clone() } else { Vec::new() };
        let (since, volatile) = (disk.since(), recollection.volatile);
        Some(Recall { since, restarted, volatile, groups, waiting: disk.waiting() })
    }

    /// This node hosts a group whose state is on its disk.
    pub(super) fn recall_replica(&mut self, now: Time, group: GroupId) {
        let strand = self.disk.as_mut().and_then(|disk| disk.take(group));
        let Some((strand, hosted)) = strand.zip(self.hosted.get_mut(&group)) else { return };
        let taken = strand.taken;
        hosted.taken = taken;
        hosted.recalled = true;
        hosted.logged.records = strand.log.len() as u64;
        if let Some(journal) = &mut hosted.journal
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
                hosted.recalled = false;
            }
        }
    }

    /// All members' disks know the component's table: a state that it does not count is of no use to anybody. Its replica gives
    /// it up and comes anew.
    pub(super) fn give_up_kept(&mut self, now: Time) -> bool {
        if !mem::take(&mut self.look_at_kept) || !self.membership.is_effective() {
            return false;
        }
        let kept = self.hosted.iter().filter(|(_, hosted)| hosted.kept);
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
        if mem::take(&mut hosted.recalled) && change == Change::None && !waits {
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
        let has = |member: &Member| self.ordering.stored(ring, *member) >= sequence;
        let synced = group.synced().count();
        let enough = match group.options.hold {
            // Others had it then: all that have it now.
            _ if place <= group.floor => synced,
            Hold::All => synced,
            Hold::Majority => majority(synced),
            Hold::One => return has(&self.me),
        };
        // Who the replicas are has to be known, too, whichever nodes come back.
        let changed = self.changed_at.get(&id).copied().unwrap_or(0);
        let members = self.membership.members();
        let known = members.filter(|member| self.stored(ring, *member) >= changed).count();
        group.synced().filter(has).count() >= enough
            && known >= majority(self.membership.members().count())
    }

    /// What a member has where it keeps what it has to.
    fn stored(&self, ring: RingId, member: Member) -> u64 {
        let announce = self.membership.announces().get(&member);
        match announce.is_some_and(|announce| announce.recall.is_some()) {
            true => self.ordering.stored(ring, member),
            false => self.ordering.reached(ring, member),
        }
    }

    /// Every member has the order up to here, and on its disk what it has to keep of that.
    pub(super) fn held_and_stored(&self) -> u64 {
        let all = self.held.all;
        if self.membership.is_effective() {
            return all;
        }
        let ring = self.membership.ring();
        let with_disk = self.membership.announces().iter().filter(|(_, a)| a.recall.is_some());
        let stored = with_disk.map(|(member, _)| self.ordering.stored(ring, *member));
        stored.min().map_or(all, |stored| stored.min(all))
    }

    /// The place in the order that the answer to a known call waits for. Only what a replica takes comes to its disk.
    pub(super) fn known_at(&self, id: GroupId) -> u64 {
        let on_disk = |group: &&Group| group.options.durability == Durability::Disk;
        match self.directory.get(id).filter(on_disk) {
            None => self.delivered,
            Some(group) if group.last.ring == self.membership.ring() => group.last.sequence,
            Some(_) => self.membership.installed_at(),
        }
    }

    /// Something waits for what others have on their disks.
    fn waits_for_disks(&self) -> bool {
        let forming = self.membership.is_active() && !self.membership.is_effective();
        self.membership.has_disks()
            && (forming
                || self.callers.any_unheld()
                || !self.restyles.is_empty()
                || self.nested.waits_to_pay()
                || self.backups.any_unheld())
    }

    /// Sets the time at which the others are asked for what they have on their disks.
    pub(super) fn watch_disks(&mut self, now: Time) {
        let waits = self.waits_for_disks();
        self.ask_at = if waits { self.ask_at.or(Some(now + ASK_STORED)) } else { None };
    }

    pub(super) fn ask_disks(&mut self, now: Time) {
        if self.ask_at.is_some_and(|at| at <= now) {
            self.ask_at = None;
            self.ordering.ask_stored(now);
        }
    }
}

pub(super) fn is_on_disk(hosted: &Hosted) -> bool {
    hosted.options.durability == Durability::Disk
}
